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
from scrapeyard.store.ports.operations import LoadSample, LoadStore
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.cluster import LANES, ClusterReading

EVERY_SECONDS = 5.0
FORGET_SECONDS = 30.0
"""A reading this old is not shown: this process has stopped leading, or cannot read."""
STALE_SECONDS = 300.0
KEEP_SECONDS = 2 * 86_400.0
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
            ended={worker.id: worker.runs_done for worker in workers},
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


class LoadHistory:
    """Writes the reading of each minute down, and drops those that are older than two days."""

    name = "load_history"
    waits_after_outage = False

    def __init__(self, load: LoadStore, last: Callable[[], ClusterReading | None], clock: Callable[[], float]) -> None:
        self._load = load
        self._last = last
        self._clock = clock
        self._minute = -math.inf
        self._ended: Mapping[str, int] | None = None

    async def run_once(self) -> None:
        """One round; does nothing while the minute lasts, or if there is no fresh reading."""
        minute = self._clock() // 60 * 60
        reading = self._last() if minute > self._minute else None
        if reading is None:
            return
        await self._load.put(_sample(minute, reading, self._ended if minute == self._minute + 60 else None))
        await self._load.forget_before(minute - KEEP_SECONDS)
        self._minute, self._ended = minute, reading.ended


def _sample(minute: float, reading: ClusterReading, before: Mapping[str, int] | None) -> LoadSample:
    ended = {worker: count - (before or {}).get(worker, 0) for worker, count in reading.ended.items()}
    oldest = sorted(reading.oldest_seconds.items(), key=lambda each: -each[1])[:LANES]
    return LoadSample(
        at=minute,
        busy=reading.busy,
        slots=reading.slots,
        workers=sum(reading.workers.values()),
        waiting=sum(reading.queue.values()),
        lanes={lane: round(seconds, 1) for lane, seconds in oldest},
        runs=sum(reading.runs.values()),
        items=reading.items.get("queued", 0) + reading.items.get("in_progress", 0),
        ended=None if before is None else max(0, sum(ended.values())),
    )


def _by_status(jobs: tuple[Job, ...]) -> dict[str, int]:
    found = Counter(job.status for job in jobs)
    return {status.value: found[status] for status in GOING}


def _by_state(jobs: tuple[Job, ...]) -> dict[str, int]:
    return {state: sum(getattr(job.counts, state) for job in jobs) for state in _STATES}
