"""Builds, from the settings, the dispatcher's duties that need more than the store: schedules, webhooks, sinks."""

import time
from typing import TYPE_CHECKING

from scrapeyard.blobs.port import Blobs
from scrapeyard.dispatch.alerts.alerts import Alerts
from scrapeyard.dispatch.alerts.messages import AlertSender
from scrapeyard.dispatch.alerts.rules import AlertRules
from scrapeyard.dispatch.feeding.halting import ClientHalt
from scrapeyard.dispatch.schedules.schedules import Schedules
from scrapeyard.dispatch.webhooks.webhooks import Webhooks
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.errors import SettingsInvalid
from scrapeyard.extras import missing
from scrapeyard.gateway.doors.firecrawl.documents import page_message
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.gateway.runs.admission import Lanes, RunBuilder
from scrapeyard.gateway.runs.answers import Cancelling
from scrapeyard.gateway.runs.receivers import WebhookValidator
from scrapeyard.gateway.schedules.starting import TemplateStarter
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.model import new_id
from scrapeyard.model.export import ITEMS_SINK
from scrapeyard.queues.port import Queue
from scrapeyard.redis.outage import Outage
from scrapeyard.repository.port import Catalogue
from scrapeyard.results.sinks.delivery import SinkDeliveries
from scrapeyard.results.sinks.items import ItemWebhookSink
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import DurableStore, Store
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics
from scrapeyard.wiring.backends import make_masking, make_sink
from scrapeyard.wiring.engine import Up

if TYPE_CHECKING:
    from scrapeyard.dispatch.events.stream import EventStream


async def start_schedules(
    settings: Settings,
    store: Store,
    queue: Queue,
    *,
    recorder: Recorder,
    blobs: Blobs,
    catalogue: Catalogue,
    intake: ItemImporter,
    up: Up,
) -> Schedules:
    """The duty that starts scheduled jobs and runs, with the gateway's own code."""
    clock = time.time
    desk = JobService(
        settings=settings, store=store, queue=queue, blobs=blobs, catalogue=catalogue, intake=intake, clock=clock
    )
    starter = TemplateStarter(
        store=store,
        queue=queue,
        creation=desk.creation,
        control=desk.control,
        builder=RunBuilder(catalogue, Lanes(store.workers, settings), settings.repository.default, queue),
        receivers=WebhookValidator(settings.webhooks, store.sealer),
        cancelling=Cancelling(store.runs, queue, recorder),
        clock=clock,
        trace_share=settings.telemetry.trace_share if settings.telemetry.otlp_endpoint else 0.0,
    )
    budgets = ClientHalt(store, settings.clients.as_limits(), clock)
    schedules = Schedules(store, starter, clock, new_id("schedules"), budgets)
    await up(schedules.start, schedules.stop)
    return schedules


async def start_webhooks(settings: Settings, store: Store, up: Up) -> Webhooks:
    """The duty that sends webhooks, with its own HTTP engine. Raises SettingsInvalid."""
    engine = make_webhook_engine(settings)
    await up(engine.start, engine.stop)
    sender = AlertSender(settings.webhooks, engine, store.sealer, time.time, settings.alerts)
    webhooks = Webhooks(settings, store, sender, time.time, new_id("webhooks"))
    await up(webhooks.start, webhooks.stop)
    return webhooks


async def start_events(settings: Settings, store: DurableStore, metrics: Metrics, up: Up) -> "EventStream | None":
    """The duty that sends lifecycle events to Kafka; None if the settings name no cluster. Raises SettingsInvalid."""
    url = settings.events.url.get_secret_value()
    if not url:
        return None
    if words := missing("kafka"):
        raise SettingsInvalid(f"events.url: {words}")
    if store.lifecycle is None:
        raise SettingsInvalid("events.url: this kind of database_url has no feed of changes; take PostgreSQL or SQLite")
    from scrapeyard.dispatch.events.stream import EventStream  # noqa: PLC0415 - an extra
    from scrapeyard.kafka.address import KafkaAddress  # noqa: PLC0415 - as above
    from scrapeyard.kafka.link import KafkaLink  # noqa: PLC0415 - as above

    log = get_log("events")
    outage = Outage(
        away=lambda error, seconds: log.warning("events.away", error=error, retry_seconds=seconds),
        back=lambda seconds: log.info("events.back", away_seconds=seconds),
        ends_on_stop=True,
    )
    link = KafkaLink(KafkaAddress(url, "events.url", str(settings.queue.ca_file or "")), outage, idempotent=True)
    stream = EventStream(
        settings.events, link, lifecycle=store.lifecycle, jobs=store.jobs, state=store.state, metrics=metrics
    )
    await up(stream.start, stream.stop)
    return stream


async def start_sinks(settings: Settings, store: Store, blobs: Blobs, metrics: Metrics, up: Up) -> SinkDeliveries:
    """The duty that delivers results to sinks. Raises SettingsInvalid; a sink that is away does not matter."""
    sinks = {target.name: make_sink(settings, target) for target in settings.sinks.targets}
    engine = make_webhook_engine(settings)
    sinks[ITEMS_SINK] = ItemWebhookSink(
        settings.webhooks, store.jobs, engine, sealer=store.sealer, foreign=page_message
    )
    for sink in sinks.values():
        await up(sink.start, sink.stop)
    masking = make_masking(settings, store.sealer)
    duty = SinkDeliveries(settings.sinks, sinks, store, blobs, time.time, masking=masking, metrics=metrics)
    await up(duty.start, duty.stop)
    return duty


def make_alerts(settings: Settings, store: Store, queue: Queue) -> Alerts:
    """The duty that evaluates the rules of alerts."""
    return Alerts(settings, store.alerts, AlertRules(settings, store, queue, time.time), time.time)


def make_webhook_engine(settings: Settings) -> WreqEngine:
    """Plain HTTP that imitates no browser and also reaches the hosts that the operator allows for webhooks."""
    allowed = (*settings.http.allow_hosts, *settings.webhooks.allow_hosts)
    seconds = settings.webhooks.timeout_seconds
    changes = {"allow_hosts": allowed, "profile": "none", "total_seconds": seconds, "user_agent": ""}
    return WreqEngine(settings.http.model_copy(update=changes))
