"""Webhooks that calls ask for, checked, and what the API answers about them."""

from typing import Final, Protocol

from pydantic import BaseModel, Field

from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.gateway.runs.schemas import RunWebhookCall
from scrapeyard.model.webhook import DeliveryState, Webhook
from scrapeyard.settings import WebhookSettings

DELIVERY_ID = r"^delivery_[0-9a-f]{32}$"
SUBJECT = r"^(job|run)_[0-9a-f]{32}$"


class AttemptDocument(BaseModel):
    """One time that it was sent."""

    at: str
    status: int | None = Field(description="What the receiver answered; null: nothing.")
    ms: float
    error: str | None = Field(description="Null: it was taken.")


class DeliveryDocument(BaseModel):
    """A message to a receiver."""

    id: str = Field(pattern=DELIVERY_ID)
    subject: str = Field(description="The job or run that it tells of.")
    event: str = Field(examples=["job.completed"])
    url: str = Field(description="Without user and query, which may hold secrets.")
    state: DeliveryState
    attempts: int = Field(description="Begun, replays included.")
    status: int | None = Field(description="Of the last attempt.")
    error: str | None = Field(description="Of the last attempt.")
    created_at: str
    next_at: str | None = Field(description="When it is sent again; null unless it waits.")
    give_up_at: str
    finished_at: str | None
    log: list[AttemptDocument] = Field(description="The last 30 attempts, the newest last.")


class WholeDeliveryDocument(DeliveryDocument):
    """A message, with what was sent."""

    body: str = Field(description="As it was signed.")


class DeliveryPageDocument(BaseModel):
    """One page of the listing, newest first."""

    deliveries: list[DeliveryDocument]
    next_cursor: str | None = Field(description="Give it as `cursor` for the next page; null on the last.")


_NO_SECRET: Final = "give webhook.secret, 16 characters or more; the operator has set no webhooks.secret for all"  # noqa: S105  words


class WebhookRequest(Protocol):
    """What calls say alike."""

    @property
    def url(self) -> str:
        """Where to."""

    @property
    def secret(self) -> str | None:
        """None: the operator's."""


class WebhookValidator:
    """Takes no webhook that could not be signed, or not be reached by any request."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._has_secret = bool(settings.secret.get_secret_value())

    def check(self, asked: WebhookRequest) -> None:
        """Raises BadRequest. That an address is private is found when it is told."""
        if asked.secret is None and not self._has_secret:
            raise BadRequest(_NO_SECRET)
        try:
            parse_target(asked.url)
        except FetchFailed as failure:
            raise BadRequest(f"webhook.url: {failure.message}") from None

    def of_run(self, asked: RunWebhookCall) -> Webhook:
        """As the store keeps it. Raises BadRequest."""
        self.check(asked)
        return Webhook(url=asked.url, events=tuple(asked.events), secret=asked.secret)
