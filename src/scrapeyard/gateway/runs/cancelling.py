"""Ending runs on request."""

from scrapeyard.dispatch.deliveries import announce
from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Cancel, Run, RunStatus
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")


class Cancelling:
    """Marks the row and tells the worker. A signal that cannot be sent is only late: the worker sees the mark when it
    renews its lease."""

    def __init__(self, store: RunStore, queue: Queue, recorder: Recorder) -> None:
        self._store = store
        self._queue = queue
        self._recorder = recorder

    async def cancel(self, run_id: str, now: float) -> Run | None:
        """The run as it then stands; None means no such run. Raises StoreUnavailable, the worker being told even so."""
        try:
            await self._recorder.flush()
            run = await self._store.cancel(run_id, now)
        except Exception:
            await self.signal(run_id)
            raise
        if run is None or run.status in (RunStatus.SUCCEEDED, RunStatus.FAILED):
            return run
        await self.signal(run_id)
        if run.status is RunStatus.CANCELLED and run.finished_at == now:
            await announce(self._queue, run)
        return run

    async def signal(self, run_id: str) -> None:
        """Tell every worker."""
        try:
            await self._queue.send(messages.SIGNALS, messages.encode(Cancel(run_id=run_id)))
        except QueueUnavailable as error:
            log.warning("gateway.signal_lost", run=run_id, error=error.message)
