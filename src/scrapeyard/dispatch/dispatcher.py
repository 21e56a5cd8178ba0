"""The dispatcher: among several one leads, feeds jobs to the queue, and does each duty about once a second."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from scrapeyard.blobs.port import Blobs
from scrapeyard.dispatch.batch_leases import ExpiredBatches
from scrapeyard.dispatch.feed_loop import FeedLoop
from scrapeyard.dispatch.feeder import Feeder
from scrapeyard.dispatch.finishing import Finish, Finishing
from scrapeyard.dispatch.job_retention import JobRetention
from scrapeyard.dispatch.leases import ExpiredLeases
from scrapeyard.dispatch.lost import LostDeliveries
from scrapeyard.dispatch.lost_batches import LostBatches
from scrapeyard.dispatch.recover import TakenDeliveries
from scrapeyard.dispatch.retention import Retention
from scrapeyard.errors import ScrapeyardError, StoreUnavailable
from scrapeyard.model import new_id
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings
from scrapeyard.store.port import Store
from scrapeyard.telemetry.events import get_log

log = get_log("dispatch")
ROLE = "dispatcher"
ROUND_SECONDS = 1.0
LEAD_SECONDS = 5.0
"""A leader that was silent so long is replaced."""


class Duty(Protocol):
    """One thing the leader does."""

    name: str
    waits_after_outage: bool
    """Whether it must wait, after the store was away, until workers had time to renew their leases."""

    async def work(self) -> None:
        """One round. Whatever it raises is logged and tried again in the next round."""


class Dispatcher:
    """Keeps every accepted run and job moving towards a final state. `clock` gives Unix seconds.

    `finish` writes the files of a job whose items have all ended; None: there are none. `more` are duties beside those
    that are always done.
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
        more: Sequence[Duty] = (),
    ) -> None:
        self.id = new_id("dispatcher")
        self.feeder = Feeder(settings, store, queue, clock)
        self._store = store
        self._clock = clock
        self._grace = 3 * settings.worker.heartbeat_seconds
        self._finishing = Finishing(store, finish, clock)
        self._duties: Sequence[Duty] = (
            TakenDeliveries(queue),
            ExpiredLeases(store, queue, clock),
            LostDeliveries(store, queue, clock),
            ExpiredBatches(store, clock),
            LostBatches(store, queue, clock),
            self._finishing,
            Retention(settings, store, blobs, clock),
            JobRetention(settings, store, blobs, clock),
            *more,
        )
        self._feeding = FeedLoop(self.feeder, queue, settings.jobs.tick_seconds, self._may_feed)
        self._leads = False
        self._leads_until = 0.0
        self._store_away = False
        self._quiet_until = 0.0
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def leads(self) -> bool:
        """Whether the last round was done as leader."""
        return self._leads

    async def start(self) -> None:
        """Begin in the background. May be called twice."""
        if self._task is None:
            self._stopping.clear()
            self._task = asyncio.create_task(self._run(), name="dispatcher")
            await self._feeding.start()

    async def stop(self) -> None:
        """End after the duty at hand, and let another lead at once. May be called twice."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping.set()
        await self._feeding.stop()
        await task
        await self._finishing.stop()
        await self._resign()

    async def round(self) -> bool:
        """Lead if possible and do every duty once. False when another leads or the store is away."""
        leads = await self._lead()
        if leads != self._leads:
            log.info("dispatch.leads" if leads else "dispatch.follows", dispatcher=self.id)
            await self._changed(leads)
        if leads:
            for duty in self._duties:
                await self._do(duty)
        return leads

    async def idle(self) -> None:
        """Wait until nothing is written for finished jobs."""
        await self._finishing.idle()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await self.round()
            try:
                await asyncio.wait_for(self._stopping.wait(), ROUND_SECONDS)
            except TimeoutError:
                continue

    async def _changed(self, leads: bool) -> None:
        self._leads = leads
        if leads:
            self._feeding.wake()
        else:
            await self._finishing.stop()

    def _may_feed(self) -> bool:
        """A leader that stood still for long may have been replaced: it must first ask the store."""
        return self._leads and self._clock() < self._leads_until

    async def _lead(self) -> bool:
        now = self._clock()
        try:
            leads = await self._store.lead(ROLE, self.id, now, now + LEAD_SECONDS)
        except ScrapeyardError as error:
            self._failed("lead", error)
            return False
        if self._store_away:
            self._store_away = False
            self._quiet_until = now + self._grace
        self._leads_until = now + LEAD_SECONDS if leads else 0.0
        return leads

    async def _do(self, duty: Duty) -> None:
        if self._stopping.is_set() or (duty.waits_after_outage and self._clock() < self._quiet_until):
            return
        try:
            await duty.work()
        except Exception as error:  # noqa: BLE001  one duty's fault must not stop the others
            self._failed(duty.name, error)

    def _failed(self, duty: str, error: Exception) -> None:
        self._store_away = self._store_away or isinstance(error, StoreUnavailable)
        if isinstance(error, ScrapeyardError):
            log.warning("dispatch.duty_failed", duty=duty, error=error.message)
        else:
            log.error("dispatch.duty_broken", duty=duty, error=repr(error), exc_info=error)

    async def _resign(self) -> None:
        self._leads = False
        try:
            await self._store.resign(ROLE, self.id)
        except ScrapeyardError as error:
            self._failed("resign", error)
