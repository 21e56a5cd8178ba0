"""A webhook: a receiver that is notified of changes to a job or a run.

waiting ──► delivered | failed          failed, delivered ──► waiting   (replay)
"""

import hashlib
import hmac
from enum import StrEnum

from msgspec import Struct

ITEM_ENDED = "item.ended"
"""The event that carries the results of items. They are delivered as to a sink, `ITEMS_SINK` in `model.export`."""
JOB_EVENTS = (
    "job.completed",
    "job.failed",
    "job.cancelled",
    "job.paused",
    "job.resumed",
    "job.created",
    "job.archived",
    "job.restored",
    "breaker",
    "export.ready",
    "sink.done",
    "sink.failed",
    "item.failed",
    ITEM_ENDED,
)
SIGNATURE = "Scrapeyard-Signature"
"""The header that carries the signature of a body."""
RUN_EVENTS = ("run.succeeded", "run.failed", "run.cancelled")


class Webhook(Struct, frozen=True, kw_only=True):
    """A webhook as requested."""

    url: str
    events: tuple[str, ...]
    secret: str | None = None
    """Sealed. None if the operator's secret is used."""
    form: str = ""
    """Whose messages the receiver expects: `firecrawl.crawl`, `firecrawl.batch_scrape`; empty: ours."""
    metadata: dict[str, str] = {}
    """Sent along by forms that know it."""


def secret_place(url: str) -> str:
    """What the seal of a webhook's secret is bound to: the secret signs for this receiver alone."""
    return f"webhook {url}"


def sign(secret: str, body: bytes, now: float) -> str:
    """The header: `t=<Unix seconds>,v1=<HMAC-SHA256 of "t.body", in hex>`."""
    stamp = str(int(now))
    digest = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={stamp},v1={digest}"


class DeliveryState(StrEnum):
    """How a delivery stands."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class Attempt(Struct, frozen=True, kw_only=True):
    """One time it was sent."""

    at: float
    status: int | None = None
    """HTTP status of the receiver; None if it did not answer."""
    ms: float = 0.0
    error: str = ""
    """Empty if it was accepted."""


class WebhookDelivery(Struct, frozen=True, kw_only=True):
    """One message to one receiver, sent until it is accepted or given up."""

    id: str
    subject: str
    """The job or run it is about."""
    event: str
    url: str
    host: str
    """Host of the URL: concurrent deliveries to one host are limited."""
    secret: str = ""
    """Sealed. Empty if the operator's secret is used."""
    body: bytes
    state: DeliveryState = DeliveryState.WAITING
    attempts: int = 0
    """Attempts started; one whose sender was killed counts."""
    created_at: float
    next_at: float | None = None
    """None unless it is waiting."""
    give_up_at: float
    finished_at: float | None = None
    log: tuple[Attempt, ...] = ()
    """The last attempts, the newest last."""
    holder: str = ""
    lease_until: float | None = None
    owner: str = ""
    """The client that owns the job or run."""


def delivery_id(subject: str, event: str, number: int, at: float) -> str:
    """The same for the same news, so that deriving it twice writes it once. Sorts by time."""
    digest = hashlib.sha256(f"{subject}:{event}:{number}:{at!r}".encode()).hexdigest()
    return f"delivery_{int(at * 1000):012x}{digest[:20]}"


class JobEventKind(StrEnum):
    """Kind of an event of a job. They are one stream in the store, which live streams and webhooks read; the data of
    each is a JSON object."""

    STATUS = "status"
    """`status`, and what led to it: `reason`, `redriven`, `problem`."""
    ITEM_FAILED = "item_failed"
    """`id`, `exit_reason`, `error`; the first 1,000 of a job."""
    BREAKER = "breaker"
    BUDGET = "budget"
    EXPORT = "export"
    WEBHOOK = "webhook"
    """A message that was given up."""
    SINK = "sink"
    """`sink`, `state`: done, or failed with its `error`; `delivered`, `refused`."""
    ROWS_SKIPPED = "rows_skipped"
    ROWS_REFUSED = "rows_refused"
    ARCHIVE = "archive"
    """`state`: archived, restored, damaged."""
