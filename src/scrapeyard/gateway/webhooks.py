"""`/api/webhooks`: what was sent to receivers, and sending it again."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from scrapeyard.errors import NotFound
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import Cursor, Limit
from scrapeyard.gateway.runs.documents import instant
from scrapeyard.gateway.scrapers.documents import answer
from scrapeyard.model.webhook import DeliveryState, WebhookDelivery
from scrapeyard.settings import hide_user
from scrapeyard.store.ports.webhooks import DeliveryFilter

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

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


_Id = Annotated[str, Path(pattern=DELIVERY_ID, description="The delivery's id, as its receiver got it.")]
_HERE = "/api/webhooks/deliveries/{delivery_id}"
_HOUR = 3600.0


def routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["webhooks"])
    store, clock = gateway.services.store, gateway.services.clock
    give_up = gateway.services.settings.webhooks.give_up_hours * _HOUR

    @router.get(
        "/api/webhooks/deliveries",
        summary="List deliveries",
        description="Messages to receivers of webhooks, newest first, without what was sent. Follow `next_cursor` for "
        "more.",
        operation_id="list_deliveries",
        response_model=DeliveryPageDocument,
        responses=refusals(400, 422, 503),
    )
    async def list_deliveries(
        subject: Annotated[str | None, Query(pattern=SUBJECT, description="Of this job or run, by its id.")] = None,
        state: Annotated[DeliveryState | None, Query(description="Only these.")] = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response:
        page = await store.deliveries.page(DeliveryFilter(subject=subject, state=state), cursor, limit)
        return answer({"deliveries": [_document(one) for one in page.deliveries], "next_cursor": page.next_cursor})

    @router.get(
        _HERE,
        summary="A delivery",
        description="With what was sent and every attempt; never with its secret.",
        operation_id="get_delivery",
        response_model=WholeDeliveryDocument,
        responses=refusals(404, 422, 503),
    )
    async def get_delivery(delivery_id: _Id) -> Response:
        return _whole(await store.deliveries.get(delivery_id), delivery_id)

    @router.post(
        _HERE + "/replay",
        status_code=202,
        summary="Send a delivery again",
        description="The same message under the same id, signed anew, whether it was taken or given up; one that waits "
        "is sent at once. It is tried as long as a new one. May be repeated.",
        operation_id="replay_delivery",
        response_model=WholeDeliveryDocument,
        responses=refusals(404, 413, 422, 503),
    )
    async def replay_delivery(delivery_id: _Id) -> Response:
        now = clock()
        return _whole(await store.deliveries.replay(delivery_id, now, now + give_up), delivery_id, 202)

    return router


def _whole(delivery: WebhookDelivery | None, delivery_id: str, status: int = 200) -> Response:
    if delivery is None:
        raise NotFound(f"no delivery {delivery_id}; they are removed when retention.webhooks_days are over")
    return answer({**_document(delivery), "body": delivery.body.decode()}, status)


def _document(delivery: WebhookDelivery) -> dict[str, Any]:
    last = delivery.log[-1] if delivery.log else None
    return {
        "id": delivery.id,
        "subject": delivery.subject,
        "event": delivery.event,
        "url": hide_user(delivery.url),
        "state": delivery.state,
        "attempts": delivery.attempts,
        "status": last.status if last else None,
        "error": (last.error if last else "") or None,
        "created_at": instant(delivery.created_at),
        "next_at": instant(delivery.next_at),
        "give_up_at": instant(delivery.give_up_at),
        "finished_at": instant(delivery.finished_at),
        "log": [
            {"at": instant(one.at), "status": one.status, "ms": one.ms, "error": one.error or None}
            for one in delivery.log
        ],
    }
