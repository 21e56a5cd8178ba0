"""Deliveries that a worker took from the broker and died with before they were removed."""

from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import get_log

log = get_log("dispatch")


class TakenDeliveries:
    """Asks the queue to put them back."""

    name = "recover"
    waits_after_outage = False

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def work(self) -> None:
        """One round."""
        count = await self._queue.recover()
        if count:
            log.warning("queue.recovered", count=count)
