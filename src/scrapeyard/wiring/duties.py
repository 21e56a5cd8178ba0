"""Builds, from the settings, the dispatcher's duties that need more than the store: schedules and webhooks."""

import time

from scrapeyard.blobs.port import Blobs
from scrapeyard.dispatch.alerts.alerts import Alerts
from scrapeyard.dispatch.alerts.messages import AlertSender
from scrapeyard.dispatch.alerts.rules import AlertRules
from scrapeyard.dispatch.feeding.halting import ClientHalt
from scrapeyard.dispatch.schedules.schedules import Schedules
from scrapeyard.dispatch.webhooks.webhooks import Webhooks
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.gateway.runs.admission import Lanes, RunBuilder
from scrapeyard.gateway.runs.answers import Cancelling
from scrapeyard.gateway.runs.receivers import WebhookValidator
from scrapeyard.gateway.schedules.starting import TemplateStarter
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.model import new_id
from scrapeyard.queues.port import Queue
from scrapeyard.repository.port import Catalogue
from scrapeyard.settings import Settings
from scrapeyard.store.recorder import Recorder
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.engine import Up


async def start_schedules(
    settings: Settings,
    store: SqlStore,
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


async def start_webhooks(settings: Settings, store: SqlStore, up: Up) -> Webhooks:
    """The duty that sends webhooks, with its own HTTP engine. Raises SettingsInvalid."""
    engine = make_webhook_engine(settings)
    await up(engine.start, engine.stop)
    sender = AlertSender(settings.webhooks, engine, store.sealer, time.time, settings.alerts)
    webhooks = Webhooks(settings, store, sender, time.time, new_id("webhooks"))
    await up(webhooks.start, webhooks.stop)
    return webhooks


def make_alerts(settings: Settings, store: SqlStore, queue: Queue) -> Alerts:
    """The duty that evaluates the rules of alerts."""
    return Alerts(settings, store.alerts, AlertRules(settings, store, queue, time.time), time.time)


def make_webhook_engine(settings: Settings) -> WreqEngine:
    """Plain HTTP that imitates no browser and also reaches the hosts that the operator allows for webhooks."""
    allowed = (*settings.http.allow_hosts, *settings.webhooks.allow_hosts)
    seconds = settings.webhooks.timeout_seconds
    changes = {"allow_hosts": allowed, "profile": "none", "total_seconds": seconds, "user_agent": ""}
    return WreqEngine(settings.http.model_copy(update=changes))
