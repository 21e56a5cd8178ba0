"""Idle children of one parent, and the callers that wait for one."""

import asyncio
from collections import deque

from scrapeyard.sandbox.handles.child import Child


class Spares:
    """Serves waiters in order. It does not fork; it tells the parent handle how many children are missing."""

    def __init__(self) -> None:
        self._ready: deque[Child] = deque()
        self._waiting: deque[asyncio.Future[Child]] = deque()
        self._starting: set[Child] = set()
        self._cold: set[Child] = set()
        """Starting children that lack modules the parent has imported since."""

    @property
    def wanted(self) -> bool:
        """Whether a caller waits."""
        return bool(self._waiting)

    @property
    def ready(self) -> int:
        """Children that can be given a run at once."""
        return len(self._ready)

    @property
    def starting(self) -> int:
        """Children that were requested and are not ready yet."""
        return len(self._starting)

    def missing(self, ahead: int) -> int:
        """Children to fork so that every waiter has one and `ahead` spare ones remain; may be negative."""
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
        """A future for the next child, after earlier waiters."""
        future: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def begin(self, child: Child) -> None:
        """The child was requested and is starting."""
        self._starting.add(child)

    def hand_out(self, child: Child) -> bool:
        """The child is ready. False if it was discarded, because nobody waits and the next one has more imported."""
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
        """The parent imported new modules: discard idle children forked before that, except those already promised to a
        waiter."""
        self._cold = set(self._starting)
        while self._ready:
            _let_go(self._ready.pop())

    def forget(self, child: Child) -> None:
        """Stop tracking a starting child: a caller owns it, or its process is gone."""
        self._starting.discard(child)
        self._cold.discard(child)

    def drop(self, child: Child) -> None:
        """Drop a child that broke its wire and cannot be given a run."""
        if child in self._ready:
            self._ready.remove(child)

    def clear(self) -> "list[asyncio.Future[Child]]":
        """Forget every child. Returns the waiters, which the caller must notify."""
        self._starting.clear()
        self._cold.clear()
        self._ready.clear()
        return [future for future in self._waiting if not future.done()]


def _let_go(child: Child) -> None:
    """Make it exit; its end does not count against the script."""
    child.on_broken = lambda _: None
    child.close()
