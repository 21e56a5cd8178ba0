"""Which job's batch is next, and how many batches to keep queued per lane."""

import math
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from scrapeyard.model import Priority, WorkerInfo
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.operations import WorkerStore

WEIGHTS = {Priority.HIGH: 4.0, Priority.NORMAL: 2.0, Priority.LOW: 1.0}
MOST_BEHIND = 2.0
"""Seconds per unit of weight: the most that a job which could not use its share may catch up on."""


class Claim(Struct, frozen=True, kw_only=True):
    """A job that has something to hand out."""

    job_id: str
    owner: str
    priority: Priority

    @property
    def weight(self) -> float:
        """Twice the weight is twice the share."""
        return WEIGHTS[self.priority]


class FairShare:
    """Fair shares in one lane. An owner weighs as much as its most urgent job, however many jobs it has."""

    def __init__(self) -> None:
        self._owners = _Line()
        self._jobs: dict[str, _Line] = {}
        self._claims: dict[str, list[Claim]] = {}

    def heed(self, claims: Sequence[Claim]) -> None:
        """Set the jobs that have items to hand out now. On a tie, the first comes first."""
        self._claims = {}
        for claim in claims:
            self._claims.setdefault(claim.owner, []).append(claim)
        self._owners.heed(self._claims)
        for owner, own in self._claims.items():
            self._jobs.setdefault(owner, _Line()).heed([claim.job_id for claim in own])
        self._jobs = {owner: line for owner, line in self._jobs.items() if owner in self._owners}

    def choose(self, able: Collection[str]) -> Claim | None:
        """The next of those jobs that may receive a batch now; None if there is none."""
        ready = {owner: own for owner, all_own in self._claims.items() if (own := _among(all_own, able))}
        if not ready:
            return None
        owner = self._owners.first(ready)
        chosen = self._jobs[owner].first([claim.job_id for claim in ready[owner]])
        return next(claim for claim in ready[owner] if claim.job_id == chosen)

    def charge(self, claim: Claim, seconds: float) -> None:
        """Charge a job for about this much slot time."""
        weight = max(own.weight for own in self._claims[claim.owner])
        self._owners.charge(claim.owner, seconds / weight)
        self._jobs[claim.owner].charge(claim.job_id, seconds / claim.weight)


class _Line:
    """Names, each with its used time divided by its weight."""

    def __init__(self) -> None:
        self._used: dict[str, float] = {}
        self._now = 0.0
        """Usage of the last one chosen. A newcomer starts here, so that it neither waits nor takes everything."""

    def __contains__(self, name: str) -> bool:
        return name in self._used

    def heed(self, names: Collection[str]) -> None:
        """Set the present names. One that left is remembered until the others catch up: leaving must not pay."""
        present = set(names)
        self._used = {name: used for name, used in self._used.items() if name in present or used > self._now}
        for name in names:
            self._used[name] = max(self._used.get(name, self._now), self._now - MOST_BEHIND)

    def first(self, names: Collection[str]) -> str:
        """The name that used least."""
        return min(names, key=self._used.__getitem__)

    def charge(self, name: str, seconds: float) -> None:
        """Note what it used."""
        self._now = max(self._now, self._used[name])
        self._used[name] += seconds


def _among(claims: Sequence[Claim], able: Collection[str]) -> list[Claim]:
    return [claim for claim in claims if claim.job_id in able]


HEAR_SECONDS = 1.0
LEAST_WAITING = 2
"""Applies also while no worker is known, so that a new worker finds work at once."""
MOST_TIMES = 4.0
"""If batches are short, the window may grow by up to this factor, so that slots do not run empty between rounds."""
_MEMORY = 0.8


class LaneWindows:
    """Slots per lane from heartbeats, and the room left in the queue.

    Only batches waiting in the queue are counted. A free slot takes one of them, and the next round refills its place.
    """

    def __init__(self, settings: Settings, workers: WorkerStore, queue: Queue, clock: Callable[[], float]) -> None:
        self._window = settings.jobs.window
        self._batch_seconds = settings.jobs.batch_seconds
        self._reserved = settings.worker.reserved_slots
        self._silent = settings.worker.lease_seconds
        self._workers = workers
        self._queue = queue
        self._clock = clock
        self._slots: dict[str, int] = {}
        self._heard_at = -math.inf
        self._depth: dict[tuple[str, Priority], int] = {}
        self._lengths: dict[str, float] = {}

    async def look(self) -> None:
        """Refresh the queue's depth and, less often, the workers' slots."""
        now = self._clock()
        if now >= self._heard_at + HEAR_SECONDS or now < self._heard_at:
            self._slots = self._by_lane(await self._workers.alive(now - self._silent))
            self._heard_at = now
        self._depth = await self._queue.depth()

    def slots(self, lane: str) -> int:
        """Slots that may run batches, at least one."""
        return max(1, self._slots.get(lane, 0))

    def room(self, lane: str) -> int:
        """How many batches may be added to the queue; 0 if it is full."""
        length = self._lengths.get(lane, self._batch_seconds)
        times = min(MOST_TIMES, max(1.0, self._batch_seconds / length))
        wanted = max(LEAST_WAITING, math.ceil(times * self._window * self.slots(lane)))
        return max(0, wanted - self._depth.get((lane, Priority.LOW), 0))

    def added(self, lane: str, seconds: float) -> None:
        """Record that a batch of this expected duration was added."""
        before = self._lengths.get(lane, self._batch_seconds)
        self._lengths[lane] = _MEMORY * before + (1 - _MEMORY) * seconds

    def _by_lane(self, workers: tuple[WorkerInfo, ...]) -> dict[str, int]:
        slots: dict[str, int] = {}
        for worker in workers:
            for lane in () if worker.draining else worker.lanes:
                slots[lane] = slots.get(lane, 0) + open_slots(worker.slots, self._reserved)
        return slots


def open_slots(slots: int, reserved: int) -> int:
    """Slots that batches may use. `reserved` is taken from the settings here; workers may have another value."""
    if slots <= 1:
        return slots
    return slots - min(slots - 1, max(1, slots // 4) if reserved < 0 else reserved)
