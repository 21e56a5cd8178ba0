"""Removes jobs that are past their retention, or some of what they left; snapshots nobody compares with; lost blobs."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.dispatch.upkeep.retention import DAY, EVERY_SECONDS, LOOK_SECONDS, KeptTimes, blobs_of
from scrapeyard.model.job import FINAL_JOB, Job, JobStatus
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import ItemFilter, JobFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics

log = get_log("jobs")
JOBS: Final = 50
"""Maximum looked at in one round."""
RESTORE_SECONDS: Final = 600.0
"""How long a sweep waits for the rows of an archived job."""
SCOPES_SECONDS: Final = 6 * 3600.0
ORPHANS_SECONDS: Final = DAY
SNAPSHOTS: Final = 5000
IDS: Final = 500
_UNFINISHED: Final = tuple(status for status in JobStatus if status not in FINAL_JOB)


class JobRetention:
    """Looks at some ended jobs every half minute, or at once again while there are more.

    A job is marked before anything of it is removed, so that nobody runs it again or takes what is left for all.
    Objects are removed before the rows that refer to them: after a crash the job is found again.
    """

    name = "job_retention"
    waits_after_outage = False

    def __init__(
        self, settings: Settings, store: Store, blobs: Blobs, clock: Callable[[], float], metrics: Metrics | None = None
    ) -> None:
        self._days = settings.retention.jobs_days
        self._kept = KeptTimes(settings.retention)
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._next = 0.0

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._next:
            return
        jobs = await self._store.sweeps.jobs_due(now, JOBS)
        needed = await self._store.sweeps.baselines() if jobs else frozenset()
        rest = [job for job in jobs if not await self._over(job, needed, now)]
        idle = [job.id for job in rest if not await self._sweep(job, needed, now)]
        await self._store.sweeps.put_off(idle, now + LOOK_SECONDS)
        self._next = now if len(jobs) >= JOBS else now + EVERY_SECONDS

    async def _over(self, job: Job, needed: frozenset[str], now: float) -> bool:
        """Remove a job whose time is over."""
        if not job.deleting and (job.id in needed or self._until(job, now) >= now):
            return False
        if await self._store.jobs.begin_delete(job.id):
            await self._blobs.delete_prefix([keys.job_prefix(job.id)])
            if await self._store.jobs.delete(job.id):
                self._metrics.swept(["jobs"])
                log.info("jobs.removed", job=job.id)
        return True

    async def _sweep(self, job: Job, needed: frozenset[str], now: float) -> bool:
        """Remove the kinds that are due. False if none will be for a while."""
        until = self._kept.kinds_until(job.policy.fetching.retention, job.finished_at or now, job.swept)
        due = list(job.swept) if job.sweeping else [kind for kind, at in until.items() if at < now]
        if "results" in due and job.id in needed and not job.sweeping:
            due.remove("results")
        later = [at for at in (*until.values(), self._until(job, now)) if at >= now]
        next_at = min([*later, now + LOOK_SECONDS])
        if not due:
            if next_at < now + LOOK_SECONDS:
                await self._store.sweeps.put_off([job.id], next_at)
            return next_at < now + LOOK_SECONDS
        times = job.swept if job.sweeping else job.swept | dict.fromkeys(due, now)
        held = await self._store.sweeps.begin_job(job.id, times)
        if held is None or held.archive:  # an export is being made, or its rows must come back first
            await self._store.sweeps.put_off([job.id], now + (EVERY_SECONDS if held is None else RESTORE_SECONDS))
            return True
        await self._clear(held, due)
        await self._store.sweeps.end_job(job.id, next_at)
        self._metrics.swept(due)
        log.info("jobs.swept", job=job.id, kinds=", ".join(due))
        return True

    async def _clear(self, job: Job, due: Sequence[str]) -> None:
        results, logs = "results" in due, "logs" in due
        async for items in self._store.items.stream(job.id, ItemFilter(), data=False):
            gone = [key for item in items for key in blobs_of(item.result_key, item.artifacts, due)]
            gone += [keys.item_manifest(job.id, item.key) for item in items if results and item.artifacts]
            await self._blobs.delete(gone)
            await self._store.sweeps.clear_items(job, items[0].seq, items[-1].seq, results=results, logs=logs)
        if results:
            await self._blobs.delete_prefix(keys.result_prefixes(job.id))

    def _until(self, job: Job, now: float) -> float:
        failed = job.status is JobStatus.FAILED or job.counts.error == job.counts.total > 0
        own = job.policy.fetching.retention
        return self._kept.until(own, job.finished_at or now, self._days, failed=failed)


class SnapshotRetention:
    """Removes the snapshots of scopes that were not crawled for `retention.snapshots_days`. A scope that a schedule or
    an unfinished job compares with stays."""

    name = "snapshot_retention"
    waits_after_outage = False

    def __init__(
        self, settings: Settings, store: Store, clock: Callable[[], float], metrics: Metrics | None = None
    ) -> None:
        self._days = settings.retention.snapshots_days
        self._store = store
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._next = 0.0

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if self._days is None or now < self._next:
            return
        before = _job_id_at(now - self._days * DAY)
        scopes = await self._store.sweeps.old_scopes(before)
        used = await self._used() if scopes else _Used()
        for scope in scopes:
            if not used.names(scope):
                await self._drop(scope, before)
        self._next = now + SCOPES_SECONDS

    async def _drop(self, scope: str, before: str) -> None:
        count = 0
        while dropped := await self._store.sweeps.drop_scope(scope, before, SNAPSHOTS):
            count += dropped
        self._metrics.swept(["snapshots"] * min(count, 1))
        log.info("jobs.snapshots_removed", scope=scope, count=count)

    async def _used(self) -> "_Used":
        used, cursor = _Used(), None
        while True:
            page = await self._store.jobs.page(JobFilter(statuses=_UNFINISHED), cursor, IDS)
            for job in page.jobs:
                scope = job.policy.snapshots.scope if job.policy.snapshots else ""
                used.add(scope, job.schedule_id, job.name, scraper=job.scraper)
            cursor = page.next_cursor
            if cursor is None:
                break
        while True:
            schedules = await self._store.schedules.page(cursor, IDS)
            for schedule in schedules.schedules:
                template: dict[str, Any] = msgspec.json.decode(schedule.template)
                snapshots = (template.get("policy") or {}).get("snapshots") or {}
                used.add(snapshots.get("scope") or "", schedule.id, str(template.get("name") or ""))
            cursor = schedules.next_cursor
            if cursor is None:
                return used


class _Used:
    """Scopes that somebody compares with."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._scrapers: set[str] = set()

    def add(self, *names: str, scraper: str = "") -> None:
        """A crawl has the first of these names that is not empty as its scope, else its scraper and a site."""
        self._names.update(filter(None, names))
        if scraper:
            self._scrapers.add(scraper.partition("@")[0])

    def names(self, scope: str) -> bool:
        """Whether it is one of them. The scope of a client begins with its name."""
        bare = scope.partition(": ")[2] or scope
        is_named = bool({scope, bare} & self._names)
        return is_named or bool({scope.partition(" ")[0], bare.partition(" ")[0]} & self._scrapers)


class OrphanedBlobs:
    """Once a day, removes blobs of runs and jobs that have no row: their processes died before it was written."""

    name = "orphaned_blobs"
    waits_after_outage = True

    def __init__(self, store: Store, blobs: Blobs, clock: Callable[[], float], metrics: Metrics | None = None) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._next: float | None = None

    async def run_once(self) -> None:
        """One round; the first is a while after the start."""
        now = self._clock()
        if self._next is None:
            self._next = now + EVERY_SECONDS
        if now < self._next:
            return
        self._next = now + ORPHANS_SECONDS
        for folder, prefix in (("runs/", "run_"), ("", "job_")):
            await self._remove(folder, prefix, now - DAY)

    async def _remove(self, folder: str, prefix: str, before: float) -> None:
        newest = _id_at(prefix, before)
        names = [name for name in await self._blobs.folders(folder) if name.startswith(prefix) and name < newest]
        for start in range(0, len(names), IDS):
            some = names[start : start + IDS]
            known = await self._store.sweeps.known(some)
            lost = [f"{folder}{name}/" for name in some if name not in known]
            await self._blobs.delete_prefix(lost)
            self._metrics.swept(["orphans"] * len(lost))
            if lost:
                log.info("jobs.orphans_removed", count=len(lost))


def _job_id_at(at: float) -> str:
    return _id_at("job_", at)


def _id_at(prefix: str, at: float) -> str:
    """Ids made before that time are smaller."""
    return f"{prefix}{max(0, int(at * 1000)):012x}"
