"""Jobs that run: their time series is written, and those whose wall-clock limit is over are ended."""

from collections.abc import Callable

import msgspec
from msgspec import Raw

from scrapeyard.model.job import Job
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.store.ports.jobs import PointStore
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")
EVERY_SECONDS = 5.0
"""How often a point is noted."""
THIN_SECONDS = 60.0
BATCH = 100
"""Maximum jobs ended in one round."""


class TimeLimits:
    """Cancels overdue jobs: items that have not begun are cancelled, those that run end by themselves. The deadline is
    in the store, so that any leader finds it. The event is written first: a crash may repeat it but never lose it."""

    name = "time_limits"
    waits_after_outage = False

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def run_once(self) -> None:
        """One round."""
        for job in await self._store.jobs.overdue(self._clock(), BATCH):
            await self._end(job)

    async def _end(self, job: Job) -> None:
        seconds = job.policy.max_seconds or 0.0
        told = {"state": "used_up", "budget": "max_seconds", "used": seconds, "allowed": seconds}
        await self._tell(job, JobEventKind.BUDGET, told)
        fault = f"the job's time of {seconds:g} s (policy.max_seconds) is over; resume goes on, with its time anew"
        ended = await self._store.jobs.cancel(job.id, False, self._clock(), fault=fault)
        if ended is None:
            return
        log.warning("jobs.time_over", job=job.id, seconds=seconds, items=ended.counts.cancelled)
        await self._tell(job, JobEventKind.STATUS, {"status": ended.status.value, "reason": "max_seconds"})

    async def _tell(self, job: Job, kind: JobEventKind, told: dict[str, object]) -> None:
        await self._store.events.add(job.id, kind, Raw(msgspec.json.encode(told)), self._clock())


class JobPoints:
    """Writes points, and removes some of those of long jobs now and then."""

    name = "job_points"
    waits_after_outage = False

    def __init__(self, points: PointStore, clock: Callable[[], float]) -> None:
        self._points = points
        self._clock = clock
        self._next = 0.0
        self._thin_at = 0.0

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._next:
            return
        await self._points.sample(now)
        if now >= self._thin_at:
            await self._points.thin(now)
            self._thin_at = now + THIN_SECONDS
        self._next = now + EVERY_SECONDS
