"""`/api/alerts`: what is wrong now and what was, and a message to try the receivers with."""

from typing import Annotated

from fastapi import APIRouter, Query
from msgspec import Meta, Struct

from scrapeyard.dispatch.alerts.messages import TEST, alert_document, messages, test_alert
from scrapeyard.errors import Refusal
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import Cursor, GatewayDep, Limit
from scrapeyard.gateway.http.patterns import NEXT
from scrapeyard.settings import AlertChannel
from scrapeyard.store.ports.webhooks import AlertState

router = APIRouter(tags=["operations"], route_class=AnswerRoute)


class AlertDocument(Struct, frozen=True, kw_only=True):
    """Something that is wrong, or was."""

    id: str
    rule: Annotated[str, Meta(description="Name of the rule, from `alerts.rules` of the settings.")]
    subject: Annotated[str, Meta(description="What it is about: a lane, client, site or worker; `all`: everything.")]
    state: Annotated[AlertState, Meta(description="`firing` as long as it lasts.")]
    words: Annotated[str, Meta(description="What is wrong, as of the last time that receivers were told.")]
    value: Annotated[float, Meta(description="What was measured then.")]
    threshold: Annotated[float, Meta(description="What the rule allows.")]
    started_at: Annotated[str, Meta(description="When it was first found.")]
    told_at: Annotated[str, Meta(description="When receivers were last told that it lasts.")]
    tells: Annotated[int, Meta(description="How often they were told so.")]
    resolved_at: Annotated[str | None, Meta(description="When it was over; null: it lasts.")]


class AlertPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the listing, newest first."""

    alerts: Annotated[list[AlertDocument], Meta(description="Alerts on this page.")]
    receivers: Annotated[list[AlertChannel], Meta(description="Receivers that the settings name.")]
    next_cursor: Annotated[str | None, NEXT]


class AlertTestDocument(Struct, frozen=True, kw_only=True):
    """Messages that are on their way."""

    deliveries: Annotated[
        dict[str, str], Meta(description="Ids by receiver; `/api/webhooks/deliveries/{delivery_id}` tells how it went.")
    ]


@router.get("/api/alerts", summary="List alerts", responses=refusals(400, 422, 503))
async def list_alerts(
    gateway: GatewayDep,
    *,
    state: Annotated[AlertState | None, Query(description="Only these.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> AlertPageDocument:
    """Alerts, newest first; resolved ones for `alerts.keep_days`. Follow `next_cursor` for more."""
    services = gateway.services
    page = await services.store.alerts.page(state, cursor, limit)
    shown = [AlertDocument(**alert_document(alert)) for alert in page.alerts]
    receivers = list(services.settings.alerts.channels)
    return AlertPageDocument(alerts=shown, receivers=receivers, next_cursor=page.next_cursor)


@router.post(
    "/api/alerts/test", status_code=202, summary="Try the receivers of alerts", responses=refusals(409, 422, 503)
)
async def try_alerts(gateway: GatewayDep) -> AlertTestDocument:
    """Sends a message to every receiver of alerts, as an alert is sent: by the dispatcher that leads, and retried."""
    services, now = gateway.services, gateway.services.clock()
    settings = services.settings
    sent = messages(settings.alerts, test_alert(now), TEST, now, settings.webhooks.give_up_hours)
    if not sent:
        raise Refusal("conflict", 409, "no receiver is set: alerts.webhook_url, alerts.slack_url or alerts.email_to")
    await services.store.alerts.tell(sent)
    return AlertTestDocument(deliveries={message.url.partition(":")[2]: message.id for message in sent})
