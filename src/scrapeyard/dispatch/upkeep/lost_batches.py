"""Batches that are queued in the store and that the queue does not hold: it lost them, or we died before publishing."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from scrapeyard.dispatch.deliveries import deliver_batch
from scrapeyard.dispatch.upkeep.missing import GRACE_SECONDS, Page, missing
from scrapeyard.model import Delivery
from scrapeyard.model.job import Batch, Job
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.jobs import BatchStore, JobStore
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")


class QueuedStore(BatchStore, JobStore, Protocol):
    """What is needed of the store."""


class LostBatches:
    """Publishes again what should be in the queue and is not: it is older than the oldest that waits in its line.

    One too many is harmless: the store lets a batch be taken once.
    """

    name = "lost_batches"
    waits_after_outage = True

    def __init__(self, store: QueuedStore, queue: Queue, clock: Callable[[], float]) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock
        self._page = Page()

    async def work(self) -> None:
        """One round."""
        now = self._clock()
        queued = await self._store.queued_batches(now - GRACE_SECONDS, self._page.limit)
        self._page.seen(len(queued))
        lost = await missing(self._queue, queued)
        if lost:
            log.warning("jobs.lost_batches", count=len(lost))
            await self._publish(lost, now)

    async def _publish(self, batches: Sequence[Batch], now: float) -> None:
        jobs = {job_id: await self._store.job(job_id) for job_id in {batch.job_id for batch in batches}}
        await self._queue.publish([_again(batch, job, now) for batch in batches if (job := jobs[batch.job_id])])
        await self._store.batches_requeued([batch.id for batch in batches], now)


def _again(batch: Batch, job: Job, now: float) -> Delivery:
    return replace(deliver_batch(replace(batch, queued_at=now), job), redelivered=True)
