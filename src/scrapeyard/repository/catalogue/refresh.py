"""Refreshing sources: again and again, and when somebody asks, however many ask at once."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

from msgspec import Struct

from scrapeyard.repository.catalogue.sync import SourceSync

OVERLAP_SECONDS = 1.0
"""How long a look keeps the next one waiting. One source that hangs must not hold up what is new in the others, and a
source that is looked at already shares its own next look among all who ask."""


class CoalescedRefresh:
    """One look that began and one that waits: who asks shares the look that begins after. `ended` hears of each that
    was not broken off: None, or what went wrong."""

    def __init__(self, look: Callable[[], Awaitable[None]], ended: Callable[[BaseException | None], None]) -> None:
        self._poll = look
        self._ended = ended
        self._last: asyncio.Task[None] | None = None
        self._waits: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._cancelled = False

    def begin(self) -> asyncio.Task[None]:
        """Look in the background. The task raises what the look raises; who awaits it must shield it from others.

        After `cancel` it is cancelled at once.
        """
        if self._waits is None:
            self._waits = asyncio.create_task(self._take_turn(self._last), name="repository-look")
            self._tasks.add(self._waits)
            self._waits.add_done_callback(self._note)
            if self._cancelled:
                self._waits.cancel()
        return self._waits

    def cancel(self) -> None:
        """Break off what is under way; nothing begins from now on. May be called twice."""
        self._cancelled = True
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        """As `cancel`; returns when all has ended. May be called twice."""
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take_turn(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before], timeout=OVERLAP_SECONDS)
        self._last, self._waits = self._waits, None
        await self._poll()

    def _note(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._last = None if self._last is task else self._last
        self._waits = None if self._waits is task else self._waits
        if not task.cancelled():
            self._ended(task.exception())


class RefreshPace(Struct, frozen=True, kw_only=True):
    """Seconds between looks; after failures twice as long each time, up to `longest`."""

    seconds: float
    longest: float
    jitter: float = 0.0
    """Part of the wait by which it may be shorter or longer, so that many processes do not ask at once."""

    def wait(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        base = min(self.seconds * 2.0 ** min(failures, 30), max(self.longest, self.seconds))
        return base * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311  no secret hangs on it


class SourceWatch:
    """Refreshes a shelf until it is stopped. `began` is set when the first refresh is over."""

    def __init__(self, shelf: SourceSync, pace: RefreshPace) -> None:
        self.began = asyncio.Event()
        self._shelf = shelf
        self._pace = pace
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin at once. May be called twice."""
        if self._task is None:
            self._task = asyncio.create_task(self._poll_forever(), name=f"repository-watch-{self._shelf.source.name}")

    def wake(self) -> None:
        """Look again now."""
        self._wake.set()

    async def stop(self) -> None:
        """No more looks. May be called twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _poll_forever(self) -> None:
        failures = 0
        while True:
            self._wake.clear()
            await self._shelf.refresh()
            self.began.set()
            failures = failures + 1 if self._shelf.is_stale else 0
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._pace.wait(failures))
