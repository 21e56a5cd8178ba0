"""From an accepted call to the runs it asks for."""

from msgspec import Raw, Struct

from scrapeyard.model import FetchPolicy, Priority, Run, RunStatus, new_id


class Order(Struct, frozen=True, kw_only=True):
    """What a caller wants run: one scraper on one or more inputs, all under one policy."""

    scraper: str
    """As the caller wrote it."""
    inputs: tuple[Raw, ...]
    """JSON objects, checked against the scraper's schema."""
    lane: str
    priority: Priority
    max_attempts: int
    timeout_seconds: float | None = None
    reply_to: str = ""
    """The gateway that waits; empty when nobody does."""
    traceparent: str = ""
    fetching: FetchPolicy = FetchPolicy()


def build_runs(order: Order, now: float) -> tuple[Run, ...]:
    """One queued run for each input, in order, not yet written or published anywhere."""
    return tuple(_run(order, given, now) for given in order.inputs)


def _run(order: Order, given: Raw, now: float) -> Run:
    return Run(
        id=new_id("run"),
        status=RunStatus.QUEUED,
        scraper=order.scraper,
        input=given,
        lane=order.lane,
        priority=order.priority,
        max_attempts=order.max_attempts,
        timeout_seconds=order.timeout_seconds,
        created_at=now,
        queued_at=now,
        reply_to=order.reply_to,
        traceparent=order.traceparent,
        fetching=order.fetching,
    )
