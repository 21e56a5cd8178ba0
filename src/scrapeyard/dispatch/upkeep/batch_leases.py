"""Batches whose worker was lost: what has no record goes to another attempt, or to an honest end."""

from collections.abc import Callable

from scrapeyard.store.ports.jobs import BatchStore
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")
BATCH = 100


class ExpiredBatches:
    """Takes batches away from workers that fell silent. At most BATCH in one round; the next round takes the rest."""

    name = "batch_leases"
    waits_after_outage = True

    def __init__(self, store: BatchStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def work(self) -> None:
        """One round."""
        for job_id, waiting, ended in await self._store.expire_batches(self._clock(), BATCH):
            log.warning("jobs.batch_lost", job=job_id, waiting=waiting, ended=ended)
