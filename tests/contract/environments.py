"""A sandbox and real environments for it, from wheels that a test writes."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.sandbox.port import Verdict, Work
from scrapeyard.settings import EnvironmentSettings
from tests.contract.sandboxes import SMALL, Bench, Served


@dataclass(frozen=True, kw_only=True)
class Furnished:
    """A bench whose scrapers may require packages."""

    bench: Bench
    environments: Environments

    def scraper(self, source: str, *requirements: str) -> Scraper:
        """The same source and requirements are the same scraper."""
        digest = hashlib.sha256(f"{source}{requirements}".encode()).hexdigest()
        folder = self.bench.folder / digest[:16]
        folder.mkdir(exist_ok=True, mode=0o755)
        (folder / "scraper.py").write_text(source)
        ref = ScraperRef(id="test/case", version="1.0.0", digest=digest)
        return Scraper(ref=ref, folder=folder, limits=SMALL, requirements=requirements)

    async def run(self, scraper: Scraper, served: Served | None = None, **given: Any) -> Verdict:
        """One run, its packages installed before."""
        work = Work(
            run_id="run_1",
            attempt=1,
            input=Raw(msgspec.json.encode(given)),
            limits=scraper.limits,
            environment=await self.environments.ready(scraper),
        )
        return await self.bench.sandbox.run(scraper, work, served or Served())


@asynccontextmanager
async def furnish(bench: Bench, wheels: Path) -> AsyncIterator[Furnished]:
    """Environments from this folder of wheels alone, kept in the bench's folder."""
    settings = EnvironmentSettings(find_links=(str(wheels),), offline=True)
    environments = Environments(settings, bench.folder / "environments")
    await environments.start()
    try:
        yield Furnished(bench=bench, environments=environments)
    finally:
        await environments.stop()
