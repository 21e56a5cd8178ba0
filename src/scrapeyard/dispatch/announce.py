"""Telling those who wait that a run ended outside any worker."""

import msgspec

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import ExitReason, Outcome, Run
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import get_log

log = get_log("dispatch")


async def announce(queue: Queue, run: Run) -> None:
    """Send a final run's outcome to the gateway that waits, and its status to whoever watches its events.

    A message that cannot be sent is only late: every waiter also asks the store.
    """
    try:
        if run.reply_to:
            await queue.send(messages.replies(run.reply_to), messages.encode(_outcome(run)))
        await queue.send(messages.events(run.id), _status(run))
    except QueueUnavailable as error:
        log.warning("dispatch.announce_failed", run=run.id, error=error.message)


def _outcome(run: Run) -> Outcome:
    return Outcome(
        run_id=run.id,
        attempt=run.attempt,
        exit_reason=run.exit_reason or ExitReason.INTERNAL_ERROR,
        scraper=run.resolved,
        error=run.error,
        worker_id=run.worker_id,
        started_at=run.started_at or 0.0,
        finished_at=run.finished_at or 0.0,
    )


def _status(run: Run) -> bytes:
    return msgspec.json.encode({"type": "status", "status": run.status, "exit_reason": run.exit_reason})
