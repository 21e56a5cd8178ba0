"""Removes what is past its retention: runs and jobs with what they left, keys, sessions, meters, the audit, workers."""

from collections.abc import Callable

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.budget.meters import day_of
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import JobStore
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("dispatch")
job_log = get_log("jobs")
EVERY_SECONDS = 30.0
RUNS = 500
JOBS = 20
AUDIT_ROWS = 5000
"""Maximum removed in one round."""
DAY = 86_400.0


class JobRetention:
    """Removes a few jobs every half minute. Each is marked first, so that nobody redrives it. Objects are removed
    before the rows that refer to them, so that after a crash the rows are found again and nothing is left behind."""

    name = "job_retention"
    waits_after_outage = False

    def __init__(self, settings: Settings, jobs: JobStore, blobs: Blobs, clock: Callable[[], float]) -> None:
        self._days = settings.retention.jobs_days
        self._failed_days = settings.retention.failed_days
        self._jobs = jobs
        self._blobs = blobs
        self._clock = clock
        self._next = 0.0

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._next:
            return
        failed_before = _before(now, self._failed_days)
        for job_id in await self._jobs.finished_before(now - self._days * DAY, JOBS, failed_before=failed_before):
            if not await self._jobs.begin_delete(job_id):
                continue
            await self._blobs.delete_prefix([keys.job_prefix(job_id)])
            if await self._jobs.delete(job_id):
                job_log.info("jobs.removed", job=job_id)
        self._next = now + EVERY_SECONDS


class Retention:
    """Removes a batch of runs every half minute, or at once again while batches are full.

    Rows are removed first, so that nobody finds a run without its blobs. This process retries blobs whose removal
    failed; they are left behind if it dies before that.
    """

    name = "retention"
    waits_after_outage = False

    def __init__(self, settings: Settings, store: Store, blobs: Blobs, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._next = 0.0
        self._orphans: list[str] = []

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._next:
            return
        await self._remove_blobs()
        full = await self._remove_runs(now)
        await self._store.keys.forget_before(now - self._settings.retention.keys_hours * 3600)
        await self._store.sessions.forget_before(now - self._settings.http.session_days * DAY)
        silent = now - 10 * self._settings.worker.lease_seconds
        await self._store.workers.forget_before(silent)
        await self._store.proxies.forget_standings_before(silent)
        await self._store.meters.forget_before(day_of(now - self._settings.retention.usage_days * DAY))
        await self._store.audit.remove_before(now - self._settings.retention.audit_days * DAY, AUDIT_ROWS)
        self._next = now if full else now + EVERY_SECONDS

    async def _remove_runs(self, now: float) -> bool:
        kept = self._settings.retention
        failed_before = _before(now, kept.failed_days)
        gone = await self._store.runs.delete_before(now - kept.runs_days * DAY, RUNS, failed_before=failed_before)
        self._orphans.extend(keys.run_prefix(run_id) for run_id in gone)
        await self._remove_blobs()
        if gone:
            log.info("dispatch.runs_removed", count=len(gone))
        return len(gone) >= RUNS

    async def _remove_blobs(self) -> None:
        if self._orphans:
            await self._blobs.delete_prefix(self._orphans)
            self._orphans.clear()


def _before(now: float, days: float | None) -> float | None:
    return None if days is None else now - days * DAY
