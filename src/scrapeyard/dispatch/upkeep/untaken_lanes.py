"""Tells of work that waits where no worker takes it. It is not lost: the first worker that takes the lane runs it."""

import math
from collections.abc import Callable

from scrapeyard.model.lanes import ScraperLanes
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.operations import WorkerStore
from scrapeyard.telemetry.events import get_log

log = get_log("dispatch")
LOOK_SECONDS = 5.0
TELL_SECONDS = 60.0
"""How often the same lane is told of."""


class UntakenLanes:
    """Logs each lane with waiting work that no live worker has taken for the length of a lease."""

    name = "untaken_lanes"
    waits_after_outage = True

    def __init__(self, settings: Settings, workers: WorkerStore, queue: Queue, clock: Callable[[], float]) -> None:
        self._scrapers = ScraperLanes(settings.lanes.patterns)
        self._silent = settings.worker.lease_seconds
        self._workers = workers
        self._queue = queue
        self._clock = clock
        self._looked_at = -math.inf
        self._tell_at: dict[str, float] = {}

    async def run_once(self) -> None:
        """One round; most of them do nothing."""
        now = self._clock()
        if now < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = now
        waiting: dict[str, int] = {}
        for (lane, _), count in (await self._queue.depth()).items():
            waiting[lane] = waiting.get(lane, 0) + count
        workers = await self._workers.alive(now - self._silent)
        taken = {lane for worker in workers if not worker.draining for lane in worker.lanes}
        untaken = waiting.keys() - taken
        self._tell_at = {lane: self._tell_at.get(lane, now + self._silent) for lane in untaken}
        for lane in sorted(untaken):
            if now >= self._tell_at[lane]:
                self._tell_at[lane] = now + TELL_SECONDS
                log.warning("dispatch.untaken_lane", takes=self._scrapers.words(lane), lane=lane, waiting=waiting[lane])
