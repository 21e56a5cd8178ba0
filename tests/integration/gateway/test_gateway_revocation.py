"""Keys on several gateways, and at the start of a server."""

import asyncio
import getpass
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect

from scrapeyard.errors import SettingsInvalid
from scrapeyard.gateway.auth.documents import KeyCall
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.model.identity import Role
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import AuthSettings, GatewaySettings, Settings
from scrapeyard.store.ports.audit import AuditFilter
from tests.integration.gateway.test_gateway_server import serving
from tests.integration.gateway_stand import Stand, open_services, open_stand
from tests.leaks import PATIENCE


@pytest.fixture
async def stands(tmp_path: Path) -> AsyncIterator[tuple[Stand, Stand]]:
    """Two gateways on one database."""
    async with AsyncExitStack() as stack:
        queue = MemoryQueue()
        first = await stack.enter_async_context(open_stand(tmp_path, queue=queue, gateway_id="gw1"))
        second = await stack.enter_async_context(open_stand(tmp_path, queue=queue, gateway_id="gw2"))
        yield first, second


async def until(found: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await found():
            await asyncio.sleep(0.02)


async def test_a_key_reaches_every_gateway_and_so_does_its_end(stands: tuple[Stand, Stand]) -> None:
    first, second = stands
    assert (await second.client.get("/api/identity")).json()["role"] == "admin", "nobody is asked while there is no key"
    call = KeyCall(name="ops", role=Role.ADMIN)
    key, secret = await first.gateway.keys.create(call.draft(time.time()))
    mine = {"X-API-Key": secret}

    async def status(stand: Stand) -> int:
        return (await stand.client.get("/api/identity", headers=mine)).status_code

    async def without() -> bool:
        return (await second.client.get("/api/identity")).status_code == 401

    await until(without)
    assert (await status(first), await status(second)) == (200, 200)
    assert (await first.client.delete(f"/api/keys/{key.id}", headers=mine)).status_code == 200

    async def refused() -> bool:
        return await status(second) == 401

    await until(refused)
    assert await status(first) == 401
    assert await without(), "the last key was revoked, and nobody gets in without one"


async def test_the_first_start_with_authentication_makes_an_admin_key(tmp_path: Path) -> None:
    settings = Settings(gateway=GatewaySettings(host="0.0.0.0", port=0), auth=AuthSettings(mode="on"))
    async with open_services(tmp_path, settings) as services:
        server = GatewayServer(services)
        await server.start()
        try:
            (key,) = await services.store.api_keys.all()
            assert (key.role, key.digest) == (Role.ADMIN, services.pepper.digest(server.first_key))
            assert not server.is_open
            (row,) = (await services.store.audit.page(AuditFilter(), None, 10)).rows
            assert (row.entry.action, row.entry.resource) == ("create_key", f"/api/keys/{key.id}")
            assert row.entry.client == f"local:{getpass.getuser()}"
            assert server.first_key not in str(row)
        finally:
            await server.stop()
        again = GatewayServer(services)
        await again.start()
        await again.stop()
        assert again.first_key == ""
        assert len(await services.store.api_keys.all()) == 1


@pytest.mark.parametrize("mode", ["auto", "off"])
async def test_a_public_address_without_keys_is_refused(tmp_path: Path, mode: str) -> None:
    settings = Settings.model_validate({"gateway": {"host": "0.0.0.0", "port": 0}, "auth": {"mode": mode}})
    async with open_services(tmp_path, settings) as services:
        with pytest.raises(SettingsInvalid, match="--insecure"):
            await GatewayServer(services).start()


async def test_open_streams_end_with_their_key(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server, _ = await stack.enter_async_context(serving(tmp_path))
        keys = server._gateway.keys
        (gone, mine), (_, other) = [
            await keys.create(KeyCall(name=name, role=Role.OPERATOR).draft(time.time())) for name in ("gone", "other")
        ]
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=server.url, timeout=PATIENCE))
        head = {"X-API-Key": mine}
        job = {"scraper": "shop/product", "items": ["https://a.example/1"], "paused": True}
        job_id = (await client.post("/api/jobs", json=job, headers=head)).json()["id"]
        call = {"scraper": "shop/product", "input": {"url": "https://a.example"}, "wait": 0}
        run_id = (await client.post("/api/scrape", json=call, headers=head)).json()["id"]
        stream = f"/api/jobs/{job_id}/stream"
        link = (await client.post("/api/links", json={"path": stream}, headers=head)).json()["url"]
        kept = await _open_stream(stack, client, stream, {"X-API-Key": other})
        ending = [
            await _open_stream(stack, client, stream, head),
            await _open_stream(stack, client, f"/api/scrape/{run_id}/events", head),
            await _open_stream(stack, client, link, {}),
        ]
        await client.post("/api/session", json={"key": mine})
        ending.append(await _open_stream(stack, client, stream, {}))
        sockets = []
        for path in (f"/api/jobs/{job_id}/ws", f"/api/scrape/{run_id}/live"):
            url = server.url.replace("http", "ws") + path
            sockets.append(
                await stack.enter_async_context(connect(url, additional_headers=head, open_timeout=PATIENCE))
            )
        await keys.revoke(gone.id)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*ending)
            for socket in sockets:
                await socket.wait_closed()
        assert [(socket.close_code, socket.close_reason) for socket in sockets] == [(1008, "the key was revoked")] * 2
        assert not kept.done(), "that of another key goes on"
        kept.cancel()
        await asyncio.gather(kept, return_exceptions=True)


async def _open_stream(
    stack: AsyncExitStack, client: httpx.AsyncClient, path: str, headers: dict[str, str]
) -> asyncio.Task[bytes]:
    """Reads a stream that is open, to its end."""
    answer = await stack.enter_async_context(client.stream("GET", path, headers=headers))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    return asyncio.create_task(answer.aread())
