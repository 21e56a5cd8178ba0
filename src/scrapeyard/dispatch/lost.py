"""Queued runs that the queue does not hold: retries whose time has come, and deliveries that were lost."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from scrapeyard.dispatch.deliveries import deliver
from scrapeyard.model import Priority, Run
from scrapeyard.queues.port import Queue
from scrapeyard.store.port import RunStore
from scrapeyard.telemetry.events import get_log

log = get_log("dispatch")
BATCH = 500
MOST = 16_000
GRACE_SECONDS = 5.0
"""A delivery younger than this may be on its way from the queue to a row that says running."""


class LostDeliveries:
    """Publishes again what should be in the queue and is not.

    A queue hands out each (lane, priority) in order, so a run published before the oldest that still waits is gone
    from it. Publishing one too many is harmless: the worker must claim a redelivered run in the store.
    """

    name = "lost"
    waits_after_outage = True

    def __init__(self, store: RunStore, queue: Queue, clock: Callable[[], float]) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock
        self._limit = BATCH

    async def work(self) -> None:
        """One round."""
        now = self._clock()
        due = await self._store.due(now, now - GRACE_SECONDS, self._limit)
        self._widen(due)
        later = [run for run in due if run.not_before is not None]
        lost = await self._missing([run for run in due if run.not_before is None])
        if lost:
            log.warning("dispatch.lost_deliveries", count=len(lost))
        await self._publish([*later, *lost], now)

    def _widen(self, due: Sequence[Run]) -> None:
        """A full batch may hold only runs that still wait in one busy lane; look further until the lost are seen."""
        self._limit = min(2 * self._limit, MOST) if len(due) >= self._limit else BATCH

    async def _missing(self, runs: Sequence[Run]) -> list[Run]:
        oldest: dict[tuple[str, Priority], float | None] = {}
        missing = []
        for run in runs:
            place = (run.lane, run.priority)
            if place not in oldest:
                oldest[place] = await self._queue.oldest(*place)
            first = oldest[place]
            if first is None or run.queued_at < first:
                missing.append(run)
        return missing

    async def _publish(self, runs: Sequence[Run], now: float) -> None:
        if not runs:
            return
        await self._queue.publish([deliver(replace(run, queued_at=now), redelivered=True) for run in runs])
        await self._store.requeued([run.id for run in runs], now)
