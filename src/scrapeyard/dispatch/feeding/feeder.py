"""The feeder: while this process leads, it cuts batches from jobs and keeps a small window of them queued per lane."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct

from scrapeyard.dispatch.feeding.halting import ClientHalt, JobBreakers, JobBudgets
from scrapeyard.dispatch.feeding.open_jobs import OpenJobs
from scrapeyard.dispatch.feeding.pace import BatchPace, TokenBucket, batch_items
from scrapeyard.dispatch.feeding.shares import Claim, FairShare, LaneWindows
from scrapeyard.errors import ScrapeyardError
from scrapeyard.model import Priority, new_id
from scrapeyard.model.job import Batch, Job
from scrapeyard.queues import messages as channels
from scrapeyard.queues.deliveries import deliver_batch
from scrapeyard.queues.port import Queue
from scrapeyard.queues.signals import Subscription
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

FORGET_SECONDS = 300.0
"""How long the leader remembers a job after it last had items to hand out."""
WAITING_SECONDS = 1.0
"""Seconds of a job's rate that may wait in the queue, so that a delay is not caught up on all at once."""


class _Known(Struct):
    """What the leader has measured about a job. It may be lost: a new leader measures it again."""

    pace: BatchPace
    bucket: TokenBucket
    seen_at: float


class _Able(Struct):
    """A job that may receive a batch in this round."""

    job: Job
    known: _Known
    pending: int
    allowed: int
    """Items that its rate, concurrency and breaker allow now."""


class Feeder:
    """Each round reads the jobs that have items to hand out and fills the room in their lanes.

    If the process is killed between cut and publish, the batch stays queued in the store and LostBatches publishes it.
    """

    def __init__(self, settings: Settings, store: Store, queue: Queue, clock: Callable[[], float]) -> None:
        self._settings = settings.jobs
        self._store = store
        self._queue = queue
        self._clock = clock
        self._lanes = LaneWindows(settings, store.workers, queue, clock)
        self._breakers = JobBreakers(store, clock)
        self._budgets = JobBudgets(store, settings.budget.warn_share, clock)
        self._clients = ClientHalt(store, settings.clients.as_limits(), clock)
        self._shares: dict[str, FairShare] = {}
        self._known: dict[str, _Known] = {}

    async def feed(self) -> int:
        """Run one round. Returns how many jobs have items to hand out."""
        jobs = await self._store.jobs.runnable(self._clock())
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
        if not await self._budgets.allows(job) or not await self._clients.allows(job):
            allowed = 0
        allowed = min(allowed, _by_policy(job, known.bucket, now))
        return _Able(job=job, known=known, pending=job.counts.pending, allowed=allowed)

    def _learn(self, job: Job, now: float) -> _Known:
        known = self._known.get(job.id)
        if known is None:
            burst = 0 if job.started_at is not None else job.policy.burst
            known = self._known[job.id] = _Known(pace=BatchPace(), bucket=TokenBucket(burst, now), seen_at=now)
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
        """Publish each batch as soon as it is cut, so that workers need not wait for the last one."""
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
        """Cut one batch. None if the job has nothing to hand out after all."""
        wanted = batch_items(
            able.job,
            able.known.pace,
            pending=able.pending,
            slots=self._lanes.slots(able.job.lane),
            batch_seconds=self._settings.batch_seconds,
        )
        now = self._clock()
        batch = await self._store.batches.cut(_new_batch(able.job, min(wanted, able.allowed), now), now)
        if batch is not None:
            able.pending -= batch.left
            able.allowed -= batch.left
            if able.job.policy.rate is not None:
                able.known.bucket.take(batch.left)
        return batch


def _by_policy(job: Job, bucket: TokenBucket, now: float) -> int:
    """Items that its rate and concurrency allow now."""
    policy, counts = job.policy, job.counts
    allowed = counts.pending
    if policy.concurrency is not None:
        allowed = min(allowed, policy.concurrency - counts.queued - counts.in_progress)
    if policy.rate is not None:
        waiting = max(1, int(policy.rate * WAITING_SECONDS), policy.burst)
        allowed = min(allowed, bucket.fill(policy.rate, policy.burst, now), waiting - counts.queued)
    return allowed


def _new_batch(job: Job, items: int, now: float) -> Batch:
    """Always of low priority, so that an interactive run never waits behind a batch."""
    return Batch(id=new_id("batch"), job_id=job.id, left=items, lane=job.lane, priority=Priority.LOW, queued_at=now)


log = get_log("dispatch")
IDLE_SECONDS = 0.5
"""Pause between rounds while no job has items to hand out; a wake-up ends it early."""
FAILED_SECONDS = 1.0
_REST = 0.5
"""The pause after a round, as a share of the round's length, so that many jobs do not use a whole core. At most one
tick: after a round that is slow because the store is busy, slots must not run empty."""


class FeedLoop:
    """Feeds every `tick_seconds`, or at once when a job arrives while idle. `leads` says whether this process leads."""

    def __init__(
        self, feeder: Feeder, queue: Queue, tick_seconds: float, leads: Callable[[], bool], *, open_jobs: OpenJobs
    ) -> None:
        self._feeder = feeder
        self._open_jobs = open_jobs
        self._tick = tick_seconds
        self._leads = leads
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._arrivals = Subscription(queue, channels.FEED, lambda _: self.wake(), name="feeder-arrivals")
        self._task: asyncio.Task[None] | None = None
        self._fed_at = time.monotonic()

    @property
    def lag(self) -> float:
        """Seconds since the last round ended without a fault."""
        return time.monotonic() - self._fed_at

    async def start(self) -> None:
        """Start in the background. May be called twice."""
        if self._task is None:
            self._stopping.clear()
            self._task = asyncio.create_task(self._run(), name="feeder")
            await self._arrivals.start()

    async def stop(self) -> None:
        """Stop after the current round, so that no batch is cut but not published. May be called twice."""
        task, self._task = self._task, None
        if task is not None:
            self._stopping.set()
            self._woken.set()
            await self._arrivals.stop()
            await asyncio.gather(task, return_exceptions=True)

    def wake(self) -> None:
        """Notify the loop that a job may have items to hand out."""
        self._open_jobs.look_again()
        self._woken.set()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            began = time.perf_counter()
            rest = await self._round() if self._leads() else self._follow()
            took = time.perf_counter() - began
            least = max(self._tick - took, min(_REST * took, self._tick))
            await _pass(self._stopping, least)
            if rest > self._tick:
                await _pass(self._woken, rest - least)

    async def _round(self) -> float:
        """Run one round; returns how long to pause afterwards."""
        try:
            is_fed = await self._open_jobs.any() and await self._feeder.feed()
            rest = self._tick if is_fed else IDLE_SECONDS
            self._fed_at = time.monotonic()
        except ScrapeyardError as error:
            log.warning("dispatch.duty_failed", duty="feeder", error=error.message)
        except Exception as error:  # one internal error must not stop all jobs
            log.error("dispatch.duty_broken", duty="feeder", error=repr(error), exc_info=error)
        else:
            return rest
        return FAILED_SECONDS

    def _follow(self) -> float:
        self._fed_at = time.monotonic()
        return IDLE_SECONDS


async def _pass(unless: asyncio.Event, seconds: float) -> None:
    """Sleep for `seconds`, or until the event is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await unless.wait()
