"""`/events`: live, replayed, and without a leak."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.gateway.runs import events
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.gateway.services import GatewayServices
from scrapeyard.model import ExitReason, LogLine, Priority, Replay
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
    fields = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    return [(each["event"], json.loads(each["data"])) for each in fields]


def numbered(attempt: int, *lines: tuple[int, str]) -> list[dict[str, Any]]:
    """Log lines as a worker sends them, each with its number in the attempt."""
    return [{"type": "log", "id": messages.line_id(attempt, number), "text": text} for number, text in lines]


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
            (line,) = numbered(1, (1, "hi"))
            await queue.send(messages.events(delivery.run_id), json.dumps(line).encode())
            await queue.send(messages.events(delivery.run_id), b"nonsense")
            logs = tuple(LogLine(at_ms=1, stream="stdout", text=text) for text in ("hi", "the last words"))
            ending = Ending(run=run_of(delivery), outcome=outcome_of(delivery, logs=logs))
            await services.store.runs.finish([ending])
            received += "".join([piece async for piece in lines])
    told = parse(received)
    assert [name for name, _ in told] == ["status", "log", "log", "end"]
    assert [event["text"] for name, event in told if name == "log"] == ["hi", "the last words"]


async def test_who_comes_late_gets_the_lines_from_before_first_and_none_twice(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, services, client):
        queue = services.queue
        await client.post("/api/scrape", json={"url": URL, "wait": 0})
        (delivery,) = await queue.take(["default"], 1, list(Priority), PATIENCE)

        async def send(*said: dict[str, Any]) -> None:
            for each in said:
                await queue.send(messages.events(delivery.run_id), json.dumps(each).encode())

        first = messages.line_id(2, 1)
        before = [{"at_ms": 1, "stream": "stdout", "text": text} for text in "abc"]
        async with queue.listen(messages.SIGNALS) as signals:
            path = f"/api/scrape/{delivery.run_id}/events"
            async with client.stream("GET", path, headers={"Last-Event-ID": str(first)}) as stream:
                assert messages.decode_signal(await anext(signals)) == Replay(run_id=delivery.run_id)
                await send(*numbered(2, (3, "c"), (4, "d")))
                await send({"type": "logs", "first": first, "lines": before[:2], "more": True})
                await send({"type": "logs", "first": first + 2, "lines": before[2:], "more": False})
                await send(*numbered(2, (4, "d"), (5, "e")), *numbered(3, (1, "again")))
                await services.store.runs.finish([Ending(run=run_of(delivery), outcome=outcome_of(delivery))])
                received = "".join([piece async for piece in stream.aiter_text()])
    assert [event.get("text") for name, event in parse(received) if name == "log"] == ["b", "c", "d", "e", "again"]


async def test_lines_do_not_wait_for_a_worker_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "REPLAY_SECONDS", 0.1)
    async with serving(tmp_path) as (_, services, client):
        await client.post("/api/scrape", json={"url": URL, "wait": 0})
        (delivery,) = await services.queue.take(["default"], 1, list(Priority), PATIENCE)
        async with client.stream("GET", f"/api/scrape/{delivery.run_id}/events") as stream:
            pieces = stream.aiter_text()
            received = await anext(pieces)
            (line,) = numbered(1, (7, "seventh"))
            await services.queue.send(messages.events(delivery.run_id), json.dumps(line).encode())
            while "seventh" not in received:
                received += await anext(pieces)
    assert f"id: {messages.line_id(1, 7)}\nevent: log" in received


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
