"""A bound on what waits in the queue."""

import asyncio
from collections import Counter

from scrapeyard.errors import Overloaded
from scrapeyard.queues.port import Queue

SAMPLE_SECONDS = 0.5


class Backlog:
    """Knows from publishing how many deliveries wait in each lane, and asks the queue only when it seems full.

    Several gateways may together go over the limit by what they publish within one sample.
    """

    def __init__(self, queue: Queue, limit: int) -> None:
        self._queue = queue
        self._limit = limit
        self._known: dict[str, int] = {}
        self._sampled_at = float("-inf")

    async def admit(self, lane: str, count: int) -> None:
        """Raises Overloaded when `count` more do not fit, QueueUnavailable when the queue does not tell."""
        if self._fits(lane, count):
            return
        await self._sample()
        if not self._fits(lane, count):
            waiting = self._known.get(lane, 0)
            raise Overloaded(f"{waiting} runs wait in lane {lane}; the limit is {self._limit}", retry_after=2)

    def note(self, lane: str, waiting: int) -> None:
        """What publishing to this lane told."""
        self._known[lane] = waiting

    def defer(self, lane: str, count: int) -> None:
        """Runs that wait in the store for the queue to come back count as well: that must have a bound too."""
        self._known[lane] = self._known.get(lane, 0) + count

    def _fits(self, lane: str, count: int) -> bool:
        return self._known.get(lane, 0) + count <= self._limit

    async def _sample(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._sampled_at < SAMPLE_SECONDS:
            return
        self._sampled_at = now
        try:
            depth = await self._queue.depth()
        except BaseException:
            self._sampled_at = float("-inf")  # nothing was learned: the next call asks again
            raise
        totals: Counter[str] = Counter()
        for (lane, _priority), waiting in depth.items():
            totals[lane] += waiting
        self._known = dict(totals)
