"""A webhook: who is told of what happens to a job or a run.

waiting ──► delivered | failed          failed, delivered ──► waiting   (replay)
"""

import hashlib
from enum import StrEnum

from msgspec import Struct

JOB_EVENTS = (
    "job.completed",
    "job.failed",
    "job.cancelled",
    "job.paused",
    "job.resumed",
    "breaker",
    "export.ready",
    "item.failed",
)
RUN_EVENTS = ("run.succeeded", "run.failed", "run.cancelled")


class Webhook(Struct, frozen=True, kw_only=True):
    """As a call asked for it."""

    url: str
    events: tuple[str, ...]
    secret: str | None = None
    """None: the operator's."""


class DeliveryState(StrEnum):
    """How a delivery stands."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class Attempt(Struct, frozen=True, kw_only=True):
    """One time that it was sent."""

    at: float
    status: int | None = None
    """What the receiver answered; None: nothing."""
    ms: float = 0.0
    error: str = ""
    """Empty: it was taken."""


class WebhookDelivery(Struct, frozen=True, kw_only=True):
    """One message to one receiver, sent until it is taken or given up."""

    id: str
    subject: str
    """The job or run that it tells of."""
    event: str
    url: str
    host: str
    """Of the URL: how many go to one receiver at once is bounded."""
    secret: str = ""
    """Empty: the operator's."""
    body: bytes
    state: DeliveryState = DeliveryState.WAITING
    attempts: int = 0
    """Begun; a sender that was killed counts."""
    created_at: float
    next_at: float | None = None
    """None unless it waits."""
    give_up_at: float
    finished_at: float | None = None
    log: tuple[Attempt, ...] = ()
    """The last attempts, the newest last."""
    holder: str = ""
    lease_until: float | None = None


def delivery_id(subject: str, event: str, number: int, at: float) -> str:
    """The same for the same news: whoever derives it twice writes it once. Sorts by time."""
    digest = hashlib.sha256(f"{subject}:{event}:{number}:{at!r}".encode()).hexdigest()
    return f"delivery_{int(at * 1000):012x}{digest[:20]}"
