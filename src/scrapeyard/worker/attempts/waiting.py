"""Waiting for a site's turn, or for a free browser, without holding a slot.

A run may have several fetches in flight. It releases its slot while all of them wait, and regains one before any of
them continues. What the script does meanwhile runs without a slot, but that is short compared with the wait.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from scrapeyard.errors import FetchFailed, Overloaded
from scrapeyard.model import ExitReason
from scrapeyard.worker.attempts.slots import SlotLease

IN_PLACE = 0.02
"""Maximum seconds to wait without releasing the slot. Small, because runs that wait for a busy site fill the slots."""


class SiteWait:
    """The pauses of one run, or of all items of a batch."""

    def __init__(self, seat: SlotLease | None) -> None:
        """Without a seat the run sleeps in place."""
        self._seat = seat
        self._fetching = 0
        self._waiting = 0
        self._left: AbstractAsyncContextManager[None] | None = None
        self._moving = asyncio.Lock()

    @asynccontextmanager
    async def fetching(self) -> AsyncIterator[None]:
        """A fetch goes on within this context, from `begin` to `end`."""
        if (settling := self.begin()) is not None:
            await settling
        try:
            yield
        finally:
            if (settling := self.end()) is not None:
                await settling

    def begin(self) -> Coroutine[None, None, None] | None:
        """A fetch begins. Await what is returned, if anything, and call `end` once the fetch is over."""
        self._fetching += 1
        return None if self._left is None else self._return()

    def end(self) -> Coroutine[None, None, None] | None:
        """A fetch is over. Await what is returned, if anything."""
        self._fetching -= 1
        return self._settle() if self._waiting else None

    async def _return(self) -> None:
        try:
            await self._settle()
        except BaseException:
            if (settling := self.end()) is not None:
                await settling
            raise

    async def pause(self, seconds: float) -> None:
        """Wait. Raises FetchFailed (fetch_rate_limited) at once if too many runs wait already; `details["retry_after"]`
        says when to retry."""
        if self._seat is None or seconds <= IN_PLACE:
            await asyncio.sleep(seconds)
            return
        async with self.waiting(seconds):
            await asyncio.sleep(seconds)

    @asynccontextmanager
    async def waiting(self, retry_after: float) -> AsyncIterator[None]:
        """The fetch waits within this context. Raises FetchFailed as `pause` does."""
        self._waiting += 1
        try:
            await self._settle()
            yield
        except Overloaded:
            raise too_long(retry_after, "too many runs of this worker wait for their sites") from None
        finally:
            self._waiting -= 1
        await self._settle()

    async def close(self) -> None:
        """The run is over: do not regain a released slot. May be called twice."""
        left, self._left = self._left, None
        if left is not None:
            over = asyncio.CancelledError()
            await left.__aexit__(type(over), over, None)

    async def _settle(self) -> None:
        """Release or regain the slot as needed now. Concurrent callers wait for each other."""
        async with self._moving:
            away = 0 < self._waiting == self._fetching
            if away and self._left is None and self._seat is not None:
                leaving = self._seat.released()
                await leaving.__aenter__()
                self._left = leaving
            elif not away and self._left is not None:
                returning, self._left = self._left, None
                await returning.__aexit__(None, None, None)


def too_long(seconds: float, why: str) -> FetchFailed:
    """The error of a fetch that does not wait for its site, with the time to retry."""
    message = f"{why}; the run is put back for {seconds:.1f} s"
    return FetchFailed(ExitReason.FETCH_RATE_LIMITED, message, retry_after=seconds)
