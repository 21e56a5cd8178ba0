"""The batches of one worker: taking, running item by item, recording in parts, renewing leases, draining, killing."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.port import Caller
from scrapeyard.errors import Unavailable
from scrapeyard.model import Backoff, Delivery, Outcome, Scraper
from scrapeyard.model.job import BY_BUDGET, Batch, BatchItem, ItemOutcome, Job, JobStatus
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.sandbox.port import Verdict
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.spans import item_traced, job_span
from scrapeyard.telemetry.traces import TraceExporter
from scrapeyard.worker.attempts.parts import AttemptParts, AttemptPlan
from scrapeyard.worker.attempts.retrying import RetryRules
from scrapeyard.worker.attempts.slots import Pace, SlotLease, Slots
from scrapeyard.worker.attempts.steps import limits_of, refused
from scrapeyard.worker.attempts.waiting import SiteWait
from scrapeyard.worker.batches.items import ItemAttempt, refused_outcome
from scrapeyard.worker.batches.records import BatchRecords

SLICE_SECONDS = 0.001


class LoopFairness:
    """Shares the event loop among all batches of a worker: callers continue one at a time, in order of arrival."""

    def __init__(self) -> None:
        self._ends = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def maybe_yield(self) -> None:
        """Call it before each small piece of work. Returns at once until the current millisecond is used up."""
        if time.perf_counter() < self._ends:
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._next)
        await turn

    def _next(self) -> None:
        """Resume one caller per loop iteration, so that network events are served in between."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._ends = time.perf_counter() + SLICE_SECONDS
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)


log = get_log("worker")


class BatchParts(Struct, frozen=True, kw_only=True):
    """The services that batches run with."""

    store: Store
    attempts: AttemptParts
    sites: Sites
    hear: Callable[[ItemOutcome], None] = lambda _: None
    """Called with each outcome before it is recorded, also with that of an attempt that is not the last."""
    ended: Callable[[], None] = lambda: None
    """Called when a batch has ended and its outcomes are recorded."""
    traces: TraceExporter | None = None
    """Where traces of items go; None: nowhere."""
    trace_share: float = 0.0
    """Of the items of a traced job."""


class Batches:
    """All batches that a worker holds. Each takes one slot."""

    def __init__(self, parts: BatchParts, worker_id: str, lease_seconds: float) -> None:
        self._parts = parts
        self._worker_id = worker_id
        self._lease = lease_seconds
        self._turns = LoopFairness()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._held: dict[str, _Held] = {}
        self._draining = False
        self.items_done = 0
        self.pace = Pace()

    def __len__(self) -> int:
        return len(self._tasks)

    async def start(self) -> None:
        """Load the public suffix list now, in a thread: loading it later would block the event loop."""
        await asyncio.to_thread(self._parts.sites.of, "shop.example")

    def begin(self, delivery: Delivery, share: Slots, seat: SlotLease) -> None:
        """Run a delivery in a slot of this share; drops a delivery that is already running here."""
        batch_id = delivery.run_id
        if batch_id in self._tasks or self._draining:
            return
        share.hold(batch_id)
        task = asyncio.create_task(self._handle(delivery, seat))
        self._tasks[batch_id] = task
        task.add_done_callback(lambda _: self._free(batch_id, share))

    def kill_job(self, job_id: str) -> None:
        """Kill the job's batches and their children; items without an outcome go back to the queue."""
        for held in list(self._held.values()):
            if held.job.id == job_id:
                held.stop()

    async def renew(self, lease_until: float) -> None:
        """Renew all leases, and stop the batches that the store says to stop. Raises StoreUnavailable."""
        held = dict(self._held)
        if not held:
            return
        lost = set(await self._parts.store.batches.renew(self._worker_id, list(held), lease_until))
        for batch_id, one in held.items():
            if batch_id in lost:
                one.stop()
            else:
                one.records.lease_until = lease_until

    def drain(self) -> None:
        """Let each batch finish its current items and give the rest back."""
        self._draining = True
        for held in self._held.values():
            held.draining = True

    def resume(self) -> None:
        """Take batches again; those that were told to give their rest back still do."""
        self._draining = False

    async def wait(self, seconds: float) -> None:
        """Wait until all batches are done, at most `seconds`."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)

    async def stop(self) -> None:
        """Kill the remaining batches, record their outcomes, give the rest back. May be called twice."""
        self.drain()
        tasks = list(self._tasks.values())
        for held in list(self._held.values()):
            held.stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _free(self, batch_id: str, share: Slots) -> None:
        self._tasks.pop(batch_id, None)
        share.free(batch_id)

    async def _handle(self, delivery: Delivery, seat: SlotLease) -> None:
        try:
            taken = await self._take(delivery)
            if taken is not None:
                await self._run(*taken, seat)
        except Exception as error:  # the dispatcher finds the batch when its lease expires
            log.error("batch.broken", batch=delivery.run_id, job=delivery.job_id, error=repr(error), exc_info=error)

    async def _take(self, delivery: Delivery) -> tuple[Batch, Job, list[BatchItem], float] | None:
        now = time.time()
        try:
            taken = await self._parts.store.batches.take(delivery.run_id, self._worker_id, now, now + self._lease)
        except Unavailable as error:
            log.warning("batch.take_lost", batch=delivery.run_id, error=error.message)
            return None
        return None if taken is None else (*taken, now + self._lease)

    async def _run(self, batch: Batch, job: Job, items: list[BatchItem], lease_until: float, seat: SlotLease) -> None:
        held = _Held(self._parts, self._turns, batch, job, items, lease_until)
        held.draining = self._draining
        self._held[batch.id] = held
        began = time.perf_counter()
        try:
            await held.run(seat)
        finally:
            del self._held[batch.id]
            self.items_done += held.done
            if held.done:
                self.pace.add((time.perf_counter() - began) / held.done, held.done)


class _Held:
    """One batch held by this worker."""

    def __init__(  # noqa: PLR0917 - what the store gave, in its order
        self,
        parts: BatchParts,
        turns: LoopFairness,
        batch: Batch,
        job: Job,
        items: Sequence[BatchItem],
        lease_until: float,
    ) -> None:
        self.job = job
        self.draining = False
        self.done = 0
        self.records = BatchRecords(parts.store.batches, batch, lease_until, self.stop, self._on_written)
        self._span = job_span(job.traceparent, job.id) if parts.traces is not None else None
        self._traced: dict[tuple[int, int], str] = {}
        """Names of traced items that ended and are not written yet, by number and attempt."""
        self._parts = parts
        self._turns = turns
        self._batch = batch
        self._items = deque(items)
        self._work: asyncio.Task[None] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Kill running items; record the finished ones and give the rest back. May be called twice."""
        self._stopped = True
        if self._work is not None:
            self._work.cancel()

    async def run(self, seat: SlotLease) -> None:
        """Run to the end. Raises CancelledError only if cancelled itself."""
        began = time.perf_counter()
        recording = asyncio.create_task(self.records.run())
        self._work = asyncio.create_task(self._run_items(seat))
        if self._stopped:
            self._work.cancel()
        try:
            await asyncio.wait((self._work,))
        finally:
            self._work.cancel()
            await asyncio.wait((self._work,))
            self.records.end()
            await asyncio.wait((recording,))
            await self._give_back()
            self._parts.ended()
        seconds = round(time.perf_counter() - began, 3)
        log.debug("batch.finished", batch=self._batch.id, job=self.job.id, items=self.done, seconds=seconds)
        for task in (self._work, recording):
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _give_back(self) -> None:
        """Give back items without an outcome, if this worker still holds the batch."""
        if self.records.refused or not self.records.left:
            return
        try:
            await self._parts.store.batches.give_back(self._batch.id, self._batch.worker_id, time.time())
        except Unavailable as error:
            log.warning("batch.not_given_back", batch=self._batch.id, left=self.records.left, error=error.message)

    async def _run_items(self, seat: SlotLease) -> None:
        try:
            plan = await self._prepare(seat)
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the items, never the worker
            await self._refuse(refused(self._batch.id, error))
            return
        try:
            upcoming = self._upcoming()
            async with asyncio.TaskGroup() as lanes:
                for _ in range(self._at_once(plan.prepared.scraper)):
                    lanes.create_task(self._run_lane(plan, upcoming))
        finally:
            if plan.series is not None:
                plan.series.close()
            await plan.site_wait.close()

    async def _prepare(self, seat: SlotLease) -> AttemptPlan:
        job, policy, parts = self.job, self.job.policy, self._parts.attempts
        scraper = await parts.find(job.pinned, job.digest, seat)
        fetching = policy.fetching.over(scraper.policy.fetching)
        shares_child = policy.isolation == "job" and not scraper.is_builtin
        prepared = await parts.prepare(scraper, seat)
        return AttemptPlan(
            prepared=prepared,
            limits=limits_of(scraper, policy.timeout_seconds),
            caller=Caller(
                scraper=prepared.scraper,
                job_id=job.id,
                client=job.owner,
                has_rate=policy.rate is not None,
                policy=fetching,
                job_budget=policy.budget,
            ),
            retries=_retries(job, policy.backoff.over(fetching.backoff)),
            site_wait=SiteWait(seat),
            series=parts.sandbox.series(scraper) if shares_child else None,
        )

    def _at_once(self, scraper: Scraper) -> int:
        """How many items run concurrently; scripts run one after another, because a batch has one slot."""
        if not scraper.is_builtin:
            return 1
        return max(1, min(self.job.policy.abreast, len(self._items)))

    def _upcoming(self) -> Iterator[BatchItem]:
        while self._items and not self.draining:
            yield self._items.popleft()

    async def _run_lane(self, plan: AttemptPlan, upcoming: Iterator[BatchItem]) -> None:
        parts = self._parts
        await self._turns.maybe_yield()
        for item in upcoming:
            if not await self.records.begin():
                return
            is_first = not self._batch.again
            is_traced = self._span is not None and item_traced(self.job.id, item.seq, parts.trace_share)
            attempt = ItemAttempt(
                parts.attempts, plan, parts.sites, self.job, item, is_first=is_first, is_traced=is_traced
            )
            log.debug("item.started", job=self.job.id, item=item.key, attempt=item.attempt)
            outcome = await attempt.run()
            self._report(item, outcome)
            self._trace(item, attempt.trace)
            await self._keep(outcome)
            self.done += 1
            if attempt.spent is not None and not self.draining:
                self.draining = True
                await self._pause_job(attempt.spent)
            await self._turns.maybe_yield()

    def _trace(self, item: BatchItem, ended: Outcome | None) -> None:
        if ended is not None and self._parts.traces is not None and self._span is not None:
            self._traced[item.seq, item.attempt] = ended.run_id
            self._parts.traces.item_ended(replace(ended, worker_id=self._batch.worker_id), self._span)

    def _on_written(self, part: Sequence[ItemOutcome], start: float, end: float) -> None:
        if self._traced and self._parts.traces is not None:
            ended = ((outcome.seq, outcome.attempt) for outcome in part)
            names = [(self._traced.pop(each), each[1]) for each in ended if each in self._traced]
            self._parts.traces.items_recorded(names, start, end)

    def _report(self, item: BatchItem, outcome: ItemOutcome) -> None:
        log.debug(
            "item.finished",
            job=self.job.id,
            item=item.key,
            attempt=item.attempt,
            exit_reason=outcome.exit_reason.value,
            again=outcome.not_before is not None,
        )

    async def _pause_job(self, spent: dict[str, Any]) -> None:
        """The job's budget is used up: hand nothing out until somebody raises it and resumes the job. The dispatcher
        would see it later, in what recorded items used, and not if a worker that spent some was lost."""
        store = self._parts.store
        try:
            job = await store.jobs.get(self.job.id)
            if job is None or job.status not in (JobStatus.CREATING, JobStatus.RUNNING):
                return
            if job.policy.budget != self.job.policy.budget:  # raised since this batch was taken
                return
            data = Raw(msgspec.json.encode(spent))
            await store.jobs.pause_and_tell(job.id, BY_BUDGET, JobEventKind.BUDGET, data, time.time())
        except Unavailable as error:
            log.warning("batch.not_paused", job=self.job.id, error=error.message)

    async def _refuse(self, verdict: Verdict) -> None:
        retries = _retries(self.job, self.job.policy.backoff)
        for item in self._upcoming():
            await self._turns.maybe_yield()
            await self._keep(refused_outcome(verdict, retries, item))
            self.done += 1

    async def _keep(self, outcome: ItemOutcome) -> None:
        self._parts.hear(outcome)
        await self.records.add(outcome)


def _retries(job: Job, backoff: Backoff) -> RetryRules:
    return RetryRules(max_attempts=job.policy.max_attempts, backoff=backoff, awaited=False)
