"""Intake on real embedded backends and the real client, and a worker played by hand."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.builtin import PAGE
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.site import Sites
from scrapeyard.inputs.follower import Following
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.inputs.reading import ReadSources
from scrapeyard.inputs.sitemaps import SitemapBounds
from scrapeyard.inputs.source import Source, as_table, first_status
from scrapeyard.model import ExitReason, Limits, new_id
from scrapeyard.model.job import Batch, Item, ItemOutcome, Job
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.settings import HttpSettings
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.sql import SqlStore
from tests.leaks import PATIENCE
from tests.page_builtins import BUILTINS
from tests.services.sqlite import migrated

PATIENT = {
    "allow_private": True,
    "profile": "none",
    "connect_seconds": PATIENCE,
    "read_seconds": PATIENCE,
    "total_seconds": PATIENCE,
}
START = 1_800_000_000.0
SCRAPER = BUILTINS[PAGE].scraper


@dataclass
class Clock:
    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass(kw_only=True)
class Stand:
    store: SqlStore
    blobs: ObjectBlobs
    engine: WreqEngine
    catalogue: SourcedCatalogue
    clock: Clock = field(default_factory=Clock)
    waits: list[float] = field(default_factory=list)
    """How long intake waited before it tried again."""

    def intake(self, store: Any = None, bounds: SitemapBounds | None = None) -> ItemImporter:
        """A process of its own."""
        return ItemImporter(
            store=store or self.store,
            blobs=self.blobs,
            engine=self.engine,
            catalogue=self.catalogue,
            checker=InputChecker(),
            holder=new_id("reader"),
            clock=self.clock,
            pause=self._pause,
            bounds=bounds,
        )

    def reading(self, intake: ItemImporter | None = None) -> ReadSources:
        return ReadSources(self.store.jobs, intake or self.intake(), self.clock)

    def following(self, store: Any = None) -> Following:
        return Following(
            store=store or self.store,
            blobs=self.blobs,
            engine=self.engine,
            catalogue=self.catalogue,
            checker=InputChecker(),
            sites=Sites(),
            clock=self.clock,
        )

    async def create(self, source: Source, /, **more: Any) -> Job:
        fields: dict[str, Any] = {
            "id": new_id("job"),
            "status": first_status(source),
            "scraper": PAGE,
            "pinned": str(SCRAPER.ref),
            "source": as_table(source),
            "reading": True,
            "created_at": self.clock(),
        }
        job = Job(**{**fields, **more})
        assert await self.store.jobs.create(job)
        return job

    async def job(self, job: Job) -> Job:
        found = await self.store.jobs.get(job.id)
        assert found is not None
        return found

    async def items(self, job: Job) -> list[Item]:
        return [item async for block in self.store.items.stream(job.id, ItemFilter()) for item in block]

    async def urls(self, job: Job) -> list[str]:
        return [msgspec.json.decode(item.input)["url"] for item in await self.items(job)]

    async def events(self, job: Job, kind: str) -> list[Any]:
        return [
            msgspec.json.decode(event.data)
            for event in await self.store.events.after(job.id, 0, 100)
            if event.kind == kind
        ]

    async def run(self, job: Job, result: Callable[[str], Any], limit: int = 1000) -> int:
        """Play a worker that ends up to so many items; how many there were. None for a result: it failed."""
        now = self.clock()
        batch = Batch(id=new_id("batch"), job_id=job.id, left=limit, queued_at=now)
        if await self.store.batches.cut(batch, now) is None:
            return 0
        taken = await self.store.batches.take(batch.id, "worker_1", now, now + 60)
        assert taken is not None
        outcomes = [
            ItemOutcome(
                seq=item.seq,
                attempt=item.attempt,
                exit_reason=ExitReason.SUCCEEDED if found is not None else ExitReason.FAILED,
                result=Raw(msgspec.json.encode(found)) if found is not None else None,
                started_at=now,
                finished_at=now,
            )
            for item in taken[2]
            for found in [result(msgspec.json.decode(item.input)["url"])]
        ]
        assert await self.store.batches.record(batch.id, "worker_1", 0, outcomes, now) is not None
        return len(outcomes)

    async def _pause(self, seconds: float) -> None:
        self.waits.append(seconds)


@asynccontextmanager
async def a_stand(folder: Path, **http: Any) -> AsyncIterator[Stand]:
    """Started, and stopped in the end."""
    stand = Stand(
        store=SqlStore(migrated(folder / "jobs.sqlite")),
        blobs=ObjectBlobs.in_folder(folder / "blobs"),
        engine=WreqEngine(HttpSettings(**{**PATIENT, **http})),
        catalogue=SourcedCatalogue([], folder / "scrapers", {PAGE: SCRAPER}, LoadTerms(ceiling=Limits())),
    )
    async with AsyncExitStack() as stack:
        for part in (stand.store, stand.engine, stand.catalogue):
            await part.start()
            stack.push_async_callback(part.stop)
        yield stand
