"""Runs and batches as the queue carries them; ends that happened outside any worker."""

import msgspec
from msgspec import Raw

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Delivery, ExitReason, Outcome, Run
from scrapeyard.model.job import Batch, Job
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import get_log


def deliver(run: Run, redelivered: bool = False, answer_by: float | None = None) -> Delivery:
    """What a worker needs to run `run` at the attempt it stands at.

    `redelivered` makes the worker claim the run in the store first: set it whenever the run may already be somewhere.
    """
    return Delivery(
        run_id=run.id,
        scraper=run.scraper,
        digest=run.resolved.digest if run.resolved else "",
        input=run.input,
        attempt=run.attempt,
        max_attempts=run.max_attempts,
        lane=run.lane,
        priority=run.priority,
        created_at=run.created_at,
        queued_at=run.queued_at,
        timeout_seconds=run.timeout_seconds,
        reply_to=run.reply_to,
        answer_by=answer_by,
        traceparent=run.traceparent,
        fetching=run.fetching,
        owner=run.owner,
        redelivered=redelivered,
    )


def deliver_batch(batch: Batch, job: Job) -> Delivery:
    """What leads a worker to a batch. Its items stay in the store: the worker reads them when it takes the batch."""
    return Delivery(
        run_id=batch.id,
        job_id=job.id,
        scraper=job.pinned,
        digest=job.digest,
        owner=job.owner,
        input=Raw(b"{}"),
        lane=batch.lane,
        priority=batch.priority,
        created_at=batch.queued_at,
        queued_at=batch.queued_at,
    )


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
