"""The whole platform in this process, with jobs put into its store by hand and looked at there."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard import __version__
from scrapeyard.model import new_id
from scrapeyard.model.job import Item, Job, JobPolicy, JobStatus, NewItem
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE

ECHO = f"builtin/echo@{__version__}"


@dataclass(frozen=True, kw_only=True)
class BatchYard:
    """A running platform and its store."""

    platform: Platform
    store: SqlStore
    data_dir: Path

    async def job(self, scraper: str, inputs: Sequence[Any], **policy: Any) -> str:
        """A job that runs; its items are called `k0`, `k1`, …"""
        job = Job(
            id=new_id("job"),
            status=JobStatus.PAUSED,
            scraper=scraper.partition("@")[0],
            pinned=scraper,
            policy=JobPolicy(**policy),
            created_at=time.time(),
            pause_reason="its items are put in",
        )
        assert await self.store.jobs.create(job)
        items = [NewItem(key=f"k{n}", input=Raw(msgspec.json.encode(given))) for n, given in enumerate(inputs)]
        for block in range(0, len(items), 1000):
            await self.store.items.add(job.id, items[block : block + 1000], block // 1000, time.time())
        await self.store.jobs.set_paused(job.id, False, "", time.time())
        return job.id

    async def ended(self, job_id: str, seconds: float = PATIENCE) -> Job:
        """The job, when each of its items has ended."""

        async def look() -> Job:
            job = await self.store.jobs.get(job_id)
            assert job is not None
            return job

        job: Job = await soon(look, lambda job: job.counts.done == job.counts.total, seconds)
        return job

    async def items(self, job_id: str) -> list[Item]:
        """All of them, in order."""
        found: list[Item] = []
        async for block in self.store.items.stream(job_id, ItemFilter()):
            found += block
        return found

    async def run(self, scraper: str, inputs: Sequence[Any], **policy: Any) -> list[Item]:
        """The items of a job that has ended."""
        job_id = await self.job(scraper, inputs, **policy)
        await self.ended(job_id)
        return await self.items(job_id)


async def soon(look: Any, good: Any, seconds: float = PATIENCE) -> Any:
    """What `look` brings, once it is good. Raises AssertionError with the last that was not."""
    ends = time.monotonic() + seconds
    while not good(found := await look()):
        assert time.monotonic() < ends, found
        await asyncio.sleep(0.02)
    return found


@asynccontextmanager
async def batch_yard(folder: Path, scripts: dict[str, str], **settings: Any) -> AsyncIterator[BatchYard]:
    """A platform that knows these scrapers, each version 1.0.0."""
    for name, source in scripts.items():
        place = folder / "scrapers" / name
        place.mkdir(parents=True)
        (place / "scraper.py").write_text(source)
        (place / "scraper.toml").write_text(f'id = "{name}"\nversion = "1.0.0"\n')
    given = {
        "data_dir": folder / "data",
        "gateway": {"port": 0},
        "repository": {"scrapers": folder / "scrapers"},
        "worker": {"slots": 4, "reserved_slots": 1, "heartbeat_seconds": 0.2, "drain_seconds": 10},
        "http": {"allow_private": True},
    }
    platform = Platform(Settings.model_validate({**given, **settings}))
    await platform.start()
    try:
        assert platform.worker is not None
        store = platform.worker._store
        assert isinstance(store, SqlStore)
        yield BatchYard(platform=platform, store=store, data_dir=folder / "data")
    finally:
        await platform.stop()
