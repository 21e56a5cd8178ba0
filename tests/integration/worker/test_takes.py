"""Workers that take only the work of some scrapers, on the embedded queue and on Redis."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from scrapeyard.wiring.starting import ALL_ROLES, Role
from tests.leaks import PATIENCE
from tests.services.batch_yard import soon
from tests.services.valkey import ValkeyServer

SCRIPT = "def run(ctx):\n    return ctx.run_id\n"
NAMES = ("shop/product", "shop/list", "toys/product", "toys/list")


def settings(folder: Path, takes: tuple[str, ...], redis_url: str) -> Settings:
    return Settings.model_validate(
        {
            "data_dir": folder / "data",
            "redis_url": redis_url,
            "gateway": {"port": 0},
            "repository": {"scrapers": folder / "scrapers", "installed": False},
            "worker": {"slots": 2, "reserved_slots": 0, "heartbeat_seconds": 0.2, "drain_seconds": 0, "takes": takes},
            "lanes": {"patterns": ["shop/*", "*/product"]},
        }
    )


@asynccontextmanager
async def yard(
    folder: Path, *workers: tuple[str, ...], redis_url: str = ""
) -> AsyncIterator[tuple[httpx.AsyncClient, list[str]]]:
    """A gateway, and a worker for each of these `worker.takes`; their ids, in order. Without Redis there is one."""
    for name in NAMES:
        place = folder / "scrapers" / name
        if not place.exists():
            place.mkdir(parents=True)
            (place / "scraper.py").write_text(SCRIPT)
            (place / "scraper.toml").write_text(f'id = "{name}"\nversion = "1.0.0"\n')
    roles: list[tuple[Role, ...]] = [ALL_ROLES, *([("worker",)] * (len(workers) - 1))]
    async with AsyncExitStack() as stack:
        platforms = []
        for takes, role in zip(workers, roles, strict=True):
            platform = Platform(settings(folder, takes, redis_url), role)
            await platform.start()
            stack.push_async_callback(platform.stop)
            platforms.append(platform)
        assert platforms[0].gateway is not None
        client = httpx.AsyncClient(base_url=platforms[0].gateway.url, timeout=PATIENCE)
        await stack.enter_async_context(client)
        yield client, [platform.worker.id for platform in platforms if platform.worker]


async def call(client: httpx.AsyncClient, name: str, wait: float = PATIENCE) -> dict[str, Any]:
    answer = await client.post("/api/scrape", json={"scraper": name, "wait": wait})
    assert answer.status_code in (200, 202), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def worker_of(client: httpx.AsyncClient, run: dict[str, Any]) -> str:
    told = (await client.get(f"/api/scrape/{run['id']}/explain")).json()
    return str(told["worker"])


async def test_on_redis_each_worker_takes_its_own(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        async with yard(tmp_path, ("shop/*",), ("!shop/*",), redis_url=valkey.url) as (client, (shop, rest)):
            for name in NAMES:
                run = await call(client, name)
                assert await worker_of(client, run) == (shop if name.startswith("shop/") else rest), name
            items = [{"item_id": f"i{n}", "input": {}} for n in range(20)]
            job = (await client.post("/api/jobs", json={"scraper": "shop/list", "items": items})).json()

            async def done() -> dict[str, Any]:
                found: dict[str, Any] = (await client.get(f"/api/jobs/{job['id']}")).json()
                return found

            ended = await soon(done, lambda found: found["status"] == "completed")
            assert ended["counts"]["success"] == 20
            workers = {each["id"]: each for each in (await client.get("/api/workers")).json()["workers"]}
            assert (workers[shop]["takes"], workers[rest]["takes"]) == (["shop/*"], ["!shop/*"])
            assert workers[shop]["lanes"] == ["for.shop._"]


@pytest.fixture(params=["embedded", "redis"])
def redis_or_none(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server, or nothing for the embedded queue."""
    if request.param == "embedded":
        yield ""
        return
    with ValkeyServer() as valkey:
        yield valkey.url


async def test_what_nobody_takes_waits_is_told_and_runs_when_somebody_does(tmp_path: Path, redis_or_none: str) -> None:
    async with yard(tmp_path, ("shop/*",), redis_url=redis_or_none) as (client, _):
        assert (await call(client, "shop/list"))["status"] == "succeeded"
        waits = await call(client, "toys/product", wait=0)
        told = (await client.get(f"/api/scrape/{waits['id']}/explain")).json()["summary"]
        assert any("No worker takes toys/product" in words for words in told), told

        async def health() -> dict[str, Any]:
            found: dict[str, Any] = (await client.get("/api/health")).json()
            return found

        bad = await soon(health, lambda found: found["status"] == "degraded")
        assert "no worker takes */product (1 wait)" in bad["dependencies"]["workers"]["detail"]
    async with yard(tmp_path, (), redis_url=redis_or_none) as (client, _):

        async def run() -> dict[str, Any]:
            found: dict[str, Any] = (await client.get(f"/api/scrape/{waits['id']}")).json()
            return found

        assert (await soon(run, lambda found: found["status"] == "succeeded"))["result"] == waits["id"]
