"""Runs and batches whose worker was lost: another attempt where one remains, otherwise an honest end."""

from collections.abc import Callable

from msgspec.structs import replace

from scrapeyard.model import ExitReason, Run, RunError, RunStatus, status_of
from scrapeyard.queues.deliveries import announce, deliver
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.jobs import BatchStore
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.telemetry.events import get_log

log = get_log("dispatch")
job_log = get_log("jobs")
RUNS = 500
BATCHES = 100
"""Taken over in one round."""


class ExpiredLeases:
    """Takes runs away from workers that fell silent. At most RUNS in one round; the next round takes the rest."""

    name = "leases"
    waits_after_outage = True

    def __init__(self, store: RunStore, queue: Queue, clock: Callable[[], float]) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock

    async def work(self) -> None:
        """One round."""
        for run in await self._store.expired(self._clock(), RUNS):
            if run.cancel_requested:
                await self._end(run, ExitReason.CANCELLED, "cancelled; its worker was lost before it could stop")
            elif run.attempt < run.max_attempts:
                await self._again(run)
            else:
                await self._end(run, ExitReason.LOST_WORKER, f"worker {run.worker_id or '?'} fell silent")

    async def _again(self, run: Run) -> None:
        now = self._clock()
        if not await self._store.retry(run.id, run.attempt, now):
            return
        log.warning("dispatch.taken_over", run=run.id, worker=run.worker_id, attempt=run.attempt + 1)
        queued = replace(run, status=RunStatus.QUEUED, attempt=run.attempt + 1, queued_at=now)
        await self._queue.publish([deliver(queued, redelivered=True)])
        await self._store.requeued([run.id], now)

    async def _end(self, run: Run, reason: ExitReason, words: str) -> None:
        now = self._clock()
        error = RunError(message=words, type="LostWorker")
        if not await self._store.end(run.id, run.attempt, reason, error, now):
            return
        log.warning("dispatch.lost_worker", run=run.id, worker=run.worker_id, exit_reason=reason.value)
        ended = replace(run, status=status_of(reason), exit_reason=reason, error=error, finished_at=now)
        await announce(self._queue, ended)


class ExpiredBatches:
    """Takes batches away from workers that fell silent. At most BATCHES in one round; the next round takes the rest."""

    name = "batch_leases"
    waits_after_outage = True

    def __init__(self, store: BatchStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def work(self) -> None:
        """One round."""
        for job_id, waiting, ended in await self._store.expire_batches(self._clock(), BATCHES):
            job_log.warning("jobs.batch_lost", job=job_id, waiting=waiting, ended=ended)
