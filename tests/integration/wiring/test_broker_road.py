"""Whole servers on a broker other than Redis: calls that wait, jobs, an outage, and what `doctor` tells."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.cli.doctor.checks import check_queue
from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE
from tests.services.kafka import KafkaServer
from tests.services.nats import NatsServer
from tests.services.sqs import SqsServer


def _nats(request: pytest.FixtureRequest) -> tuple[NatsServer, dict[str, Any]]:
    server: NatsServer = request.getfixturevalue("own_nats")
    return server, {"url": server.url}


def _sqs(request: pytest.FixtureRequest) -> tuple[SqsServer, dict[str, Any]]:
    server: SqsServer = request.getfixturevalue("own_sqs")
    return server, {"url": server.url}


def _kafka(request: pytest.FixtureRequest) -> tuple[KafkaServer, dict[str, Any]]:
    server: KafkaServer = request.getfixturevalue("own_kafka")
    return server, {"url": server.url}


@pytest.fixture(params=[_nats, _sqs, _kafka], ids=["nats", "sqs", "kafka"])
def broker(request: pytest.FixtureRequest) -> Any:
    """A server that the test may stop, and the settings that name it."""
    return request.param(request)


def settings_of(folder: Path, queue: dict[str, Any]) -> Settings:
    place = folder / "scrapers" / "shop" / "product"
    place.mkdir(parents=True)
    (place / "scraper.py").write_text("def run(ctx, n):\n    return {'twice': 2 * n}\n")
    (place / "scraper.toml").write_text('id = "shop/product"\nversion = "1.0.0"\n')
    return Settings.model_validate(
        {
            "data_dir": folder / "data",
            "queue": queue,
            "gateway": {"port": 0},
            "repository": {"scrapers": folder / "scrapers", "installed": False},
            "worker": {"slots": 2, "heartbeat_seconds": 0.2},
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


async def call(client: httpx.AsyncClient, number: int) -> httpx.Response:
    return await client.post(
        "/api/scrape", json={"scraper": "shop/product", "input": {"n": number}, "wait": PATIENCE}, timeout=2 * PATIENCE
    )


async def test_calls_and_jobs_go_on_after_the_broker_was_away(tmp_path: Path, broker: Any) -> None:
    server, queue = broker
    settings = settings_of(tmp_path, queue)
    async with AsyncExitStack() as stack:
        for role in ("worker", "dispatcher"):
            await stack.enter_async_context(started(settings, role))
        gateway = await stack.enter_async_context(started(settings, "gateway"))
        assert gateway.gateway is not None
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=gateway.gateway.url, timeout=2 * PATIENCE))
        first = await call(client, 21)
        assert first.json().get("result") == {"twice": 42}, first.text

        server.stop()
        async with asyncio.timeout(PATIENCE):
            while (refused := await call(client, 1)).json()["code"] == "maybe_accepted":
                """It left on a connection that was still open."""
        assert (refused.status_code, refused.json()["code"]) == (503, "queue_unavailable"), refused.text
        away = await check_queue(settings)
        assert (away.state, "queue.url" in away.remedy) == ("fail", True), away
        server.start()

        async with asyncio.timeout(PATIENCE):
            while (answer := await call(client, 4)).status_code == 503:
                await asyncio.sleep(0.05)
        assert answer.json()["result"] == {"twice": 8}
        items = [{"n": number} for number in range(8)]
        job = (await client.post("/api/jobs", json={"scraper": "shop/product", "items": items})).json()
        async with asyncio.timeout(PATIENCE):
            while (job := (await client.get(f"/api/jobs/{job['id']}")).json())["status"] != "completed":
                await asyncio.sleep(0.05)
        assert job["counts"]["success"] == 8

        told = await check_queue(settings)
        assert (told.state, "without Redis" in told.detail) == ("warn", True), told
