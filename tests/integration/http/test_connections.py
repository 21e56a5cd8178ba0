"""Connections: how many, how long, and how they end."""

import asyncio
from collections.abc import Callable
from ipaddress import IPv4Address
from typing import Any

from scrapeyard.engines.http.clients import ClientIdentity, Clients
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.model import ExitReason
from scrapeyard.settings import HttpSettings
from tests.integration.http.stand import failure_of, reason_of
from tests.leaks import PATIENCE
from tests.sites.site import Asked, Site, never, page

CHROME = ClientIdentity(profile="chrome", connect_seconds=PATIENCE)


async def test_only_so_many_are_in_flight(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    go = asyncio.Event()

    async def wait(asked: Any, writer: Any) -> None:
        await go.wait()
        await page(b"ok")(asked, writer)

    site.routes["/"] = wait
    engine = make_engine(concurrency=3)
    tasks = [asyncio.create_task(engine.fetch(FetchRequest(url=site.url("/")), Caller())) for _ in range(10)]
    await site.until(lambda: len(site.asked) == 3)
    waiting = engine.fetch(FetchRequest(url=site.url("/"), timeout_seconds=0.1), Caller())
    assert await reason_of(waiting) is ExitReason.FETCH_TIMEOUT
    assert len(site.asked) == 3
    go.set()
    assert [answer.body for answer in await asyncio.gather(*tasks)] == [b"ok"] * 10


async def test_connections_are_used_again_and_closed_at_the_end(
    site: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    site.routes["/"] = page(b"ok")
    engine = make_engine()
    for _ in range(20):
        await engine.fetch(FetchRequest(url=site.url("/", "shop.test")), Caller())
    # one, but an answer may be here before its connection is known to be free again
    assert len({asked.reader for asked in site.asked}) < 5
    await engine.stop()
    async with asyncio.timeout(PATIENCE):
        await site.until(lambda: site.open == 0)


async def test_kept_connections_that_the_server_closed_cost_no_page(
    site: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    """Each connection serves one request and breaks at the next, so whatever was kept is dead."""
    used, full = set[Any](), asyncio.Event()

    async def once(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.reader in used:
            writer.transport.abort()
            return
        used.add(asked.reader)
        if len(used) == 8:
            full.set()
        await full.wait()
        await page(b"ok")(asked, writer)

    site.routes["/"] = once
    engine = make_engine()

    async def fetched() -> list[FetchResponse]:
        return await asyncio.gather(*(engine.fetch(FetchRequest(url=site.url("/")), Caller()) for _ in range(8)))

    async with asyncio.timeout(PATIENCE):
        first, second = await fetched(), await fetched()
    assert [answer.body for answer in (*first, *second)] == [b"ok"] * 16
    assert len(site.asked) == 16 + sum(answer.repeats for answer in second)
    assert any(answer.repeats for answer in second)


async def test_what_must_not_be_sent_twice_is_not_repeated(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    async def broken(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    site.routes |= {"/": page(b"ok"), "/broken": broken}
    engine = make_engine()
    failure = await failure_of(engine.fetch(FetchRequest(url=site.url("/broken"), method="POST"), Caller()))
    assert (failure.reason, len(site.asked)) == (ExitReason.FETCH_PROTOCOL, 1)
    failure = await failure_of(engine.fetch(FetchRequest(url=site.url("/broken")), Caller()))
    assert (failure.reason, failure.details["repeats"], len(site.asked)) == (ExitReason.FETCH_PROTOCOL, 1, 3)


async def test_stopping_fails_what_is_in_flight(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    site.routes["/"] = never
    engine = make_engine()
    task = asyncio.create_task(engine.fetch(FetchRequest(url=site.url("/")), Caller()))
    await site.until(lambda: len(site.asked) == 1)
    await engine.stop()
    assert await reason_of(task) is ExitReason.FETCH_CONNECT


def test_clients_are_bounded_and_kept_by_use() -> None:
    clients = Clients(HttpSettings(), size=2)
    address = (IPv4Address("127.0.0.1"),)
    first = clients.get("a.test", address, CHROME)
    clients.get("b.test", address, CHROME)
    assert clients.get("a.test", address, CHROME) is first
    clients.get("c.test", address, CHROME)
    assert clients.get("a.test", address, CHROME) is first
    assert clients.get("a.test", (IPv4Address("127.0.0.2"),), CHROME) is not first


async def test_many_pages_at_once(site: Site, fetch: Any) -> None:
    site.routes["/"] = page(b"x" * 18_000)
    answers = await asyncio.gather(*(fetch(site.url("/", f"h{i % 7}.test")) for i in range(200)))
    assert {len(answer.body) for answer in answers} == {18_000}
