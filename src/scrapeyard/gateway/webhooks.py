"""`/api/webhooks`: what was sent to receivers, and sending it again."""

from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Path, Query
from msgspec import Meta, Struct

from scrapeyard.errors import NotFound
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import Cursor, GatewayDep, Limit, shown, there
from scrapeyard.gateway.http.patterns import JOB_ID, NEXT
from scrapeyard.model.instants import instant
from scrapeyard.model.webhook import DeliveryState, WebhookDelivery
from scrapeyard.settings import hide_user
from scrapeyard.store.ports.webhooks import DeliveryFilter

DELIVERY_ID = r"^delivery_[0-9a-f]{32}$"
SUBJECT = JOB_ID
"""Ids of runs have this form as well."""


class AttemptDocument(Struct, frozen=True, kw_only=True):
    """One time that it was sent."""

    at: str
    status: Annotated[int | None, Meta(description="What the receiver answered; null: nothing.")]
    ms: float
    error: Annotated[str | None, Meta(description="Null: it was taken.")]


class DeliveryDocument(Struct, frozen=True, kw_only=True):
    """A message to a receiver."""

    id: Annotated[str, Meta(pattern=DELIVERY_ID)]
    subject: Annotated[str, Meta(description="The job, run or alert that it tells of.")]
    event: Annotated[str, Meta(examples=["job.completed"])]
    url: Annotated[str, Meta(description="Without user and query, which may hold secrets; `alert:slack` for alerts.")]
    state: DeliveryState
    attempts: Annotated[int, Meta(description="Begun, replays included.")]
    status: Annotated[int | None, Meta(description="Of the last attempt.")]
    error: Annotated[str | None, Meta(description="Of the last attempt.")]
    created_at: str
    next_at: Annotated[str | None, Meta(description="When it is sent again; null unless it waits.")]
    give_up_at: str
    finished_at: str | None
    log: Annotated[list[AttemptDocument], Meta(description="The last 30 attempts, the newest last.")]


class WholeDeliveryDocument(DeliveryDocument, frozen=True, kw_only=True):
    """A message, with what was sent."""

    body: Annotated[str, Meta(description="As it was signed.")]


class DeliveryPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the listing, newest first."""

    deliveries: list[DeliveryDocument]
    next_cursor: Annotated[str | None, NEXT]


_Path = Annotated[
    str,
    Path(description="The delivery's id, as its receiver got it.", json_schema_extra=shown(DELIVERY_ID)),
    there("delivery", DELIVERY_ID),
]


async def _owned(gateway: GatewayDep, identity: IdentityDep, delivery_id: _Path) -> str:
    if not identity.sees_all:
        delivery = await gateway.services.store.deliveries.get(delivery_id)
        if delivery is None or not identity.may_see(delivery.owner):
            raise _none(delivery_id)
    return delivery_id


_Id = Annotated[str, Depends(_owned)]
_HERE = "/api/webhooks/deliveries/{delivery_id}"
_HOUR = 3600.0


router = APIRouter(tags=["webhooks"], route_class=AnswerRoute)


@router.get("/api/webhooks/deliveries", summary="List deliveries", responses=refusals(400, 422, 503))
async def list_deliveries(
    gateway: GatewayDep,
    identity: IdentityDep,
    *,
    subject: Annotated[str | None, Query(pattern=SUBJECT, description="Of this job or run, by its id.")] = None,
    state: Annotated[DeliveryState | None, Query(description="Only these.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> DeliveryPageDocument:
    """Messages to receivers of webhooks, newest first, without what was sent; a client's own. Follow `next_cursor` for
    more."""
    where = DeliveryFilter(subject=subject, owner=identity.only, state=state)
    page = await gateway.services.store.deliveries.page(where, cursor, limit)
    shown = [_document(one, DeliveryDocument) for one in page.deliveries]
    return DeliveryPageDocument(deliveries=shown, next_cursor=page.next_cursor)


@router.get(_HERE, summary="A delivery", responses=refusals(404, 422, 503))
async def get_delivery(gateway: GatewayDep, delivery_id: _Id) -> WholeDeliveryDocument:
    """With what was sent and every attempt; never with its secret."""
    return _whole(await gateway.services.store.deliveries.get(delivery_id), delivery_id)


@router.post(
    _HERE + "/replay", status_code=202, summary="Send a delivery again", responses=refusals(404, 413, 422, 503)
)
async def replay_delivery(gateway: GatewayDep, delivery_id: _Id) -> WholeDeliveryDocument:
    """The same message under the same id, signed anew, whether it was taken or given up; one that waits is sent at
    once. It is tried as long as a new one. May be repeated."""
    services = gateway.services
    now, hours = services.clock(), services.settings.webhooks.give_up_hours
    return _whole(await services.store.deliveries.replay(delivery_id, now, now + hours * _HOUR), delivery_id)


def _whole(delivery: WebhookDelivery | None, delivery_id: str) -> WholeDeliveryDocument:
    if delivery is None:
        raise _none(delivery_id)
    return _document(delivery, WholeDeliveryDocument, body=delivery.body.decode())


def _none(delivery_id: str) -> NotFound:
    return NotFound(f"no delivery {delivery_id}; they are removed when retention.webhooks_days are over")


Shown = TypeVar("Shown", bound=DeliveryDocument)


def _document(delivery: WebhookDelivery, kind: type[Shown], **more: str) -> Shown:
    last = delivery.log[-1] if delivery.log else None
    return kind(
        id=delivery.id,
        subject=delivery.subject,
        event=delivery.event,
        url=hide_user(delivery.url),
        state=delivery.state,
        attempts=delivery.attempts,
        status=last.status if last else None,
        error=(last.error if last else "") or None,
        created_at=instant(delivery.created_at),
        next_at=instant(delivery.next_at),
        give_up_at=instant(delivery.give_up_at),
        finished_at=instant(delivery.finished_at),
        log=[
            AttemptDocument(at=instant(one.at), status=one.status, ms=one.ms, error=one.error or None)
            for one in delivery.log
        ],
        **more,
    )
