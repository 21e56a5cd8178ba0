"""Keys on several gateways, and at the start of a server."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from scrapeyard.errors import SettingsInvalid
from scrapeyard.gateway.auth.documents import KeyCall
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.model.identity import Role
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import AuthSettings, GatewaySettings, Settings
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
