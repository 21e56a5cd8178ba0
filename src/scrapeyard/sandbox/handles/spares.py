"""Children of one parent that have no run yet, and those who wait for one."""

import asyncio
from collections import deque

from scrapeyard.sandbox.handles.child import Child


class Spares:
    """Who has asked first is served first. Forking is the parent's affair: this says how many are missing."""

    def __init__(self) -> None:
        self._ready: deque[Child] = deque()
        self._waiting: deque[asyncio.Future[Child]] = deque()
        self._starting: set[Child] = set()
        self._cold: set[Child] = set()
        """Those of the starting that lack what the parent has learned since."""

    @property
    def wanted(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    @property
    def ready(self) -> int:
        """Children that can be given a run at once."""
        return len(self._ready)

    @property
    def starting(self) -> int:
        """Children that were asked for and have not said that they are ready."""
        return len(self._starting)

    def missing(self, ahead: int) -> int:
        """Children to fork until everybody who waits has one and so many wait ahead; may be negative."""
        wanted = len([future for future in self._waiting if not future.done()]) + ahead
        return wanted - len(self._ready) - len(self._starting)

    def take(self) -> Child | None:
        """One that is ready; None when there is none."""
        while self._ready:
            child = self._ready.popleft()
            if child.open:
                return child
        return None

    def wait(self) -> "asyncio.Future[Child]":
        """The next one that nobody before has asked for."""
        future: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def begin(self, child: Child) -> None:
        """It was asked for."""
        self._starting.add(child)

    def hand_out(self, child: Child) -> bool:
        """It is ready. False: it was let go, because nobody waits and the next one will be warmer."""
        self._starting.discard(child)
        is_cold = child in self._cold
        self._cold.discard(child)
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(child)
                return True
        if is_cold:
            _let_go(child)
            return False
        self._ready.append(child)
        return True

    def discard_stale(self) -> None:
        """The parent has learned something: children forked before give way to warmer ones, but for those who wait
        already."""
        self._cold = set(self._starting)
        while self._ready:
            _let_go(self._ready.pop())

    def forget(self, child: Child) -> None:
        """It does not start any more: it is somebody's own, or its process is gone."""
        self._starting.discard(child)
        self._cold.discard(child)

    def drop(self, child: Child) -> None:
        """It broke its wire, and cannot be given a run."""
        if child in self._ready:
            self._ready.remove(child)

    def clear(self) -> "list[asyncio.Future[Child]]":
        """Forget every child. Who still waits is for the caller to tell."""
        self._starting.clear()
        self._cold.clear()
        self._ready.clear()
        return [future for future in self._waiting if not future.done()]


def _let_go(child: Child) -> None:
    """It leaves because we wish it, which is no fault of the script."""
    child.on_broken = lambda _: None
    child.close()
