"""Queued runs that the queue does not hold: retries whose time has come, and deliveries that were lost."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from scrapeyard.dispatch.deliveries import deliver
from scrapeyard.dispatch.upkeep.missing import GRACE_SECONDS, Page, missing
from scrapeyard.model import Run
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.telemetry.events import get_log

log = get_log("dispatch")


class LostDeliveries:
    """Publishes again what should be in the queue and is not.

    Publishing one too many is harmless: the worker must claim a redelivered run in the store.
    """

    name = "lost"
    waits_after_outage = True

    def __init__(self, store: RunStore, queue: Queue, clock: Callable[[], float]) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock
        self._page = Page()

    async def work(self) -> None:
        """One round."""
        now = self._clock()
        due = await self._store.due(now, now - GRACE_SECONDS, self._page.limit)
        self._page.seen(len(due))
        later = [run for run in due if run.not_before is not None]
        lost = await missing(self._queue, [run for run in due if run.not_before is None])
        if lost:
            log.warning("dispatch.lost_deliveries", count=len(lost))
        await self._publish([*later, *lost], now)

    async def _publish(self, runs: Sequence[Run], now: float) -> None:
        if not runs:
            return
        await self._queue.publish([deliver(replace(run, queued_at=now), redelivered=True) for run in runs])
        await self._store.requeued([run.id for run in runs], now)
