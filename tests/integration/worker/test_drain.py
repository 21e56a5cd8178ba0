"""A worker that is drained through the API: takes nothing, finishes what it has, and takes work again."""

from pathlib import Path
from typing import Any

import httpx

from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE
from tests.services.batch_yard import soon
from tests.services.scripted_site import ScriptedSite

GATED = "def run(ctx, url):\n    return ctx.fetch(url).status\n"


def settings(folder: Path) -> Settings:
    place = folder / "scrapers" / "lab" / "gated"
    place.mkdir(parents=True)
    (place / "scraper.py").write_text(GATED)
    (place / "scraper.toml").write_text('id = "lab/gated"\nversion = "1.0.0"\n')
    return Settings.model_validate(
        {
            "data_dir": folder / "data",
            "gateway": {"port": 0},
            "repository": {"scrapers": folder / "scrapers", "installed": False},
            "worker": {"slots": 2, "heartbeat_seconds": 0.1, "drain_seconds": 0},
            "http": {"allow_private": True},
            "browser": {"enabled": False},
        }
    )


async def test_a_drained_worker_finishes_what_it_has_and_takes_nothing_until_undrained(tmp_path: Path) -> None:
    platform = Platform(settings(tmp_path))
    await platform.start()
    try:
        assert platform.gateway is not None
        with ScriptedSite() as site:
            async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
                try:
                    await drained(client, site)
                finally:
                    site.slow.set()
    finally:
        await platform.stop()


async def drained(client: httpx.AsyncClient, site: ScriptedSite) -> None:
    async def start() -> str:
        body = {"scraper": "lab/gated", "input": {"url": f"{site.url}slow.json"}, "wait": 0}
        return str((await client.post("/api/scrape", json=body)).json()["id"])

    async def worker() -> dict[str, Any]:
        (found,) = (await client.get("/api/workers")).json()["workers"]
        return dict(found)

    async def status(run_id: str) -> str:
        return str((await client.get(f"/api/scrape/{run_id}")).json()["status"])

    async def health() -> tuple[str, str]:
        found = (await client.get("/api/health")).json()
        return found["status"], found["dependencies"]["workers"]["state"]

    first = await start()
    await soon(worker, lambda found: found["running"] == 1)
    path = f"/api/workers/{(await worker())['id']}/drain"
    for _ in range(2):
        asked = await client.post(path)
        assert (asked.status_code, asked.json()["drain"]) == (200, "stay")
    await soon(worker, lambda found: found["draining"])
    assert (await client.post(f"{path}?exit=true")).json()["code"] == "not_alone"
    second = await start()
    await soon(lambda: status(first), lambda found: found == "running")
    assert await status(second) == "queued"
    await soon(health, lambda found: found == ("degraded", "away"))
    site.slow.set()
    await soon(worker, lambda found: found["running"] == 0)
    await soon(lambda: status(first), lambda found: found == "succeeded")
    assert await status(second) == "queued"
    assert (await client.delete(path)).json()["drain"] == ""
    ended = (await client.get(f"/api/scrape/{second}", params={"wait": PATIENCE})).json()
    assert (ended["status"], ended["attempt"]) == ("succeeded", 1)
    assert (await client.post("/api/workers/worker_none/drain")).status_code == 404
    rows = (await client.get("/api/audit", params={"action": "undrain_worker"})).json()["rows"]
    assert [(row["before"], row["after"]) for row in rows] == [({"drain": "stay"}, {"drain": ""})]
