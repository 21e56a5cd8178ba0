"""A gateway on real embedded backends, and a worker played by hand: it takes from the queue and records and replies."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
from fastapi import FastAPI
from msgspec import Raw

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.gateway.app import GatewayServices, application
from scrapeyard.gateway.limits.memory import MemoryLimiter
from scrapeyard.gateway.services import Gateway
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.model import (
    Delivery,
    ExitReason,
    Outcome,
    Priority,
    Run,
    RunStatus,
    Scraper,
    ScraperRef,
    Timing,
    Usage,
    WorkerInfo,
)
from scrapeyard.model.identity import Pepper
from scrapeyard.queues import messages
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.queues.port import Queue
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue, Upkeep
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.sources.folder import FolderSource
from scrapeyard.settings import GatewaySettings, Settings
from scrapeyard.store.ports.runs import Ending
from scrapeyard.store.recorder import Recorder
from scrapeyard.store.sql import SqlStore
from tests.leaks import PATIENCE
from tests.services.sqlite import migrated

PAGE = Scraper(
    ref=ScraperRef(id="builtin/page", version="1.0.0"),
    folder=None,
    input_schema={"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
)
DOCUMENT = Scraper(ref=ScraperRef(id="builtin/document", version="1.0.0"), folder=None)
MAP = Scraper(ref=ScraperRef(id="builtin/map", version="1.0.0"), folder=None)
EXTRACT = Scraper(ref=ScraperRef(id="builtin/extract", version="1.0.0"), folder=None)
MANIFEST = """
id = "shop/product"
version = "1.4.2"
description = "Title and price of one product."
[limits]
wall_seconds = 20
"""
SCRIPT = """
async def run(ctx, url: str, currency: str = "USD") -> dict:
    return {"url": url, "currency": currency}
"""


@dataclass(frozen=True, kw_only=True)
class Stand:
    """The gateway's door and everything behind it."""

    settings: Settings
    services: GatewayServices
    gateway: Gateway
    app: FastAPI
    client: httpx.AsyncClient
    queue: Queue
    store: SqlStore
    recorder: Recorder
    blobs: ObjectBlobs

    async def take(self, seconds: float = PATIENCE) -> Delivery:
        """The next delivery, as a worker takes it."""
        taken = await self.queue.take(["default", "bulk"], 1, list(Priority), seconds)
        assert taken, "nothing was delivered"
        return taken[0]

    async def finish(self, delivery: Delivery, reason: ExitReason = ExitReason.SUCCEEDED, **more: Any) -> Outcome:
        """End a delivery as a worker does: record the outcome, then tell the gateway that waits."""
        outcome = outcome_of(delivery, reason, **more)
        await self.store.runs.finish([Ending(run=run_of(delivery), outcome=outcome)])
        await self.reply(delivery, outcome)
        return outcome

    async def reply(self, delivery: Delivery, outcome: Outcome) -> None:
        """Tell the gateway that waits, if one does."""
        if delivery.reply_to:
            await self.queue.send(messages.replies(delivery.reply_to), messages.encode(outcome))


def outcome_of(delivery: Delivery, reason: ExitReason = ExitReason.SUCCEEDED, **more: Any) -> Outcome:
    """How a played attempt ended."""
    now = time.time()
    fields: dict[str, Any] = {
        "scraper": ScraperRef(id=delivery.scraper.partition("@")[0], version="1.4.2", digest="d"),
        "result": Raw(b'{"title":"Tea","price":1.50}') if reason is ExitReason.SUCCEEDED else None,
        "usage": Usage(wall_ms=12.5, cpu_ms=3, memory_mb=20),
        "timing": Timing(queue_ms=1, child_start_ms=1, script_ms=10, fetch_ms=8),
        "worker_id": "worker_1",
        "started_at": now - 0.0125,
        "finished_at": now,
    }
    return Outcome(run_id=delivery.run_id, attempt=delivery.attempt, exit_reason=reason, **{**fields, **more})


def run_of(delivery: Delivery) -> Run:
    """The run a delivery stands for, begun."""
    return Run(
        id=delivery.run_id,
        status=RunStatus.RUNNING,
        scraper=delivery.scraper,
        input=delivery.input,
        lane=delivery.lane,
        priority=delivery.priority,
        attempt=delivery.attempt,
        max_attempts=delivery.max_attempts,
        timeout_seconds=delivery.timeout_seconds,
        created_at=delivery.created_at,
        queued_at=delivery.queued_at,
        started_at=time.time(),
        lease_until=time.time() + 15,
        worker_id="worker_1",
        reply_to=delivery.reply_to,
        traceparent=delivery.traceparent,
        fetching=delivery.fetching,
        owner=delivery.owner,
    )


def worker(**more: Any) -> WorkerInfo:
    """A heartbeat."""
    fields: dict[str, Any] = {
        "id": "worker_1",
        "host": "here",
        "pid": 1,
        "version": "0.1.0",
        "lanes": ("default", "bulk"),
        "engines": ("http",),
        "walls": (),
        "slots": 4,
        "busy": 1,
        "started_at": time.time(),
        "seen_at": time.time(),
    }
    return WorkerInfo(**{**fields, **more})


def write_scraper(folder: Path, version: str = "1.4.2", place: str = "shop/product") -> Path:
    """A version of the scraper among the scrapers of a folder, where a gateway finds it at its next look."""
    home = folder / "scrapers" / place
    home.mkdir(parents=True, exist_ok=True)
    (home / "scraper.toml").write_text(MANIFEST.replace("1.4.2", version))
    (home / "scraper.py").write_text(SCRIPT)
    return home


@asynccontextmanager
async def open_services(
    folder: Path, settings: Settings, queue: Queue | None = None, gateway_id: str = "gw1"
) -> AsyncIterator[GatewayServices]:
    """Backends in a folder: SQLite, blobs and one scraper in files; a queue in memory unless another is given."""
    write_scraper(folder)
    database = migrated(folder / "runs.sqlite")
    catalogue = SourcedCatalogue(
        [FolderSource(folder / "scrapers")],
        folder / "cache",
        {each.ref.id: each for each in (PAGE, DOCUMENT, MAP, EXTRACT)},
        LoadTerms(ceiling=settings.limits.as_limits()),
        Upkeep(refresh_seconds=3600, start_seconds=PATIENCE),
    )
    store, queue = SqlStore(database), queue or MemoryQueue()
    blobs, engine = ObjectBlobs.in_folder(folder / "blobs"), WreqEngine(settings.http, sessions=store.sessions)
    intake = ItemImporter(
        store=store, blobs=blobs, engine=engine, catalogue=catalogue, checker=InputChecker(), holder=gateway_id
    )
    async with AsyncExitStack() as stack:
        for part in (store, queue, catalogue, engine):
            await part.start()
            stack.push_async_callback(part.stop)
        recorder = await stack.enter_async_context(Recorder(store.runs))
        yield GatewayServices(
            settings=settings,
            queue=queue,
            store=store,
            recorder=recorder,
            blobs=blobs,
            catalogue=catalogue,
            intake=intake,
            gateway_id=gateway_id,
            limiter=MemoryLimiter(),
            pepper=Pepper(b"p" * 32),
        )


@asynccontextmanager
async def open_stand(
    folder: Path, settings: Settings | None = None, queue: Queue | None = None, gateway_id: str = "gw1"
) -> AsyncIterator[Stand]:
    """A gateway without a socket; calls go straight into the application, and wait long unless they say."""
    settings = settings or Settings(gateway=GatewaySettings(wait_seconds=PATIENCE))
    async with open_services(folder, settings, queue, gateway_id) as services:
        gateway = Gateway(services)
        app = application(gateway)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=PATIENCE) as client,
        ):
            yield Stand(
                settings=settings,
                services=services,
                gateway=gateway,
                app=app,
                client=client,
                queue=services.queue,
                store=services.store,  # type: ignore[arg-type]
                recorder=services.recorder,
                blobs=services.blobs,  # type: ignore[arg-type]
            )


def raw(value: Any) -> Raw:
    """A value as a result."""
    return Raw(msgspec.json.encode(value))
