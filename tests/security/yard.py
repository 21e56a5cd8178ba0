"""The whole platform in this process, with scrapers written by a test, and a look at what each leaves behind."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.sandbox.handles.sandbox import ForkSandbox
from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.contract.sandboxes import SMALL, Traces, descendants, eventually
from tests.leaks import PATIENCE

LIMITS = {
    "wall_seconds": 300,  # both far above the rest: a busy machine must not change how an attack ends
    "cpu_seconds": 30,
    "memory_mb": 64,
    "disk_mb": 4,
    "output_mb": 1,
    "log_kb": 64,
    "artifact_mb": 1,
    "threads": 8,
    "fetches": 50,
}
PLENTY = replace(SMALL, wall_seconds=300, cpu_seconds=30)
"""The same for runs without a platform."""
GOOD = "def run(ctx): return 'good'\n"
WAIT = 300
"""The longest that a call may wait: several attacks share a processor that others use too."""


@dataclass(frozen=True, kw_only=True)
class Yard:
    """A running platform, called over HTTP."""

    platform: Platform
    scrapers: Path
    data_dir: Path
    client: httpx.AsyncClient
    others: frozenset[int]
    """Processes that were there before: servers that other tests keep."""

    @property
    def sandbox(self) -> ForkSandbox:
        assert self.platform.worker is not None
        sandbox = self.platform.worker._sandbox
        assert isinstance(sandbox, ForkSandbox)
        return sandbox

    @property
    def port(self) -> int:
        return int(str(self.client.base_url).rpartition(":")[2].strip("/"))

    def write(self, name: str, source: str, **limits: float) -> str:
        """Put a scraper into the folder; its id."""
        folder = self.scrapers / "attack" / name
        folder.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(f"{key} = {value}" for key, value in {**LIMITS, **limits}.items())
        (folder / "scraper.py").write_text(source)
        (folder / "scraper.toml").write_text(f'id = "attack/{name}"\nversion = "1.0.0"\n[limits]\n{lines}\n')
        return f"attack/{name}"

    async def refresh(self) -> None:
        """Let the platform see what was written."""
        answer = await self.client.post("/api/scrapers/refresh")
        assert answer.status_code < 300, answer.text

    async def run(self, scraper: str, **given: Any) -> dict[str, Any]:
        """One run to its end, as a caller sees it. Whoever leaves before cancels it."""
        call = {"scraper": scraper, "input": given, "wait": WAIT, "on_disconnect": "cancel"}
        answer = await self.client.post("/api/scrape", json=call)
        assert answer.status_code in (200, 502, 504), answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def check(self) -> None:
        """A good scraper is served, and no process is there that the sandbox does not know."""
        assert (await self.run("attack/good"))["result"] == "good"
        await eventually(lambda: not self._unknown(), lambda: f"unknown processes {self._unknown()}")

    def _unknown(self) -> set[int]:
        sandbox = self.sandbox
        known = {zygote.pid for zygote in sandbox._zygotes.values()}
        for parent in sandbox._by_number.values():
            known |= {parent.pid, *(child.pid for child in parent._children.values() if child.open)}
        return set(descendants(os.getpid())) - known - self.others


@asynccontextmanager
async def yard(folder: Path, attacks: dict[str, tuple[str, dict[str, float]]]) -> AsyncIterator[Yard]:
    """A platform that knows these scrapers and a good one."""
    await ObjectBlobs.in_folder(folder / "warm").put("a", b"", "text/plain")  # its library then keeps three descriptors
    before = Traces.now()
    scrapers, data_dir = folder / "scrapers", folder / "data"
    scrapers.mkdir(exist_ok=True)
    settings = Settings.model_validate(
        {
            "data_dir": data_dir,
            "gateway": {"port": 0},
            "repository": {"scrapers": scrapers},
            "sandbox": {"load_seconds": WAIT},
            "worker": {
                "slots": 6,
                "reserved_slots": 1,
                "ahead": 1,
                "max_scrapers": 8,
                "drain_seconds": 0,
                "lease_seconds": WAIT,
            },
        }
    )
    platform = Platform(settings)
    client = httpx.AsyncClient(timeout=WAIT + PATIENCE)
    made = Yard(platform=platform, scrapers=scrapers, data_dir=data_dir, client=client, others=before.processes)
    made.write("good", GOOD)
    for name, (source, limits) in attacks.items():
        made.write(name, source, **limits)
    await platform.start()
    try:
        assert platform.gateway is not None
        client.base_url = platform.gateway.url
        yield made
    finally:
        await client.aclose()
        await platform.stop()
    await before.check()
