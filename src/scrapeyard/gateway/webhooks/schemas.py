"""Webhooks that calls ask for, checked, and what the API answers about them."""

from pydantic import BaseModel, Field

from scrapeyard.model.webhook import DeliveryState

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
