"""The gateway on a real socket: hang-ups, large bodies, stopping, CORS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from scrapeyard.errors import SettingsInvalid
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.gateway.services import GatewayServices
from scrapeyard.model import Cancel, Delivery, Priority, RunStatus
from scrapeyard.queues import messages
from scrapeyard.settings import GatewaySettings, Settings
from tests.integration.gateway_stand import open_services, outcome_of
from tests.leaks import PATIENCE

URL = "https://shop.example/p/1"


def calling() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=PATIENCE)


@asynccontextmanager
async def serving(folder: Path, **gateway: object) -> AsyncIterator[tuple[GatewayServer, GatewayServices]]:
    given = {"port": 0, "wait_seconds": PATIENCE, **gateway}
    settings = Settings(gateway=GatewaySettings(**given))  # type: ignore[arg-type]
    async with open_services(folder, settings) as services:
        server = GatewayServer(services)
        await server.start()
        try:
            yield server, services
        finally:
            await server.stop()
            await server.stop()


async def take(services: GatewayServices) -> Delivery:
    (delivery,) = await services.queue.take(["default"], 1, list(Priority), PATIENCE)
    return delivery


async def hang_up(server: GatewayServer, body: bytes, services: GatewayServices) -> Delivery:
    """Send a call over a bare socket and close it once its run has been taken."""
    host, port = server.url.removeprefix("http://").split(":")
    _reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"POST /api/scrape HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    delivery = await take(services)
    writer.close()
    await writer.wait_closed()
    return delivery


async def test_a_caller_that_hangs_up_cancels_its_run_if_it_asked_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, services), services.queue.listen(messages.SIGNALS) as signals:
        delivery = await hang_up(server, b'{"url":"https://a.example","on_disconnect":"cancel"}', services)
        async with asyncio.timeout(PATIENCE):
            assert messages.decode_signal(await anext(signals)) == Cancel(run_id=delivery.run_id)
        run = await services.store.runs.get(delivery.run_id)
        assert run is not None
        assert run.status is RunStatus.CANCELLED


async def test_a_caller_that_hangs_up_leaves_its_run_alone_otherwise(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, services):
        delivery = await hang_up(server, b'{"url":"https://a.example"}', services)
        async with asyncio.timeout(PATIENCE):
            while server._gateway.waiters.count:
                await asyncio.sleep(0.01)
        await services.recorder.flush()
        run = await services.store.runs.get(delivery.run_id)
        assert run is not None
        assert (run.status, run.cancel_requested) == (RunStatus.QUEUED, False)


async def test_a_declared_body_over_the_limit_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    async with serving(tmp_path, max_body_mb=0.001) as (server, _services):
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /api/scrape HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read(4096)
        assert answer.startswith(b"HTTP/1.1 413")
        assert b'"code":"too_large"' in answer
        writer.close()
        await writer.wait_closed()


async def test_a_chunked_body_is_cut_at_the_limit(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1024

    async with (
        serving(tmp_path, max_body_mb=0.01) as (server, _services),
        calling() as client,
    ):
        headers = {"Content-Type": "application/json"}
        response = await client.post(f"{server.url}/api/scrape", content=endless(), headers=headers)
        assert (response.status_code, response.json()["code"]) == (413, "too_large")


async def test_a_body_at_the_limit_is_taken(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, max_body_mb=0.001) as (server, _services),
        calling() as client,
    ):
        body = b'{"url":"https://a.example","wait":0}'.ljust(1048)
        headers = {"Content-Type": "application/json"}
        assert (await client.post(f"{server.url}/api/scrape", content=body, headers=headers)).status_code == 202


async def test_stopping_answers_those_who_wait_with_a_durable_handle(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, services), calling() as client:
        call = asyncio.create_task(client.post(f"{server.url}/api/scrape", json={"url": URL, "wait": PATIENCE}))
        delivery = await take(services)
        await server.stop()
        response = await call
        assert (response.status_code, response.json()["id"]) == (202, delivery.run_id)
        assert await services.store.runs.get(delivery.run_id) is not None


async def test_many_callers_each_get_their_own_answer(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, services), calling() as client:

        async def work() -> None:
            for _ in range(50):
                delivery = await take(services)
                outcome = outcome_of(delivery, result=delivery.input)
                await services.queue.send(messages.replies(delivery.reply_to), messages.encode(outcome))

        worker = asyncio.create_task(work())
        calls = [client.post(f"{server.url}/api/scrape", json={"url": f"{URL}?{n}"}) for n in range(50)]
        answers = await asyncio.gather(*calls)
        await worker
        assert [answer.json()["result"]["url"] for answer in answers] == [f"{URL}?{n}" for n in range(50)]


async def test_a_port_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, services):
        port = int(server.url.rpartition(":")[2])
        taken = services.__class__(**{**vars(services), "settings": Settings(gateway=GatewaySettings(port=port))})
        with pytest.raises(SettingsInvalid, match="cannot listen"):
            await GatewayServer(taken).start()


async def test_cors_only_for_the_origins_set(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, cors_origins=("https://app.example",)) as (server, _),
        calling() as client,
    ):
        preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "idempotency-key"}
        good = await client.options(f"{server.url}/api/scrape", headers={"Origin": "https://app.example", **preflight})
        assert good.headers["access-control-allow-origin"] == "https://app.example"
        bad = await client.options(f"{server.url}/api/scrape", headers={"Origin": "https://evil.example", **preflight})
        assert "access-control-allow-origin" not in bad.headers
