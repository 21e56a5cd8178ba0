"""A run as the queue carries it."""

from scrapeyard.model import Delivery, Run


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
