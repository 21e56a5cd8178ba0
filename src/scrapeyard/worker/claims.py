"""Runs as a worker takes them over: claimed in the store where they were delivered before, and as they begin."""

import asyncio
import time

from scrapeyard.errors import StoreUnavailable
from scrapeyard.model import Delivery, Run, RunStatus, pinned_ref
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.telemetry.events import get_log

log = get_log("worker")


class Claims:
    """Claims that the store has not answered, by run. They are never cancelled: the store would complete them, and
    their runs would wait for the end of a lease that nobody renews."""

    def __init__(self, runs: RunStore, worker_id: str, lease_seconds: float) -> None:
        self._runs = runs
        self._worker_id = worker_id
        self._lease = lease_seconds
        self._open: dict[str, asyncio.Task[bool]] = {}

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._open

    def start(self, delivery: Delivery) -> asyncio.Task[bool]:
        """Claim a run: if it was published twice, another worker may have it, and the result is False."""
        claim = self._open[delivery.run_id] = asyncio.create_task(self._claim(delivery))
        claim.add_done_callback(lambda _: self._open.pop(delivery.run_id))
        return claim

    async def wait(self) -> None:
        """Until the store has answered all."""
        if self._open:
            await asyncio.wait(self._open.values())

    def begun(self, delivery: Delivery) -> Run:
        """The run as it begins on this worker."""
        now = time.time()
        return Run(
            id=delivery.run_id,
            status=RunStatus.RUNNING,
            scraper=delivery.scraper,
            resolved=pinned_ref(delivery.scraper, delivery.digest),
            input=delivery.input,
            lane=delivery.lane,
            priority=delivery.priority,
            attempt=delivery.attempt,
            max_attempts=delivery.max_attempts,
            timeout_seconds=delivery.timeout_seconds,
            created_at=delivery.created_at,
            queued_at=delivery.queued_at,
            started_at=now,
            worker_id=self._worker_id,
            lease_until=now + self._lease,
            reply_to=delivery.reply_to,
            traceparent=delivery.traceparent,
            fetching=delivery.fetching,
            owner=delivery.owner,
        )

    async def _claim(self, delivery: Delivery) -> bool:
        now = time.time()
        try:
            return await self._runs.claim(delivery.run_id, delivery.attempt, self._worker_id, now, now + self._lease)
        except StoreUnavailable as error:
            log.warning("worker.claim_lost", run=delivery.run_id, error=error.message)
            return False
