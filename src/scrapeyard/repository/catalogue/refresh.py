"""Refreshing sources periodically and on request; concurrent requests share one refresh."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

from msgspec import Struct

from scrapeyard.background import Background
from scrapeyard.repository.catalogue.sync import SourceSync

OVERLAP_SECONDS = 1.0
"""How long a running refresh delays the next one. One source that hangs must not delay the others, and a source that
is already refreshing shares its next refresh among all callers."""


class CoalescedRefresh:
    """At most one refresh waits to begin, and callers share it. `ended` is called after each refresh that was not
    cancelled, with None or the exception."""

    def __init__(self, look: Callable[[], Awaitable[None]], ended: Callable[[BaseException | None], None]) -> None:
        self._poll = look
        self._ended = ended
        self._last: asyncio.Task[None] | None = None
        self._waits: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._cancelled = False

    def request(self) -> asyncio.Task[None]:
        """Refresh in the background. The task raises what the refresh raises; shield it when awaiting.

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
        """Cancel running refreshes; none begins from now on. May be called twice."""
        self._cancelled = True
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        """As `cancel`; returns when all refreshes have ended. May be called twice."""
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
    """Seconds between refreshes; doubled after each failure, up to `longest`."""

    seconds: float
    longest: float
    jitter: float = 0.0
    """Fraction by which a wait may be shorter or longer, so that many processes do not ask at once."""

    def wait(self, failures: int) -> float:
        """How long to wait after this many failures in a row."""
        base = min(self.seconds * 2.0 ** min(failures, 30), max(self.longest, self.seconds))
        return base * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311  no secret hangs on it


class SourceWatch:
    """Refreshes one source until it is stopped. `began` is set when the first refresh is over."""

    def __init__(self, shelf: SourceSync, pace: RefreshPace) -> None:
        self.began = asyncio.Event()
        self._shelf = shelf
        self._pace = pace
        self._wake = asyncio.Event()
        self._background = Background()

    def start(self) -> None:
        """Begin at once. May be called twice."""
        self._background.start(self._poll_forever, name=f"repository-watch-{self._shelf.source.name}")

    def wake(self) -> None:
        """Refresh now."""
        self._wake.set()

    async def stop(self) -> None:
        """Stop refreshing. May be called twice."""
        await self._background.stop()

    async def _poll_forever(self) -> None:
        failures = 0
        while True:
            self._wake.clear()
            await self._shelf.refresh()
            self.began.set()
            failures = failures + 1 if self._shelf.is_stale else 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pace.wait(failures)):
                    await self._wake.wait()
