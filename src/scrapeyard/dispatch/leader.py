"""The dispatcher: one of several leads, feeds jobs to the queue, and runs each maintenance task in rounds."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from scrapeyard.blobs.port import Blobs
from scrapeyard.dispatch.feeding.feeder import Feeder, FeedLoop
from scrapeyard.dispatch.feeding.halting import ClientResume
from scrapeyard.dispatch.feeding.open_jobs import OpenJobs
from scrapeyard.dispatch.upkeep.archiving import Archiving
from scrapeyard.dispatch.upkeep.finishing import Finish, Finishing
from scrapeyard.dispatch.upkeep.job_retention import JobRetention, OrphanedBlobs, SnapshotRetention
from scrapeyard.dispatch.upkeep.lost_deliveries import (
    ExpiredBatches,
    ExpiredLeases,
    LostBatches,
    LostDeliveries,
)
from scrapeyard.dispatch.upkeep.retention import Retention
from scrapeyard.dispatch.upkeep.running_jobs import JobPoints, TimeLimits
from scrapeyard.dispatch.upkeep.untaken_lanes import UntakenLanes
from scrapeyard.errors import ScrapeyardError, StoreUnavailable
from scrapeyard.model import new_id
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics

log = get_log("dispatch")
ROLE = "dispatcher"
ROUND_SECONDS = 1.0
EAGER = frozenset({"reading", "following", "finishing", "exports"})
"""Tasks that somebody waits for: they have a round every `jobs.round_seconds`, and soon after `Dispatcher.wake`."""
FILLING = frozenset({"reading", "following"})
"""Tasks that give items to jobs."""
OF_JOBS = frozenset(
    {"reading", "following", "finishing", "batch_leases", "lost_batches", "time_limits", "client_resume"}
)
"""Tasks that have nothing to do while no job is open."""
LEAST_SECONDS = 0.05
"""Pause between two rounds of a task, however often it is woken."""
LEAD_SECONDS = 5.0
"""A leader silent for this long is replaced."""
STOP_SECONDS = 5.0
"""How long a running task may continue on stop; tasks may be interrupted anywhere."""


class MaintenanceTask(Protocol):
    """One thing the leader does."""

    name: str
    waits_after_outage: bool
    """Whether to wait, after a store outage, until workers have had time to renew their leases."""

    async def run_once(self) -> None:
        """One round. Whatever it raises is logged and tried again in the next round."""


class Dispatcher:
    """Keeps every accepted run and job moving towards a final state. `clock` gives Unix seconds.

    `finish` writes the files of a job whose items have all ended; None if there are none. `more` are additional tasks.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        queue: Queue,
        blobs: Blobs,
        clock: Callable[[], float] = time.time,
        *,
        finish: Finish | None = None,
        more: Sequence[MaintenanceTask] = (),
        metrics: Metrics | None = None,
    ) -> None:
        self.id = new_id("dispatcher")
        self.feeder = Feeder(settings, store, queue, clock)
        self._store = store
        self._clock = clock
        self._metrics = metrics = metrics or Metrics()
        self._eager_seconds = settings.jobs.round_seconds
        self._grace = 3 * settings.worker.heartbeat_seconds
        self._finishing = Finishing(store, finish, clock)
        self._duties: Sequence[MaintenanceTask] = (
            ExpiredLeases(store.runs, queue, clock, metrics),
            LostDeliveries(store.runs, queue, clock),
            ExpiredBatches(store.batches, clock, metrics),
            LostBatches(store, queue, clock),
            UntakenLanes(settings, store.workers, queue, clock),
            TimeLimits(store, clock),
            ClientResume(settings, store, clock),
            JobPoints(store.points, clock),
            self._finishing,
            Retention(settings, store, blobs, clock, metrics),
            JobRetention(settings, store, blobs, clock, metrics),
            SnapshotRetention(settings, store, clock, metrics),
            OrphanedBlobs(store, blobs, clock, metrics),
            Archiving(settings, store, blobs, clock),
            *more,
        )
        self._open_jobs = OpenJobs(store.jobs)
        self._feeding = FeedLoop(
            self.feeder, queue, settings.jobs.tick_seconds, self._surely_leads, open_jobs=self._open_jobs
        )
        self._leads = False
        self._leads_until = 0.0
        self._store_away = False
        self._quiet_until = 0.0
        self._stopping = asyncio.Event()
        self._woken: dict[str, asyncio.Event] = {name: asyncio.Event() for name in EAGER}
        self._called = asyncio.Event()
        """Set while the task loops must run: this process leads, or is stopping."""
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def leads(self) -> bool:
        """Whether the last round was done as leader."""
        return self._leads

    async def start(self) -> None:
        """Start in the background. May be called twice.

        Every task has its own loop: a slow one, such as removing a job of millions, delays neither the others nor the
        renewal of leadership.
        """
        if not self._tasks:
            self._stopping.clear()
            loops = [self._keep_leading(), *(self._keep_doing(duty) for duty in self._duties)]
            self._tasks = [asyncio.create_task(loop, name="dispatcher") for loop in loops]
            await self._feeding.start()
            self._metrics.watch("dispatcher_leads", lambda: float(self._leads))
            self._metrics.watch("dispatcher_lag_seconds", lambda: self._feeding.lag if self._leads else 0.0)

    async def stop(self) -> None:
        """Stop after the current tasks, and let another process lead at once. May be called twice."""
        tasks, self._tasks = self._tasks, []
        if tasks:
            self._stopping.set()
            self._called.set()
            self.wake()
            await self._feeding.stop()
            await _end(tasks)
            self._called.clear()
        await self._finishing.stop()
        if tasks:
            await self._resign()

    def wake(self) -> None:
        """Run the eager tasks soon, since items have ended. Call it where the items run in this process, for somebody
        who waits; elsewhere the next round is soon enough."""
        self._open_jobs.look_again()
        for woken in self._woken.values():
            woken.set()

    async def round(self) -> bool:
        """Lead if possible and run every task once. False if another process leads or the store is away."""
        leads = await self._poll()
        if leads:
            for duty in self._duties:
                await self._do(duty)
        return leads

    async def idle(self) -> None:
        """Wait until no files of finished jobs are being written."""
        await self._finishing.idle()

    async def _keep_leading(self) -> None:
        last = self._clock()
        while not self._stopping.is_set():
            now = self._clock()
            if now - last > LEAD_SECONDS:  # the machine slept or starved: workers here could not renew their leases
                self._quiet_until = now + self._grace
            last = now
            await self._poll()
            await self._rest(ROUND_SECONDS)

    async def _keep_doing(self, duty: MaintenanceTask) -> None:
        woken = self._woken.get(duty.name)
        while not self._stopping.is_set():
            await self._called.wait()
            if woken is not None:
                woken.clear()
            if self._surely_leads() and await self._is_needed(duty):
                await self._do(duty)
                if duty.name in FILLING:
                    self._feeding.wake()
            if woken is None:
                await self._rest(ROUND_SECONDS)
            else:
                await self._rest(LEAST_SECONDS)
                await self._rest(self._eager_seconds - LEAST_SECONDS, woken)

    async def _is_needed(self, duty: MaintenanceTask) -> bool:
        """If the store is away, the task itself finds out, and its failure is counted."""
        try:
            return duty.name not in OF_JOBS or await self._open_jobs.any()
        except ScrapeyardError:
            return True

    async def _rest(self, seconds: float, until: asyncio.Event | None = None) -> None:
        if self._stopping.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await (until or self._stopping).wait()

    async def _poll(self) -> bool:
        """Lead if possible."""
        leads = await self._lead()
        if leads != self._leads:
            log.info("dispatch.leads" if leads else "dispatch.follows", dispatcher=self.id)
            await self._changed(leads)
        return leads

    async def _changed(self, leads: bool) -> None:
        self._leads = leads
        if leads:
            self._called.set()
            self._feeding.wake()
        else:
            self._called.clear()
            await self._finishing.stop()

    def _surely_leads(self) -> bool:
        """Whether the lease on leadership is still valid: a process that stalled may have been replaced."""
        return self._leads and self._clock() < self._leads_until

    async def _lead(self) -> bool:
        now = self._clock()
        try:
            leads = await self._store.leaders.claim(ROLE, self.id, now, now + LEAD_SECONDS)
        except ScrapeyardError as error:
            self._failed("lead", error)
            return False
        if self._store_away:
            self._store_away = False
            self._quiet_until = now + self._grace
        self._leads_until = now + LEAD_SECONDS if leads else 0.0
        return leads

    async def _do(self, duty: MaintenanceTask) -> None:
        quiet = self._store_away or self._clock() < self._quiet_until
        if self._stopping.is_set() or (duty.waits_after_outage and quiet):
            return
        began, well = time.perf_counter(), True
        try:
            await duty.run_once()
        except Exception as error:  # noqa: BLE001  one task's error must not stop the others
            well = False
            self._failed(duty.name, error)
        self._metrics.duty_done(duty.name, time.perf_counter() - began, well=well)

    def _failed(self, duty: str, error: Exception) -> None:
        self._store_away = self._store_away or isinstance(error, StoreUnavailable)
        if isinstance(error, ScrapeyardError):
            log.warning("dispatch.duty_failed", duty=duty, error=error.message)
        else:
            log.error("dispatch.duty_broken", duty=duty, error=repr(error), exc_info=error)

    async def _resign(self) -> None:
        self._leads = False
        try:
            await self._store.leaders.resign(ROLE, self.id)
        except ScrapeyardError as error:
            self._failed("resign", error)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for the tasks, then cancel those that take too long."""
    _, slow = await asyncio.wait(tasks, timeout=STOP_SECONDS)
    for task in slow:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
