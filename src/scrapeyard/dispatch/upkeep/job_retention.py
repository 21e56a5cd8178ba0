"""Jobs that have been kept long enough go, with all they left."""

from collections.abc import Callable

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import JobStore
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")
EVERY_SECONDS = 30.0
BATCH = 20
DAY = 86_400.0


class JobRetention:
    """Removes a few jobs every half minute. Each is marked, so that nobody runs it again; then objects go before the
    rows that lead to them: after a crash in between the rows are found again, and nothing stays behind."""

    name = "job_retention"
    waits_after_outage = False

    def __init__(self, settings: Settings, store: JobStore, blobs: Blobs, clock: Callable[[], float]) -> None:
        self._days = settings.retention.jobs_days
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._next = 0.0

    async def work(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._next:
            return
        for job_id in await self._store.finished_before(now - self._days * DAY, BATCH):
            if not await self._store.begin_delete(job_id):
                continue
            await self._blobs.delete_prefix([keys.job_prefix(job_id)])
            if await self._store.delete_job(job_id):
                log.info("jobs.removed", job=job_id)
        self._next = now + EVERY_SECONDS
