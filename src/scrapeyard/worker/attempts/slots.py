"""A worker's slots, in two shares: one open to every priority, one reserved for `high`.

Each share has its own taker, so that waiting for urgent work in the reserved slots never leaves an open slot empty.
Urgent work may use either share; other work only the open one.

A run that must wait for long releases its slot and regains one before new work is taken. A taker that is already
waiting for work may still bring some, so a share may briefly hold a few more runs than it has slots.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from scrapeyard.errors import Overloaded
from scrapeyard.model import Priority

_ALL = (Priority.HIGH, Priority.NORMAL, Priority.LOW)
MAX_OUTSIDE = 1000
"""Maximum runs that wait outside a worker's slots; each keeps its input in memory."""


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
        """The number of free slots; waits until one is free."""
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
        """Take a slot again for a run that released it, before new work is taken; waits until one is free."""
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
        """The run no longer waits."""
        self._runs.discard(run_id)


class SlotLease:
    """One run's slot."""

    def __init__(self, run_id: str, share: Slots, outside: ParkedRuns) -> None:
        self._run_id = run_id
        self._share = share
        self._outside = outside

    @asynccontextmanager
    async def released(self) -> AsyncIterator[None]:
        """Release the slot inside the block and regain it after; raises Overloaded if too many runs wait outside.

        If the block raises, the slot is not regained: the run is about to end.
        """
        self._outside.enter(self._run_id)
        self._share.free(self._run_id)
        try:
            yield
            await self._share.regain(self._run_id)
        finally:
            self._outside.leave(self._run_id)


def share_out(slots: int, wanted: int) -> tuple[Slots, ...]:
    """Divide `slots`. `wanted` are reserved for `high`; -1 reserves a quarter, at least one. A single slot is open."""
    kept = 0 if slots == 1 else min(slots - 1, max(1, slots // 4) if wanted < 0 else wanted)
    shares = [Slots(slots - kept, _ALL)]
    if kept:
        shares.append(Slots(kept, (Priority.HIGH,)))
    return tuple(shares)


class Pace:
    """What one piece of work takes of a slot, as a moving average that favours the last hundred or so."""

    def __init__(self) -> None:
        self.seconds: float | None = None

    def add(self, seconds: float, count: int = 1) -> None:
        """`count` pieces have ended that took so long each."""
        if self.seconds is None:
            self.seconds = seconds
        else:
            self.seconds += (seconds - self.seconds) * (1 - 0.98**count)
