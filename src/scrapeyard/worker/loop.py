"""The worker: takes deliveries when a slot is free, runs them, replies, records outcomes, and shuts down cleanly."""

import asyncio
import os
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from scrapeyard import __version__
from scrapeyard.background import Background
from scrapeyard.errors import BadRequest, Unavailable
from scrapeyard.model import (
    Cancel,
    CancelJob,
    Delivery,
    ExitReason,
    Outcome,
    Priority,
    Refresh,
    Replay,
    Run,
    RunError,
    Watch,
    WorkerInfo,
)
from scrapeyard.model.worker import DrainWish
from scrapeyard.queues import messages as channels
from scrapeyard.queues.port import Queue
from scrapeyard.queues.signals import Signals
from scrapeyard.repository.catalogue.refresh import CoalescedRefresh
from scrapeyard.repository.port import Catalogue
from scrapeyard.sandbox.port import Sandbox
from scrapeyard.settings import WorkerSettings
from scrapeyard.store.ports.runs import Ending
from scrapeyard.store.ports.store import Store
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.events import bind, get_log
from scrapeyard.telemetry.metrics import Metrics
from scrapeyard.telemetry.spans import trace_id
from scrapeyard.telemetry.traces import TraceExporter
from scrapeyard.worker.attempts.environments import EnvironmentPrebuilder
from scrapeyard.worker.attempts.live import LiveViews
from scrapeyard.worker.attempts.slots import Pace, ParkedRuns, SlotLease, Slots, share_out
from scrapeyard.worker.batches.batches import Batches
from scrapeyard.worker.claims import Claims
from scrapeyard.worker.heartbeat import Heartbeat, load_per_core, own_memory_mb
from scrapeyard.worker.runs import Executor

log = get_log("worker")
_TAKE_SECONDS = 5.0
_BROKEN_SECONDS = 1.0
_CANCELS_REMEMBERED = 10_000


class Worker:
    """One worker. `start` begins to take; `stop` drains."""

    def __init__(
        self,
        *,
        worker_id: str,
        settings: WorkerSettings,
        slots: int,
        lanes: tuple[str, ...],
        queue: Queue,
        store: Store,
        recorder: Recorder,
        catalogue: Catalogue,
        sandbox: Sandbox,
        executor: Executor,
        batches: Batches,
        foresight: EnvironmentPrebuilder,
        engines: tuple[str, ...] = ("http",),
        traces: TraceExporter | None = None,
        live: LiveViews | None = None,
        metrics: Metrics | None = None,
        exit_process: Callable[[], None] | None = None,
    ) -> None:
        """`exit_process` ends the process of this worker, as SIGTERM does; None if other roles need it."""
        self.id = worker_id
        self._settings = settings
        self._slots = slots
        self._lanes = lanes
        self._shares = share_out(slots, settings.reserved_slots)
        self._queue = queue
        self._store = store
        self._recorder = recorder
        self._catalogue = catalogue
        self._sandbox = sandbox
        self._executor = executor
        self._batches = batches
        self._foresight = foresight
        self._engines = engines
        self._looks = CoalescedRefresh(self._poll, self._looked)
        self._signals = Signals(queue, "worker-signals", log=log)
        self._signals.subscribe(Cancel, lambda signal: self._cancel_run(signal.run_id))
        self._signals.subscribe(CancelJob, lambda signal: batches.kill_job(signal.job_id))
        self._signals.subscribe(Refresh, self._refresh)
        self._signals.subscribe(Replay, lambda signal: executor.replay(signal.run_id))
        if live is not None:
            self._signals.subscribe(Watch, lambda signal: live.watch(signal.run_id))
        self._outside = ParkedRuns()
        self._traces = traces
        self._metrics = metrics or Metrics()
        self._pace = Pace()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._deliveries: dict[str, Delivery] = {}
        self._claims = Claims(store.runs, worker_id, settings.lease_seconds)
        self._cancelled: set[str] = set()
        self._lost: set[str] = set()
        """Runs that the store told this worker to stop: cancelled, or held by another worker."""
        self._never_run: OrderedDict[str, None] = OrderedDict()
        self._stopping = False
        self._drain_wish: DrainWish = ""
        self._exit_process = exit_process
        self._done = 0
        self._started_at = time.time()
        self._background = Background()
        self._heartbeat = Heartbeat(
            store=store,
            recorder=recorder,
            every_seconds=settings.heartbeat_seconds,
            lease_seconds=settings.lease_seconds,
            describe=self.describe,
            running=self._renewable,
            stop_run=self._lose_run,
            renew_more=batches.renew,
            heed=self._heed,
        )

    async def start(self) -> None:
        """Register this worker and begin to take deliveries."""
        await self._batches.start()
        await self._foresight.start()
        await self._heartbeat.start()
        if not self._drain_wish:
            self._start_taking()
        await self._signals.start()
        self._metrics.watch("worker_slots", lambda: self._slots)
        self._metrics.watch("worker_busy_slots", lambda: self.busy)
        log.info("worker.started", worker=self.id, slots=self._slots, lanes=", ".join(self._lanes))

    async def stop(self) -> None:
        """Take no more, let running work finish for `drain_seconds`, hand the rest back. May be called twice."""
        if self._stopping:
            return
        self._stopping = True
        await self._stop_taking()
        await self._signals.stop()
        await self._looks.stop()
        await self._finish_work()
        await self._hand_back()
        await self._batches.stop()
        await self._foresight.stop()
        await self._heartbeat.stop()

    def _start_taking(self) -> None:
        self._background.start(*(partial(self._take_forever, share) for share in self._shares), name="worker-take")

    async def _stop_taking(self) -> None:
        """The first step of draining: runs go on, and batches give back the items that they have not begun."""
        if await self._background.stop():
            log.info("worker.draining", worker=self.id, running=self._held)
        self._batches.drain()

    async def _heed(self, wish: DrainWish) -> None:
        """Do what was asked of this worker through the API."""
        before, self._drain_wish = self._drain_wish, wish
        if self._stopping:
            return
        if wish:
            await self._stop_taking()
        elif before:
            log.info("worker.undrained", worker=self.id)
            self._batches.resume()
            self._start_taking()
        if wish == "exit" and not self._held and self._exit_process is not None:
            log.info("worker.drained", worker=self.id)
            self._exit_process()

    async def _finish_work(self) -> None:
        ends = time.monotonic() + self._settings.drain_seconds
        if self._running:
            await asyncio.wait(self._running.values(), timeout=self._settings.drain_seconds)
        await self._batches.wait(max(0.0, ends - time.monotonic()))

    @property
    def _held(self) -> int:
        return len(self._running) + len(self._batches)

    @property
    def busy(self) -> int:
        """Slots in use."""
        return sum(share.held for share in self._shares)

    def describe(self) -> WorkerInfo:
        """What the heartbeat reports."""
        return WorkerInfo(
            id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            lanes=self._lanes,
            takes=self._settings.takes,
            engines=self._engines,
            walls=tuple(wall.name for wall in self._sandbox.walls() if wall.up),
            slots=self._slots,
            busy=self.busy,
            running=self._held,
            draining=self._stopping or bool(self._drain_wish),
            drain=self._drain_wish,
            alone=self._exit_process is not None,
            started_at=self._started_at,
            seen_at=time.time(),
            runs_done=self._done + self._batches.items_done,
            load=load_per_core(),
            memory_mb=own_memory_mb(),
            run_seconds=self._pace.seconds,
            item_seconds=self._batches.pace.seconds,
            environments=self._foresight.states(),
        )

    async def _take_forever(self, share: Slots) -> None:
        while True:
            for delivery in await self._take(await share.room(), share.priorities):
                self._begin(delivery, share)

    async def _take(self, count: int, priorities: Sequence[Priority]) -> list[Delivery]:
        try:
            return await self._queue.take(self._lanes, count, priorities, _TAKE_SECONDS)
        except Exception as error:  # a worker that no longer takes deliveries would look idle
            log.error("worker.take_broken", error=repr(error), exc_info=error)
            await asyncio.sleep(_BROKEN_SECONDS)
            return []

    def _begin(self, delivery: Delivery, share: Slots) -> None:
        if delivery.job_id:
            self._batches.begin(delivery, share, SlotLease(delivery.run_id, share, self._outside))
            return
        if delivery.run_id in self._running or delivery.run_id in self._never_run:
            return
        share.hold(delivery.run_id)
        self._deliveries[delivery.run_id] = delivery
        claim = self._claims.start(delivery) if delivery.redelivered else None
        task = asyncio.create_task(self._handle(delivery, SlotLease(delivery.run_id, share, self._outside), claim))
        self._running[delivery.run_id] = task
        task.add_done_callback(lambda _: self._free(delivery.run_id, share))

    def _free(self, run_id: str, share: Slots) -> None:
        self._running.pop(run_id, None)
        self._deliveries.pop(run_id, None)
        self._cancelled.discard(run_id)
        self._lost.discard(run_id)
        share.free(run_id)

    async def _handle(self, delivery: Delivery, seat: SlotLease, claim: asyncio.Task[bool] | None) -> None:
        if claim is not None and not await claim:
            return
        bind(run=delivery.run_id, trace=trace_id(delivery.traceparent))
        began = time.perf_counter()
        run = self._claims.begun(delivery)
        self._recorder.begin(run)
        log.info("run.started", run=run.id, scraper=run.scraper, attempt=run.attempt)
        outcome = await self._execute(delivery, seat, run)
        self._recorder.finish(Ending(run=run, outcome=outcome))
        self._done += 1
        self._pace.add(time.perf_counter() - began)
        self._metrics.run_ended(outcome)
        await self._reply(delivery, outcome)
        self._report(delivery, outcome)

    async def _execute(self, delivery: Delivery, seat: SlotLease, run: Run) -> Outcome:
        if delivery.run_id in self._cancelled:  # asked for while it was claimed
            return self._was_cancelled(delivery, run)
        try:
            return await self._executor.execute(delivery, seat)
        except asyncio.CancelledError:
            if delivery.run_id not in self._cancelled:
                raise
            return self._was_cancelled(delivery, run)

    def _was_cancelled(self, delivery: Delivery, run: Run) -> Outcome:
        return Outcome(
            run_id=delivery.run_id,
            attempt=delivery.attempt,
            exit_reason=ExitReason.CANCELLED,
            error=RunError(message="the run was cancelled while it ran"),
            worker_id=self.id,
            started_at=run.started_at or 0.0,
            finished_at=time.time(),
        )

    async def _reply(self, delivery: Delivery, outcome: Outcome) -> None:
        """Reply to the waiting gateway. If the queue is away, the gateway finds the outcome in the store. The same if
        another worker may hold the run now, since only the store knows whether our outcome counts."""
        if not delivery.reply_to or outcome.retry_after is not None:
            return
        if delivery.run_id in self._lost or not self._heartbeat.certain:
            return
        told = replace(outcome, logs=(), steps=())
        try:
            await self._queue.send(channels.replies(delivery.reply_to), channels.encode(told))
        except (Unavailable, BadRequest) as error:
            log.warning("worker.reply_lost", run=delivery.run_id, error=error.message)

    def _report(self, delivery: Delivery, outcome: Outcome) -> None:
        log.info(
            "run.finished",
            run=delivery.run_id,
            scraper=str(outcome.scraper or delivery.scraper),
            exit_reason=outcome.exit_reason.value,
            wall_ms=outcome.usage.wall_ms,
            attempt=delivery.attempt,
        )
        if self._traces is not None:
            self._traces.run_ended(outcome, delivery.traceparent, delivery.queued_at)

    def _refresh(self, _: Refresh) -> None:
        """Refresh in the background, so that cancel signals are received while a slow repository is polled."""
        self._looks.request()

    async def _poll(self) -> None:
        await self._catalogue.refresh()
        self._foresight.look()

    def _looked(self, error: BaseException | None) -> None:
        if error is not None:
            log.error("worker.signal_broken", error=repr(error), exc_info=error)

    def _renewable(self) -> dict[str, asyncio.Task[None]]:
        """Runs whose leases this worker holds. A run that is being claimed is still QUEUED in the store, which would
        tell this worker to stop it."""
        return {run_id: task for run_id, task in self._running.items() if run_id not in self._claims}

    def _lose_run(self, run_id: str, task: asyncio.Task[None]) -> None:
        """Stop a run. `task` ran it when the store was asked; a later attempt of the same run goes on."""
        if self._running.get(run_id) is task:
            self._lost.add(run_id)
            self._cancel_run(run_id)

    def _cancel_run(self, run_id: str) -> None:
        task = self._running.get(run_id)
        if task is None:
            self._remember_cancel(run_id)
        elif run_id not in self._cancelled:
            self._cancelled.add(run_id)
            if run_id not in self._claims:
                task.cancel()

    def _remember_cancel(self, run_id: str) -> None:
        """Remember a cancelled run whose delivery may still be in the queue, so that it is not run for nothing."""
        self._never_run[run_id] = None
        if len(self._never_run) > _CANCELS_REMEMBERED:
            self._never_run.popitem(last=False)

    async def _hand_back(self) -> None:
        """Requeue what still runs after `drain_seconds`, for another worker, with the same attempt number. It waits for
        open claims first: a run that is claimed after its release would wait for the end of its lease."""
        await self._claims.wait()
        left = dict(self._deliveries)
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not left:
            return
        now = time.time()
        log.info("worker.handed_back", worker=self.id, count=len(left))
        try:
            await self._recorder.flush()
            await self._store.runs.release(list(left), self.id, now)
            await self._queue.publish(
                [replace(delivery, redelivered=True, queued_at=now) for delivery in left.values()]
            )
        except Unavailable as error:
            log.warning("worker.hand_back_lost", error=error.message)
