"""The forward proxy of browsers: who passes, what passes, and that nothing is left behind."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.ledger import Ledger
from scrapeyard.engines.port import Caller
from scrapeyard.model import BudgetLimits, FetchPolicy
from scrapeyard.store.sql import SqlStore
from tests.leaks import PATIENCE
from tests.services.forward_proxy import Context, ProxyStand, forward_proxy
from tests.services.sqlite import migrated
from tests.sites.site import Asked, Site, chunks, never, page, raw, reset

MB = 2**20


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as opened:
        opened.routes["/page"] = page(b"a page", content_type="text/html")
        yield opened


@pytest.fixture
async def stand() -> AsyncIterator[ProxyStand]:
    async with forward_proxy() as opened:
        yield opened


async def later(condition: Any) -> None:
    """Wait until a condition about the proxy holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_page_passes_by_plain_http_and_by_tunnel(stand: ProxyStand, site: Site) -> None:
    context = stand.admit()
    answer = await context.get(site.url("/page"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\na page")
    reader, writer = await context.tunnel(f"127.0.0.1:{site.port}")
    writer.write(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await reader.readuntil(b"a page")).startswith(b"HTTP/1.1 200 ")
    count = stand.proxy.count(context.user)
    assert (count.connections, count.refused, count.last_refusal) == (2, 0, "")
    assert count.received > 80
    assert count.sent > 60
    writer.close()


async def test_the_socket_is_private(stand: ProxyStand) -> None:
    path = Path(stand.proxy.path)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await stand.proxy.stop()
    assert not path.parent.exists()


async def test_nobody_passes_without_credentials(stand: ProxyStand, site: Site) -> None:
    context, other, gone = stand.admit(), stand.admit(), stand.admit()
    await stand.proxy.dismiss(gone.user)
    request = f"GET {site.url('/page')} HTTP/1.1\r\nHost: x\r\n".encode()
    mixed = Context(stand.proxy, context.user, "of another").credentials
    logins = [
        b"",
        gone.credentials,
        mixed,
        b"Proxy-Authorization: Basic ====\r\n",
        b"Proxy-Authorization: Bearer x\r\n",
    ]
    for login in logins:
        for first in (request, request.replace(b"GET http://", b"CONNECT ").replace(b"/page", b"")):
            answer = await context.send(first + login + b"\r\n")
            assert answer.startswith(b"HTTP/1.1 407 ")
            assert b'Proxy-Authenticate: Basic realm="scrapeyard"' in answer
    assert site.asked == []
    assert stand.proxy.count(other.user).connections == 0


async def test_what_is_between_browser_and_proxy_stays_there(stand: ProxyStand, site: Site) -> None:
    site.routes["/odd"] = raw(
        b"HTTP/1.1 200 OK\r\nX-One: 1\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n"
        b"Proxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nok"
    )
    answer = await stand.admit().ask(
        f"POST {site.url('/odd?q=%7C')} HTTP/1.1",
        "Host: elsewhere.example",
        "Cookie: a=b",
        "Connection: X-Private, Content-Length",
        "X-Private: 1",
        "Upgrade: h2c",
        "TE: trailers",
        "Content-Length: 3",
        body=b"abcGET http://127.0.0.1/smuggled HTTP/1.1\r\n\r\n",
    )
    asked = site.asked[0]
    assert (asked.method, asked.path, asked.body) == ("POST", "/odd?q=%7C", b"abc")
    own = {"host": f"127.0.0.1:{site.port}", "connection": "close", "cookie": "a=b", "content-length": "3"}
    assert asked.headers == own
    assert answer == b"HTTP/1.1 200 OK\r\nX-One: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    assert len(site.asked) == 1, "what stands behind the body is no request"


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (raw(b"HTTP/1.1 200 OK\r\n\r\nto the end", close=True), b"a\r\nto the end\r\n0\r\n\r\n"),
        (raw(b"HTTP/1.0 200 OK\nX: 1\n\nto the end", close=True), b"a\r\nto the end\r\n0\r\n\r\n"),
        (raw(b"HTTP/1.1 204 None\r\n\r\n", close=True), b"close\r\n\r\n"),
        (raw(b"HTTP/1.1 103 Hint\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), b"\r\n\r\nok"),
        (chunks(b"piece", 2), b"5\r\npiece\r\n5\r\npiece\r\n0\r\n\r\n"),
        (reset, b"content-length: 100\r\nConnection: close\r\n\r\nhalf"),
    ],
)
async def test_an_answer_ends_as_the_site_ended_it(stand: ProxyStand, site: Site, answer: Any, seen: bytes) -> None:
    site.routes["/ends"] = answer
    got = await stand.admit().get(site.url("/ends"))
    assert got.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 204 "))
    assert got.endswith(seen)


async def test_a_body_that_was_cut_off_does_not_look_whole(stand: ProxyStand, site: Site) -> None:
    async def cut(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        import socket
        import struct

        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await writer.drain()
        await gate.wait()
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    gate = asyncio.Event()
    site.routes["/cut"] = cut
    context = stand.admit()
    reader, writer = await context.open()
    writer.write(f"GET {site.url('/cut')} HTTP/1.1\r\nHost: x\r\n".encode() + context.credentials + b"\r\n")
    await reader.readuntil(b"4\r\nhalf\r\n")
    gate.set()
    assert await reader.read() == b""
    writer.close()


async def test_a_site_that_fails_is_told_with_its_reason(stand: ProxyStand, site: Site) -> None:
    context = stand.admit()
    site.routes["/gone"] = raw(b"", close=True)
    site.routes["/garbage"] = raw(b"SSH-2.0-x\r\n\r\n")
    site.routes["/proxy"] = page(b"", status=407, proxy_authenticate="Basic")
    site.routes["/long"] = raw(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 300_000)
    for path in ("/gone", "/garbage", "/proxy", "/long"):
        assert await context.get(site.url(path)) == b"", "no page of ours in place of the site's"
        assert stand.proxy.count(context.user).last_refusal.startswith(f"fetch_protocol: 127.0.0.1:{site.port} ")
    assert (await context.refused("nowhere.example")).startswith("fetch_dns: ")
    assert (await context.refused("127.0.0.1", 1024)).startswith("fetch_connect: ")


async def test_a_site_that_does_not_answer_the_connection() -> None:
    """Its queue of connections is full, so the next one waits."""
    import socket

    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(8)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        async with forward_proxy(http={"connect_seconds": 0.2}) as stand:
            said = await stand.admit().refused("127.0.0.1", port)
        for each in waiting:
            each.close()
    assert said.startswith("fetch_timeout: ")


async def test_half_closed_tunnels_and_much_data(stand: ProxyStand) -> None:
    async def echo_at_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read())[::-1])
        writer.close()

    server = await asyncio.start_server(echo_at_end, "127.0.0.1", 0)
    data = os.urandom(4 * MB)
    try:
        reader, writer = await stand.admit().tunnel(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        writer.write(data)
        writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == data[::-1]
        writer.close()
    finally:
        server.close()


async def test_a_browser_that_does_not_read_holds_the_site_back(stand: ProxyStand, site: Site) -> None:
    sent = 0

    async def endless(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    site.routes["/endless"] = endless
    context = stand.admit()
    _, writer = await context.tunnel(f"127.0.0.1:{site.port}")
    writer.transport.pause_reading()
    writer.write(b"GET /endless HTTP/1.1\r\n\r\n")
    before = -1
    while before < sent or not sent:  # until nothing has moved for a while
        before = sent
        await asyncio.sleep(0.3)
    assert sent < 64 * MB
    assert stand.proxy.count(context.user).received < 16 * MB
    await stand.proxy.dismiss(context.user)
    await site.until(lambda: site.open == 0)
    writer.transport.abort()


async def test_dismissing_closes_what_is_open(stand: ProxyStand, site: Site) -> None:
    site.routes["/never"] = never
    context, other = stand.admit(), stand.admit()
    waiting = asyncio.create_task(context.get(site.url("/never")))
    reader, writer = await context.tunnel(f"127.0.0.1:{site.port}")
    other_reader, other_writer = await other.tunnel(f"127.0.0.1:{site.port}")
    await site.until(lambda: site.open == 3)
    count = await stand.proxy.dismiss(context.user)
    assert count.connections == 3 - 1
    assert await waiting == b""
    assert await reader.read() == b""
    await site.until(lambda: site.open == 1)
    other_writer.write(b"GET /page HTTP/1.1\r\n\r\n")
    assert await other_reader.readuntil(b"a page")
    assert (await stand.proxy.dismiss(context.user)).connections == 0
    for each in (writer, other_writer):
        each.close()


async def test_slow_and_long_heads_are_dropped(site: Site) -> None:
    async with forward_proxy(head_seconds=0.3) as stand:
        context = stand.admit()
        assert await context.send(b"GET http://127.0.0.1/ HTTP/1.1\r\n") == b""
        assert await context.send(b"GET http://127.0.0.1/ HTTP/1.1\n\n") == b""
        long = f"GET {site.url('/page')} HTTP/1.1\r\nX: ".encode() + b"x" * 66_000
        assert (await context.send(long)).startswith(b"HTTP/1.1 400 ")
        assert await context.send(b"") == b""
    assert site.asked == []


async def test_idle_connections_are_closed(site: Site) -> None:
    async with forward_proxy(idle_seconds=0.3) as stand:
        reader, writer = await stand.admit().tunnel(f"127.0.0.1:{site.port}")
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == b""
        writer.close()


async def test_connections_are_bounded(site: Site) -> None:
    async with forward_proxy(most_connections=3, most_each=2) as stand:
        first, second = stand.admit(), stand.admit()
        opened = [await first.tunnel(f"127.0.0.1:{site.port}") for _ in range(2)]
        assert "this browser context may have 2 connections" in await first.refused("127.0.0.1", site.port)
        opened.append(await second.tunnel(f"127.0.0.1:{site.port}"))
        assert "all browser contexts together may have 3" in await second.refused("127.0.0.1", site.port)
        for _, writer in opened:
            writer.close()
        while not (await first.get(site.url("/page"))).startswith(b"HTTP/1.1 200 "):
            await asyncio.sleep(0.01)


async def test_a_used_up_budget_closes_connections_and_refuses_new_ones(stand: ProxyStand, site: Site) -> None:
    async def endless(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    site.routes["/endless"] = endless
    ledger = Ledger()
    caller = Caller(policy=FetchPolicy(budget=BudgetLimits(megabytes=2)), ledger=ledger)
    context = stand.admit(caller)
    reader, writer = await context.tunnel(f"127.0.0.1:{site.port}")
    idle_reader, idle_writer = await context.tunnel(f"127.0.0.1:{site.port}")
    writer.write(b"GET /endless HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(PATIENCE):
        while await reader.read(65536):
            pass
        assert await idle_reader.read() == b""
    assert ledger.spent.bytes >= 2 * MB
    said = await context.refused("127.0.0.1", site.port)
    assert said.startswith("fetch_budget: the run's budget of 2 megabytes is used up")
    count = await stand.proxy.dismiss(context.user)
    assert count.refused == 2 + 2
    assert ledger.spent.bytes == count.received
    assert ledger.bytes_by_class == {"direct": count.received}
    for each in (writer, idle_writer):
        each.close()


async def test_the_last_request_of_a_budget_goes_on(stand: ProxyStand, site: Site) -> None:
    site.routes["/large"] = page(b"x" * 3 * MB)
    context = stand.admit(Caller(policy=FetchPolicy(budget=BudgetLimits(requests=1))))
    assert len(await context.get(site.url("/large"))) > 3 * MB
    assert "fetch_budget" in await context.refused("127.0.0.1", site.port)


async def test_bytes_are_metered_by_site(site: Site, tmp_path: Path) -> None:
    store = SqlStore(migrated(tmp_path / "store.db"))
    await store.start()
    meters = Meters(store.meters)
    async with forward_proxy(names={"www.shop.example": [["127.0.0.1"]]}, meters=meters) as stand:
        context = stand.admit(Caller(job_id="job_1"))
        await context.get(site.url("/page", host="www.shop.example"))
        count = await stand.proxy.dismiss(context.user)
    await meters.flush()
    use = await store.meters.use(["site", "job_id"], "2000")
    assert [(each.site, each.job_id, each.requests, each.bytes) for each in use] == [
        ("shop.example", "job_1", 1, count.received)
    ]
    await store.stop()


def test_on_uvloop() -> None:
    """What workers run on."""

    async def road() -> None:
        async with Site() as site, forward_proxy() as stand:
            site.routes["/page"] = page(b"a page")
            await test_a_page_passes_by_plain_http_and_by_tunnel(stand, site)
            await test_half_closed_tunnels_and_much_data(stand)
            await test_a_browser_that_does_not_read_holds_the_site_back(stand, site)
            await test_dismissing_closes_what_is_open(stand, site)
            await test_a_used_up_budget_closes_connections_and_refuses_new_ones(stand, site)
            await test_a_site_that_fails_is_told_with_its_reason(stand, site)

    uvloop.run(road())
