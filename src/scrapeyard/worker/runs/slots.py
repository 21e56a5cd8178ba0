"""A worker's slots, in two shares: one open to every priority, one kept for `high`.

Each share is filled by a taker of its own, so that waiting for urgent work in the kept slots never keeps an open slot
empty. Urgent work may land in either share; other work only in the open one.

A run that must wait for something long leaves its slot to others and comes back before new work is taken. A taker that
already asks for work then brings it all the same: for that moment a share holds a few more than its count.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from scrapeyard.errors import Overloaded
from scrapeyard.model import Priority

_ALL = (Priority.HIGH, Priority.NORMAL, Priority.LOW)
MAX_OUTSIDE = 1000
"""Runs of one worker that may wait outside its slots; each costs its input in memory."""


class Slots:
    """One share."""

    def __init__(self, count: int, priorities: Sequence[Priority]) -> None:
        self.priorities = priorities
        self._count = count
        self._held: set[str] = set()
        self._freed = asyncio.Event()
        self._returning: deque[tuple[str, asyncio.Future[None]]] = deque()

    @property
    def held(self) -> int:
        """How many are taken."""
        return len(self._held)

    async def room(self) -> int:
        """How many are free; waits until one is."""
        while len(self._held) >= self._count:
            self._freed.clear()
            await self._freed.wait()
        return self._count - len(self._held)

    def hold(self, run_id: str) -> None:
        """This run takes a slot."""
        self._held.add(run_id)

    def free(self, run_id: str) -> None:
        """This run is over, or leaves for a while."""
        self._held.discard(run_id)
        while self._returning and len(self._held) < self._count:
            returning, future = self._returning.popleft()
            if not future.done():
                self._held.add(returning)
                future.set_result(None)
        if len(self._held) < self._count:
            self._freed.set()

    async def regain(self, run_id: str) -> None:
        """A run that left comes back, before new work is taken; waits until a slot is free."""
        if len(self._held) < self._count:
            self._held.add(run_id)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._returning.append((run_id, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.free(run_id)
            raise


class ParkedRuns:
    """The runs of one worker that wait outside its slots."""

    def __init__(self, most: int = MAX_OUTSIDE) -> None:
        self._most = most
        self._runs: set[str] = set()

    def __len__(self) -> int:
        return len(self._runs)

    def enter(self, run_id: str) -> None:
        """Raises Overloaded when there are too many."""
        if len(self._runs) >= self._most:
            raise Overloaded(f"{self._most} runs of this worker wait outside its slots", retry_after=10)
        self._runs.add(run_id)

    def leave(self, run_id: str) -> None:
        """It waits no more."""
        self._runs.discard(run_id)


class SlotLease:
    """One run's slot."""

    def __init__(self, run_id: str, share: Slots, outside: ParkedRuns) -> None:
        self._run_id = run_id
        self._share = share
        self._outside = outside

    @asynccontextmanager
    async def released(self) -> AsyncIterator[None]:
        """Without a slot inside the block, with one again after it; raises Overloaded when too many are outside.

        A block that raises does not get its slot back: the run is about to end.
        """
        self._outside.enter(self._run_id)
        self._share.free(self._run_id)
        try:
            yield
            await self._share.regain(self._run_id)
        finally:
            self._outside.leave(self._run_id)


def share_out(slots: int, wanted: int) -> tuple[Slots, ...]:
    """Divide `slots`. `wanted` are kept for `high`; -1: a quarter, at least one. A single slot is open to all."""
    kept = 0 if slots == 1 else min(slots - 1, max(1, slots // 4) if wanted < 0 else wanted)
    shares = [Slots(slots - kept, _ALL)]
    if kept:
        shares.append(Slots(kept, (Priority.HIGH,)))
    return tuple(shares)
