"""What a gateway tells others about jobs: those who hand items out, those who run them, those who watch."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import CancelJob
from scrapeyard.model.job import Job
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.jobs import ItemStore
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")


class JobNews:
    """Messages that cannot be sent are only late: dispatchers and workers ask the store now and then."""

    def __init__(self, queue: Queue, store: ItemStore, clock: Callable[[], float]) -> None:
        self._queue = queue
        self._store = store
        self._clock = clock

    async def wake(self) -> None:
        """A job may have something to hand out."""
        await self._send(messages.FEED, b"job")

    async def kill(self, job_id: str) -> None:
        """Workers must end what they run of it."""
        await self._send(messages.SIGNALS, messages.encode(CancelJob(job_id=job_id)))

    async def status(self, job: Job, **more: Any) -> None:
        """Watchers hear that it stands elsewhere."""
        told = {"status": job.status.value, **({"reason": job.pause_reason} if job.pause_reason else {}), **more}
        await self._store.add_event(job.id, "status", Raw(msgspec.json.encode(told)), self._clock())

    async def _send(self, channel: str, message: bytes) -> None:
        try:
            await self._queue.send(channel, message)
        except QueueUnavailable as error:
            log.warning("jobs.not_told", channel=channel, error=error.message)
