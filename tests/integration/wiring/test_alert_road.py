"""Alerts and the scale signal in whole servers: a gateway and a dispatcher on Redis, then a worker, and a real
receiver."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE
from tests.services.valkey import ValkeyServer
from tests.sites.site import Site, page

SECRET = "a secret of sixteen or more"
RULES = [
    {"kind": "worker_loss"},
    {"kind": "failure_rate", "threshold": 0.2, "minimum": 4, "window_minutes": 60},
    {"kind": "queue_age", "threshold": 0.5},
]


def settings_of(folder: Path, redis_url: str, hook: str) -> Settings:
    place = folder / "scrapers" / "shop" / "product"
    place.mkdir(parents=True)
    (place / "scraper.py").write_text("def run(ctx, bad):\n    return {'got': 1 / (0 if bad else 1)}\n")
    (place / "scraper.toml").write_text('id = "shop/product"\nversion = "1.0.0"\n')
    return Settings.model_validate(
        {
            "data_dir": folder / "data",
            "redis_url": redis_url,
            "gateway": {"port": 0},
            "repository": {"scrapers": folder / "scrapers", "installed": False},
            "worker": {"slots": 2, "heartbeat_seconds": 0.2},
            "webhooks": {"allow_hosts": ["127.0.0.0/8"]},
            "alerts": {"every_seconds": 1, "rules": RULES, "webhook_url": hook, "webhook_secret": SECRET},
        }
    )


@asynccontextmanager
async def started(settings: Settings, *roles: str) -> AsyncIterator[Platform]:
    platform = Platform(settings, roles)
    await platform.start()
    try:
        yield platform
    finally:
        await platform.stop()


async def until_true(found: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        while not (answer := await found()):
            await asyncio.sleep(0.05)
        return answer


async def test_alerts_fire_and_work_is_counted_on_redis(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        valkey = stack.enter_context(ValkeyServer())
        site = await stack.enter_async_context(Site(routes={"/hook": page(b"")}))
        settings = settings_of(tmp_path, valkey.url, site.url("/hook"))
        gateway = await stack.enter_async_context(started(settings, "gateway"))
        await stack.enter_async_context(started(settings, "dispatcher"))
        assert gateway.gateway is not None
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=gateway.gateway.url, timeout=PATIENCE))

        async def firing() -> set[str]:
            found = (await client.get("/api/alerts")).json()["alerts"]
            return {alert["rule"] for alert in found if alert["state"] == "firing"}

        async def scale() -> dict[str, Any]:
            return dict((await client.get("/api/stats/scale?target_seconds=1&lane=default")).json())

        call = {"scraper": "shop/product", "input": {"bad": 0}, "wait": 0}
        for _ in range(3):
            assert (await client.post("/api/scrape", json=call)).status_code == 202
        waiting = await scale()
        assert (waiting["workers"], waiting["lanes"][0]["runs"], waiting["measured"]) == (0, 3, False)
        assert waiting["wanted_workers"] >= 1

        async def both() -> bool:
            return await firing() >= {"worker_loss", "queue_age"}

        await until_true(both)
        await stack.enter_async_context(started(settings, "worker"))

        async def idle() -> bool:
            found = await scale()
            return bool(found["workers"] == 1 and found["wanted_workers"] == 0 and found["measured"])

        await until_true(idle)
        items = [{"bad": number} for number in range(6)]
        job = {"scraper": "shop/product", "items": items, "policy": {"retries": 0}}
        assert (await client.post("/api/jobs", json=job)).status_code == 201

        async def only_failures() -> bool:
            return await firing() == {"failure_rate"}

        await until_true(only_failures)

        async def told() -> bool:
            bodies = [json.loads(asked.body) for asked in site.asked]
            heard = {(body["event"], body["alert"]["rule"]) for body in bodies}
            return heard >= {
                *(("alert.firing", rule) for rule in ("worker_loss", "queue_age", "failure_rate")),
                *(("alert.resolved", rule) for rule in ("worker_loss", "queue_age")),
            }

        await until_true(told)
