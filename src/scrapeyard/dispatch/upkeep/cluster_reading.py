"""Reads how the whole cluster stands, every few seconds, for metrics and alerts."""

import math
from collections import Counter
from collections.abc import Callable, Mapping

from scrapeyard.engines.politeness.port import SiteGate
from scrapeyard.model import Priority
from scrapeyard.model.job import FINAL_JOB, Job, JobStatus
from scrapeyard.queues.load import lane_loads
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import JobFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.cluster import ClusterReading

EVERY_SECONDS = 5.0
FORGET_SECONDS = 30.0
"""A reading this old is not shown: this process has stopped leading, or cannot read."""
STALE_SECONDS = 300.0
MOST_JOBS = 1000
MOST_SITES = 1000
MOST_SCHEDULES = 1000
GOING = tuple(status for status in JobStatus if status not in FINAL_JOB)
_STATES = ("pending", "queued", "in_progress", "success", "error", "cancelled")


class ClusterReadings:
    """Holds the last reading. A duty of the leader, so that the cluster has one."""

    name = "cluster_reading"
    waits_after_outage = False

    def __init__(
        self, settings: Settings, store: Store, queue: Queue, gate: SiteGate | None, clock: Callable[[], float]
    ) -> None:
        """Without a `gate`, nothing is told of the breakers of sites."""
        self._fresh = settings.worker.lease_seconds
        self._store = store
        self._queue = queue
        self._gate = gate
        self._clock = clock
        self._read_at = -math.inf
        self._reading: ClusterReading | None = None

    def last(self) -> ClusterReading | None:
        """The last reading; None if there is none that is fresh."""
        return self._reading if self._clock() - self._read_at < FORGET_SECONDS else None

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._read_at + EVERY_SECONDS:
            return
        self._reading = await self._read(now)
        self._read_at = now

    async def _read(self, now: float) -> ClusterReading:
        store = self._store
        depth = await self._queue.depth()
        workers = await store.workers.alive(now - self._fresh)
        jobs = (await store.jobs.page(JobFilter(statuses=GOING), None, MOST_JOBS)).jobs
        loads = lane_loads(depth, jobs, workers)
        draining = sum(worker.draining for worker in workers)
        return ClusterReading(
            queue={(lane, priority.value): count for (lane, priority), count in depth.items()},
            oldest_seconds=await self._oldest(depth, now),
            work_seconds={load.lane: load.seconds for load in loads},
            runs={status.value: count for status, count in (await store.runs.counts()).items()},
            jobs=_by_status(jobs),
            items=_by_state(jobs),
            workers={"alive": len(workers) - draining, "draining": draining},
            slots=sum(worker.slots for worker in workers),
            busy=sum(worker.busy for worker in workers),
            breakers=await self._breakers(jobs),
            stale_schedules=len(await store.schedules.due(now - STALE_SECONDS, MOST_SCHEDULES)),
        )

    async def _oldest(self, depth: Mapping[tuple[str, Priority], int], now: float) -> dict[str, float]:
        ages: dict[str, float] = {lane: 0.0 for lane, _ in depth}
        for (lane, priority), count in depth.items():
            queued_at = await self._queue.oldest(lane, priority) if count else None
            if queued_at is not None:
                ages[lane] = max(ages[lane], now - queued_at)
        return ages

    async def _breakers(self, jobs: tuple[Job, ...]) -> dict[tuple[str, ...], int]:
        found: Counter[tuple[str, str]] = Counter()
        for job in jobs:
            found["job", job.breaker.state] += 1
        if self._gate is not None:
            for state in (await self._gate.states((await self._gate.known())[:MOST_SITES])).values():
                found["site", state.breaker] += 1
        return {(scope, state): found[scope, state] for scope in ("job", "site") for state in ("open", "half_open")}


def _by_status(jobs: tuple[Job, ...]) -> dict[str, int]:
    found = Counter(job.status for job in jobs)
    return {status.value: found[status] for status in GOING}


def _by_state(jobs: tuple[Job, ...]) -> dict[str, int]:
    return {state: sum(getattr(job.counts, state) for job in jobs) for state in _STATES}
