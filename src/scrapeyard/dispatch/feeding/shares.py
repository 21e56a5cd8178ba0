"""How much of each lane's queue is to be kept full."""

import math
from collections.abc import Callable

from scrapeyard.model import Priority, WorkerInfo
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.runs import WorkerStore

HEAR_SECONDS = 1.0
LEAST_WAITING = 2
"""Also where no worker is heard yet: one that comes must not wait for us."""
MOST_TIMES = 4.0
"""So many times the window may wait where batches are short: slots must not run dry between two rounds."""
_MEMORY = 0.8


class Lanes:
    """Slots by lane as heartbeats tell, and the room that is left in the queue.

    Batches that wait in the queue are counted, those that run are not: a slot that gets free takes one that waits, and
    its place in the queue is filled again.
    """

    def __init__(self, settings: Settings, store: WorkerStore, queue: Queue, clock: Callable[[], float]) -> None:
        self._window = settings.jobs.window
        self._batch_seconds = settings.jobs.batch_seconds
        self._reserved = settings.worker.reserved_slots
        self._silent = settings.worker.lease_seconds
        self._store = store
        self._queue = queue
        self._clock = clock
        self._slots: dict[str, int] = {}
        self._heard_at = -math.inf
        self._depth: dict[tuple[str, Priority], int] = {}
        self._lengths: dict[str, float] = {}

    async def look(self) -> None:
        """Ask the queue, and now and then the store, how things stand."""
        now = self._clock()
        if now >= self._heard_at + HEAR_SECONDS or now < self._heard_at:
            self._slots = self._by_lane(await self._store.workers(now - self._silent))
            self._heard_at = now
        self._depth = await self._queue.depth()

    def slots(self, lane: str) -> int:
        """That may run batches, at least one."""
        return max(1, self._slots.get(lane, 0))

    def room(self, lane: str) -> int:
        """How many batches may be added to what waits; none while it is full."""
        length = self._lengths.get(lane, self._batch_seconds)
        times = min(MOST_TIMES, max(1.0, self._batch_seconds / length))
        wanted = max(LEAST_WAITING, math.ceil(times * self._window * self.slots(lane)))
        return max(0, wanted - self._depth.get((lane, Priority.LOW), 0))

    def added(self, lane: str, seconds: float) -> None:
        """A batch that is expected to take so long was added."""
        before = self._lengths.get(lane, self._batch_seconds)
        self._lengths[lane] = _MEMORY * before + (1 - _MEMORY) * seconds

    def _by_lane(self, workers: tuple[WorkerInfo, ...]) -> dict[str, int]:
        slots: dict[str, int] = {}
        for worker in workers:
            for lane in () if worker.draining else worker.lanes:
                slots[lane] = slots.get(lane, 0) + open_slots(worker.slots, self._reserved)
        return slots


def open_slots(slots: int, reserved: int) -> int:
    """Slots that batches may take. `reserved` as the settings have it, which workers may have set otherwise."""
    if slots <= 1:
        return slots
    return slots - min(slots - 1, max(1, slots // 4) if reserved < 0 else reserved)
