"""Runs and batches as the queue carries them."""

from msgspec import Raw

from scrapeyard.model import Delivery, Run
from scrapeyard.model.job import Batch, Job


def deliver(run: Run, redelivered: bool = False) -> Delivery:
    """What a worker needs to run `run` at the attempt it stands at.

    `redelivered` makes the worker claim the run in the store first: set it whenever the run may already be somewhere.
    """
    return Delivery(
        run_id=run.id,
        scraper=run.scraper,
        input=run.input,
        attempt=run.attempt,
        max_attempts=run.max_attempts,
        lane=run.lane,
        priority=run.priority,
        created_at=run.created_at,
        queued_at=run.queued_at,
        timeout_seconds=run.timeout_seconds,
        reply_to=run.reply_to,
        traceparent=run.traceparent,
        fetching=run.fetching,
        redelivered=redelivered,
    )


def deliver_batch(batch: Batch, job: Job) -> Delivery:
    """What leads a worker to a batch. Its items stay in the store: the worker reads them when it takes the batch."""
    return Delivery(
        run_id=batch.id,
        job_id=job.id,
        scraper=job.pinned,
        input=Raw(b"{}"),
        lane=batch.lane,
        priority=batch.priority,
        created_at=batch.queued_at,
        queued_at=batch.queued_at,
    )
