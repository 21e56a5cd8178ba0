"""A worker's slots, in two shares: one open to every priority, one kept for `high`.

Each share is filled by a taker of its own, so that waiting for urgent work in the kept slots never keeps an open slot
empty. Urgent work may land in either share; other work only in the open one.
"""

import asyncio
from collections.abc import Sequence

from scrapeyard.model import Priority

_ALL = (Priority.HIGH, Priority.NORMAL, Priority.LOW)


class Slots:
    """One share."""

    def __init__(self, count: int, priorities: Sequence[Priority]) -> None:
        self.priorities = priorities
        self._count = count
        self._held: set[str] = set()
        self._freed = asyncio.Event()

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
        """This run is over."""
        self._held.discard(run_id)
        self._freed.set()


def share_out(slots: int, wanted: int) -> tuple[Slots, ...]:
    """Divide `slots`. `wanted` are kept for `high`; -1: a quarter, at least one. A single slot is open to all."""
    kept = 0 if slots == 1 else min(slots - 1, max(1, slots // 4) if wanted < 0 else wanted)
    shares = [Slots(slots - kept, _ALL)]
    if kept:
        shares.append(Slots(kept, (Priority.HIGH,)))
    return tuple(shares)
