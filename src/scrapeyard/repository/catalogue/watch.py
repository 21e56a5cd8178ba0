"""Looking at one source again and again."""

import asyncio
import contextlib
import random

from msgspec import Struct

from scrapeyard.repository.catalogue.sync import Shelf


class Pace(Struct, frozen=True, kw_only=True):
    """Seconds between looks; after failures twice as long each time, up to `longest`."""

    seconds: float
    longest: float
    jitter: float = 0.0
    """Part of the wait by which it may be shorter or longer, so that many processes do not ask at once."""

    def wait(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        base = min(self.seconds * 2.0 ** min(failures, 30), max(self.longest, self.seconds))
        return base * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311  no secret hangs on it


class Watch:
    """Refreshes a shelf until it is stopped. `began` is set when the first refresh is over."""

    def __init__(self, shelf: Shelf, pace: Pace) -> None:
        self.began = asyncio.Event()
        self._shelf = shelf
        self._pace = pace
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin at once. May be called twice."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_looking(), name=f"repository-watch-{self._shelf.source.name}")

    def wake(self) -> None:
        """Look again now."""
        self._wake.set()

    async def stop(self) -> None:
        """No more looks. May be called twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _keep_looking(self) -> None:
        failures = 0
        while True:
            self._wake.clear()
            await self._shelf.refresh()
            self.began.set()
            failures = failures + 1 if self._shelf.is_stale else 0
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._pace.wait(failures))
