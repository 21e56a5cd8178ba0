"""`/events`: live, replayed, and without a leak."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.gateway.server import GatewayServer
from scrapeyard.gateway.services import GatewayServices
from scrapeyard.model import ExitReason, LogLine, Priority
from scrapeyard.queues import messages
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import GatewaySettings, Settings
from scrapeyard.store.ports.runs import Ending
from tests.integration.gateway_stand import Stand, open_services, open_stand, outcome_of, run_of
from tests.leaks import PATIENCE

URL = "https://shop.example/p/1"


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[GatewayServer, GatewayServices, httpx.AsyncClient]]:
    async with open_services(folder, Settings(gateway=GatewaySettings(port=0))) as services:
        server = GatewayServer(services)
        await server.start()
        try:
            async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
                yield server, services, client
        finally:
            await server.stop()


def parse(text: str) -> list[tuple[str, dict[str, Any]]]:
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [(block.split("\n")[0][7:], json.loads(block.split("\n")[1][6:])) for block in blocks]


async def test_a_run_that_ended_replays_its_logs(stand: Stand) -> None:
    await stand.client.post("/api/scrape", json={"url": URL, "wait": 0})
    delivery = await stand.take()
    await stand.finish(delivery, ExitReason.FAILED, logs=(LogLine(at_ms=1, stream="stdout", text="a\n\nb"),))
    response = await stand.client.get(f"/api/scrape/{delivery.run_id}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    (log, line), (end, last) = parse(response.text)
    assert (log, line["text"], end) == ("log", "a\n\nb", "end")
    assert (last["status"], last["exit_reason"]) == ("failed", "failed")


async def test_a_run_is_followed_to_its_end_over_a_socket(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, services, client):
        queue = services.queue
        await client.post("/api/scrape", json={"url": URL, "wait": 0})
        (delivery,) = await queue.take(["default"], 1, list(Priority), PATIENCE)
        async with client.stream("GET", f"/api/scrape/{delivery.run_id}/events") as stream:
            lines = stream.aiter_text()
            received = await anext(lines)
            assert parse(received)[0][0] == "status"
            await queue.send(messages.events(delivery.run_id), b'{"type":"log","text":"hi"}')
            await queue.send(messages.events(delivery.run_id), b"nonsense")
            await services.store.runs.finish([Ending(run=run_of(delivery), outcome=outcome_of(delivery))])
            received += "".join([piece async for piece in lines])
    assert [name for name, _ in parse(received)] == ["status", "log", "end"]


async def test_a_reader_that_hangs_up_leaves_nothing_behind(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, services, client):
        queue = services.queue
        assert isinstance(queue, MemoryQueue)
        run_id = (await client.post("/api/scrape", json={"url": URL, "wait": 0})).json()["id"]
        async with client.stream("GET", f"/api/scrape/{run_id}/events") as stream:
            await anext(stream.aiter_text())
            assert messages.events(run_id) in queue._listeners.channels()
        await client.aclose()
        async with asyncio.timeout(PATIENCE):
            while messages.events(run_id) in queue._listeners.channels():
                await asyncio.sleep(0.01)
            while server._gateway.waiters.count:
                await asyncio.sleep(0.01)
