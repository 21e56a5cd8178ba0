"""Recovers lost work: queued work that the queue does not hold, and running work whose worker is silent."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from msgspec.structs import replace

from scrapeyard.model import Delivery, ExitReason, Priority, Run, RunError, RunStatus, status_of
from scrapeyard.model.job import Batch, Job
from scrapeyard.queues.deliveries import announce, deliver, deliver_batch
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.jobs import BatchStore
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics

log = get_log("dispatch")
job_log = get_log("jobs")
GRACE_SECONDS = 5.0
"""Younger work may be between the queue and a row that says running."""
UNTOLD_SECONDS = 60.0
"""On a broker that cannot tell what waits longest, work that was published this long ago counts as lost. If it still
waits, the second delivery is dropped when it is taken."""
_LEAST = 500
_MOST = 16_000


class QueuedWork(Protocol):
    """A run or a batch that was handed to the queue."""

    @property
    def id(self) -> str: ...

    @property
    def lane(self) -> str: ...

    @property
    def priority(self) -> Priority: ...

    @property
    def queued_at(self) -> float: ...


P = TypeVar("P", bound=QueuedWork)


async def missing(queue: Queue, published: Sequence[P], now: float) -> list[P]:
    """Those that the queue does not hold any more."""
    if not queue.capabilities.tells_oldest:
        return [one for one in published if one.queued_at < now - UNTOLD_SECONDS]
    oldest: dict[tuple[str, Priority], float | None] = {}
    found = []
    for one in published:
        place = (one.lane, one.priority)
        if place not in oldest:
            oldest[place] = await queue.oldest(*place)
        first = oldest[place]
        if first is None or one.queued_at < first:
            found.append(one)
    return found


class Suspects:
    """Tells lost work from work that is just being taken: that is missing from the queue, too, until its row says so a
    moment later. What is missing in two rounds in a row is lost."""

    def __init__(self) -> None:
        self._before: frozenset[tuple[str, float]] = frozenset()

    def confirm(self, found: Sequence[P]) -> list[P]:
        """Those that were missing in the last round already."""
        lost = [one for one in found if (one.id, one.queued_at) in self._before]
        self._before = frozenset((one.id, one.queued_at) for one in found) - self._before
        return lost

    @property
    def any(self) -> bool:
        """Whether some must be looked at once more: the next round must read as many rows."""
        return bool(self._before)


class RowLimit:
    """How many rows to read per round. A full page may hold only work that still waits in one busy lane, so the next
    round reads more, until it reaches lost work."""

    def __init__(self) -> None:
        self.limit = _LEAST

    def seen(self, count: int) -> None:
        """Adapt the limit to the number of rows found."""
        self.limit = min(2 * self.limit, _MOST) if count >= self.limit else _LEAST


class LostDeliveries:
    """Publishes runs again that should be in the queue but are not.

    An extra delivery is harmless: the worker must claim a redelivered run in the store.
    """

    name = "lost"
    waits_after_outage = True

    def __init__(self, runs: RunStore, queue: Queue, clock: Callable[[], float]) -> None:
        self._runs = runs
        self._queue = queue
        self._clock = clock
        self._page = RowLimit()
        self._suspects = Suspects()

    async def run_once(self) -> None:
        """One round."""
        now = self._clock()
        due = await self._runs.due(now, now - GRACE_SECONDS, self._page.limit)
        later = [run for run in due if run.not_before is not None]
        lost = self._suspects.confirm(await missing(self._queue, [run for run in due if run.not_before is None], now))
        if not self._suspects.any:
            self._page.seen(len(due))
        if lost:
            log.warning("dispatch.lost_deliveries", count=len(lost))
        await self._publish([*later, *lost], now)

    async def _publish(self, runs: Sequence[Run], now: float) -> None:
        if not runs:
            return
        await self._queue.publish([deliver(replace(run, queued_at=now), redelivered=True) for run in runs])
        await self._runs.requeued([run.id for run in runs], now)


class LostBatches:
    """Publishes batches again that should be in the queue but are not: those older than the oldest in their queue.

    An extra delivery is harmless: the store lets a batch be taken once.
    """

    name = "lost_batches"
    waits_after_outage = True

    def __init__(self, store: Store, queue: Queue, clock: Callable[[], float]) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock
        self._page = RowLimit()
        self._suspects = Suspects()

    async def run_once(self) -> None:
        """One round."""
        now = self._clock()
        queued = await self._store.batches.queued(now - GRACE_SECONDS, self._page.limit)
        lost = self._suspects.confirm(await missing(self._queue, queued, now))
        if not self._suspects.any:
            self._page.seen(len(queued))
        if lost:
            job_log.warning("jobs.lost_batches", count=len(lost))
            await self._publish(lost, now)

    async def _publish(self, batches: Sequence[Batch], now: float) -> None:
        jobs = {job_id: await self._store.jobs.get(job_id) for job_id in {batch.job_id for batch in batches}}
        await self._queue.publish([_again(batch, job, now) for batch in batches if (job := jobs[batch.job_id])])
        await self._store.batches.requeued([batch.id for batch in batches], now)


def _again(batch: Batch, job: Job, now: float) -> Delivery:
    return replace(deliver_batch(replace(batch, queued_at=now), job), redelivered=True)


RUNS = 500
BATCHES = 100
"""Maximum taken over in one round."""


class ExpiredLeases:
    """Takes runs from silent workers, at most RUNS per round."""

    name = "leases"
    waits_after_outage = True

    def __init__(
        self, runs: RunStore, queue: Queue, clock: Callable[[], float], metrics: Metrics | None = None
    ) -> None:
        self._runs = runs
        self._queue = queue
        self._clock = clock
        self._metrics = metrics or Metrics()

    async def run_once(self) -> None:
        """One round."""
        for run in await self._runs.expired(self._clock(), RUNS):
            if run.cancel_requested:
                await self._end(run, ExitReason.CANCELLED, "cancelled; its worker was lost before it could stop")
            elif run.attempt < run.max_attempts:
                await self._again(run)
            else:
                await self._end(run, ExitReason.LOST_WORKER, f"worker {run.worker_id or '?'} fell silent")

    async def _again(self, run: Run) -> None:
        now = self._clock()
        if not await self._runs.retry(run.id, run.attempt, now):
            return
        self._metrics.lease_lost("run")
        log.warning("dispatch.taken_over", run=run.id, worker=run.worker_id, attempt=run.attempt + 1)
        queued = replace(run, status=RunStatus.QUEUED, attempt=run.attempt + 1, queued_at=now)
        await self._queue.publish([deliver(queued, redelivered=True)])
        await self._runs.requeued([run.id], now)

    async def _end(self, run: Run, reason: ExitReason, words: str) -> None:
        now = self._clock()
        error = RunError(message=words, type="LostWorker")
        if not await self._runs.end(run.id, run.attempt, reason, error, now):
            return
        self._metrics.lease_lost("run")
        log.warning("dispatch.lost_worker", run=run.id, worker=run.worker_id, exit_reason=reason.value)
        ended = replace(run, status=status_of(reason), exit_reason=reason, error=error, finished_at=now)
        await announce(self._queue, ended)


class ExpiredBatches:
    """Takes batches from silent workers, at most BATCHES per round."""

    name = "batch_leases"
    waits_after_outage = True

    def __init__(self, batches: BatchStore, clock: Callable[[], float], metrics: Metrics | None = None) -> None:
        self._batches = batches
        self._clock = clock
        self._metrics = metrics or Metrics()

    async def run_once(self) -> None:
        """One round."""
        for job_id, waiting, ended in await self._batches.expire(self._clock(), BATCHES):
            self._metrics.lease_lost("batch")
            job_log.warning("jobs.batch_lost", job=job_id, waiting=waiting, ended=ended)
