"""The feeder: cuts batches from jobs and keeps a small window of them waiting in each lane, never more."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from scrapeyard.dispatch.deliveries import deliver_batch
from scrapeyard.dispatch.feeding.breaker import JobBreakers
from scrapeyard.dispatch.feeding.budget import JobBudgets
from scrapeyard.dispatch.feeding.fair_share import Claim, FairShare
from scrapeyard.dispatch.feeding.job_rate import TokenBucket
from scrapeyard.dispatch.feeding.pace import Pace, batch_items
from scrapeyard.dispatch.feeding.shares import Lanes
from scrapeyard.model import Priority, new_id
from scrapeyard.model.job import Batch, Job
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import BatchStore, ItemStore, JobStore
from scrapeyard.store.ports.runs import WorkerStore

FORGET_SECONDS = 300.0
"""What was learned of a job is kept so long after it last had something to hand out."""
WAITING_SECONDS = 1.0
"""A job with a rate has no more waiting than so much of it, so that it is not caught up on all at once."""


class FeedStore(JobStore, BatchStore, ItemStore, WorkerStore, Protocol):
    """What is needed of the store."""


class _Known(Struct):
    """What the leader learned of a job. All of it may be lost: a new leader learns it again."""

    pace: Pace
    bucket: TokenBucket
    seen_at: float


class _Able(Struct):
    """A job that may be handed something in this round."""

    job: Job
    known: _Known
    pending: int
    allowed: int
    """Items that its rate, concurrency and breaker let through now."""


class Feeder:
    """One round reads the jobs that have something to hand out and fills the room that their lanes have.

    Killed between cut and publish, a batch stands in the store as queued and is found by LostBatches.
    """

    def __init__(self, settings: Settings, store: FeedStore, queue: Queue, clock: Callable[[], float]) -> None:
        self._settings = settings.jobs
        self._store = store
        self._queue = queue
        self._clock = clock
        self._lanes = Lanes(settings, store, queue, clock)
        self._breakers = JobBreakers(store, clock)
        self._budgets = JobBudgets(store, settings.budget.warn_share, clock)
        self._shares: dict[str, FairShare] = {}
        self._known: dict[str, _Known] = {}

    async def feed(self) -> int:
        """One round. Returns how many jobs have something to hand out."""
        jobs = await self._store.runnable(self._clock())
        by_lane: dict[str, list[_Able]] = {}
        for job in jobs:
            by_lane.setdefault(job.lane, []).append(await self._consider(job))
        self._forget()
        if not jobs:
            return 0
        await self._lanes.look()
        for lane, able in by_lane.items():
            await self._fill(lane, able)
        return len(jobs)

    async def _consider(self, job: Job) -> _Able:
        now = self._clock()
        known = self._learn(job, now)
        allowed = min(job.counts.pending, await self._breakers.allow(job))
        if not await self._budgets.allows(job):
            allowed = 0
        allowed = min(allowed, _by_policy(job, known.bucket, now))
        return _Able(job=job, known=known, pending=job.counts.pending, allowed=allowed)

    def _learn(self, job: Job, now: float) -> _Known:
        known = self._known.get(job.id)
        if known is None:
            burst = 0 if job.started_at is not None else job.policy.burst
            known = self._known[job.id] = _Known(pace=Pace(), bucket=TokenBucket(burst, now), seen_at=now)
        known.seen_at = now
        known.pace.hear(job, self._settings.batch_items)
        return known

    def _forget(self) -> None:
        before = self._clock() - FORGET_SECONDS
        for job_id in [job_id for job_id, known in self._known.items() if known.seen_at < before]:
            del self._known[job_id]
            self._breakers.forget(job_id)
            self._budgets.forget(job_id)

    async def _fill(self, lane: str, jobs: Sequence[_Able]) -> None:
        """Batches are published as soon as some are cut: workers need not wait for the last one."""
        share = self._shares.setdefault(lane, FairShare())
        share.heed([Claim(job_id=able.job.id, owner=able.job.owner, priority=able.job.priority) for able in jobs])
        able = {one.job.id: one for one in jobs if one.allowed > 0}
        for _ in range(self._lanes.room(lane)):
            claim = share.choose(able)
            if claim is None:
                return
            one = able[claim.job_id]
            batch = await self._cut(one)
            if batch is not None:
                await self._queue.publish([deliver_batch(batch, one.job)])
                seconds = one.known.pace.cost(batch.left, self._settings.batch_seconds)
                share.charge(claim, seconds)
                self._lanes.added(lane, seconds)
            if batch is None or one.allowed <= 0:
                del able[claim.job_id]

    async def _cut(self, able: _Able) -> Batch | None:
        """None: it has nothing to hand out after all."""
        wanted = batch_items(
            able.job,
            able.known.pace,
            pending=able.pending,
            slots=self._lanes.slots(able.job.lane),
            batch_seconds=self._settings.batch_seconds,
        )
        now = self._clock()
        batch = await self._store.cut(_new_batch(able.job, min(wanted, able.allowed), now), now)
        if batch is not None:
            able.pending -= batch.left
            able.allowed -= batch.left
            if able.job.policy.rate is not None:
                able.known.bucket.take(batch.left)
        return batch


def _by_policy(job: Job, bucket: TokenBucket, now: float) -> int:
    """What its rate and concurrency let through now."""
    policy, counts = job.policy, job.counts
    allowed = counts.pending
    if policy.concurrency is not None:
        allowed = min(allowed, policy.concurrency - counts.queued - counts.in_progress)
    if policy.rate is not None:
        waiting = max(1, int(policy.rate * WAITING_SECONDS), policy.burst)
        allowed = min(allowed, bucket.fill(policy.rate, policy.burst, now), waiting - counts.queued)
    return allowed


def _new_batch(job: Job, items: int, now: float) -> Batch:
    """Always of low priority: an interactive run never waits behind it in the queue."""
    return Batch(id=new_id("batch"), job_id=job.id, left=items, lane=job.lane, priority=Priority.LOW, queued_at=now)
