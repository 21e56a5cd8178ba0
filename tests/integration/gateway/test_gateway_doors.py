"""Who may call the gateway, and how large and slow the head of a request may be."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from scrapeyard.gateway.app import ROUTERS
from scrapeyard.gateway.server import GatewayServer
from tests.integration.gateway.test_gateway_server import calling, serving
from tests.integration.gateway_stand import Stand, open_stand
from tests.leaks import PATIENCE

NOBODY = "0" * 32


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "10.1.2.3", "gateway", "yard.localhost", "LOCALHOST."],
)
async def test_names_that_no_stranger_can_own_need_no_setting(stand: Stand, host: str) -> None:
    assert (await stand.client.get("/api/live", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "localhost.evil.example", ".", ":80"])
async def test_a_name_that_somebody_else_could_own_is_refused_on_every_route(stand: Stand, host: str) -> None:
    for path in ("/api/live", "/api/scrape", "/api/nowhere", "/metrics"):
        response = await stand.client.get(path, headers={"Host": host})
        assert (response.status_code, response.json()["code"]) == (421, "host_refused")
    response = await stand.client.post("/api/scrape", json={"url": "https://a.example"}, headers={"Host": host})
    assert (response.status_code, response.json()["code"]) == (421, "host_refused")


async def test_the_operator_names_the_gateway(tmp_path: Path) -> None:
    names = ("scrape.example.com", "*.yard.example")
    async with serving(tmp_path, hosts=names) as (server, _), calling() as client:

        async def status(host: str) -> int:
            return (await client.get(f"{server.url}/api/live", headers={"Host": host})).status_code

        assert await status("Scrape.Example.com") == 200
        assert await status("eu.yard.example:443") == 200
        assert await status("yard.example") == 421
        assert await status("scrape.example.com.evil.example") == 421


def _changes(app: Any) -> list[tuple[str, str]]:
    document = app.openapi()["paths"]
    return [(method, path) for path, methods in document.items() for method in methods if method != "get"]


async def test_a_foreign_page_changes_nothing_on_any_route(stand: Stand) -> None:
    changes = _changes(stand.app)
    assert len(changes) >= len(ROUTERS)
    for method, path in changes:
        url = path.replace("{", "").replace("}", "")
        for origin in ("https://evil.example", "null", "http://gateway.evil.example"):
            response = await stand.client.request(method, url, headers={"Origin": origin})
            assert (response.status_code, response.json()["code"]) == (403, "origin_refused"), (method, path)
        own = await stand.client.request(method, url, headers={"Origin": "http://gateway"})
        assert "origin_refused" not in own.text


async def test_a_websocket_of_a_foreign_name_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _):
        url = f"{server.url.replace('http', 'ws')}/api/jobs/{NOBODY}/ws"
        with pytest.raises(InvalidStatus) as refused:
            async with connect(url, additional_headers={"Host": "evil.example"}, open_timeout=PATIENCE):
                pass
        assert refused.value.response.status_code in (400, 421)


async def test_answers_are_neither_sniffed_nor_stored(stand: Stand) -> None:
    response = await stand.client.get("/api/scrape")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"


async def _answer(server: GatewayServer, *pieces: bytes) -> bytes:
    """Everything that the gateway says to these bytes until it closes the connection."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


LINE = b"GET /api/live HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((LINE, b"X: " + b"a" * 300_000), id="one-endless-header"),
        pytest.param((LINE, b"X: " + b"a" * 70_000 + b"\r\n\r\n"), id="one-large-header"),
        pytest.param((LINE, b"X: a\r\n" * 300, b"\r\n"), id="many-headers"),
        pytest.param((b"GET /" + b"a" * 300_000,), id="endless-url"),
    ],
)
async def test_a_head_without_bounds_is_refused(tmp_path: Path, pieces: tuple[bytes, ...]) -> None:
    async with serving(tmp_path) as (server, _):
        answer = await _answer(server, *pieces)
        assert answer.startswith(b"HTTP/1.1 431") or answer == b""  # a reset may overtake the answer
        if answer:
            assert b'"code":"head_too_large"' in answer
        assert (await _answer(server, LINE + b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /api/live HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /api/live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
        (b"GET /api/live\r\n\r\n", b"400"),
        (b"GET /api/live HTTP/1.0\r\n\r\n", b"200"),
    ],
    ids=["no-host", "two-hosts", "http-0.9", "http-1.0"],
)
async def test_a_request_says_once_whom_it_is_for(tmp_path: Path, request_bytes: bytes, status: bytes) -> None:
    async with serving(tmp_path) as (server, _):
        close = request_bytes.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        assert (await _answer(server, close)).split(b" ")[1] == status


async def test_json_with_too_many_values_is_refused_before_it_is_decoded(stand: Stand) -> None:
    keys = ",".join(f'"{number}":1' for number in range(300_000))
    headers = {"Content-Type": "application/json"}
    for path in ("/api/scrape", "/api/jobs"):
        response = await stand.client.post(path, content=f'{{"input":{{{keys}}}}}', headers=headers)
        assert (response.status_code, response.json()["code"]) == (413, "too_many_values")
