"""Which addresses and hosts are reached."""

import asyncio
from collections.abc import Callable
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.url import Address, parse_target
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, Route
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.engines.proxies.stored import StoredPools
from scrapeyard.model import ExitReason
from scrapeyard.settings import HttpSettings, ProxyPool
from scrapeyard.store.sql import SqlStore
from tests.integration.http.stand import reason_of, scraper
from tests.sites.site import Site, page, redirect


async def test_a_proxy_in_the_environment_is_not_used(
    site: Site, make_engine: Callable[..., WreqEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Site() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url(""))
        site.routes["/"] = page(b"ok")
        answer = await make_engine().fetch(FetchRequest(url=site.url("/", "shop.test")), Caller())
        assert (answer.body, proxy.asked) == (b"ok", [])


async def test_private_addresses_are_refused_without_a_connection(
    site: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    engine = make_engine(allow_private=False)
    for url in (site.url("/"), site.url("/", "shop.test"), site.url("/", "[::ffff:127.0.0.1]")):
        assert await reason_of(engine.fetch(FetchRequest(url=url), Caller())) is ExitReason.FETCH_PRIVATE_ADDRESS
    assert (site.asked, site.open) == ([], 0)


async def test_a_redirect_into_the_private_network_is_refused(
    site: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    engine = make_engine(allow_private=False, allow_hosts=("shop.test",))
    site.routes |= {"/from": redirect(site.url("/secret", "other.test")), "/secret": page(b"secret")}
    answer = engine.fetch(FetchRequest(url=site.url("/from", "shop.test")), Caller())
    assert await reason_of(answer) is ExitReason.FETCH_PRIVATE_ADDRESS
    assert [asked.path for asked in site.asked] == ["/from"]


async def test_a_name_that_is_public_and_private_at_once_is_refused(make_engine: Callable[..., WreqEngine]) -> None:
    async def both(host: str, port: int) -> list[Address]:
        return [ip_address("93.184.216.34"), ip_address("10.0.0.1")]

    answer = make_engine(resolve=both, allow_private=False).fetch(FetchRequest(url="http://both.example/"), Caller())
    assert await reason_of(answer) is ExitReason.FETCH_PRIVATE_ADDRESS


async def test_a_name_that_changes_its_mind_is_reached_where_it_was_checked(
    make_engine: Callable[..., WreqEngine],
) -> None:
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])

    async def rebinding(host: str, port: int) -> list[Address]:
        return [ip_address(text) for text in next(answers)]

    async with Site() as good, Site(host="127.0.0.2") as secret:
        good.routes["/"] = page(b"good")
        engine = make_engine(resolve=rebinding, allow_private=False, allow_hosts=("127.0.0.1/32",))
        engine._dns._names._keep_seconds = 3600.0
        for _ in range(3):
            assert (await engine.fetch(FetchRequest(url=good.url("/", "rebind.example")), Caller())).body == b"good"
        engine._dns._names._known.clear()  # as if half a minute had passed
        again = engine.fetch(FetchRequest(url=good.url("/", "rebind.example")), Caller())
        assert await reason_of(again) is ExitReason.FETCH_PRIVATE_ADDRESS
        assert (secret.asked, secret.open) == ([], 0)


async def test_one_resolution_serves_all_who_wait_even_if_the_first_gives_up(
    site: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    asked, go = asyncio.Event(), asyncio.Event()
    calls = []

    async def slow(host: str, port: int) -> list[Address]:
        calls.append(host)
        asked.set()
        await go.wait()
        return [IPv4Address("127.0.0.1")]

    site.routes["/"] = page(b"ok")
    engine = make_engine(resolve=slow)
    tasks = [
        asyncio.create_task(engine.fetch(FetchRequest(url=site.url("/", "slow.test")), Caller())) for _ in range(5)
    ]
    await asked.wait()
    tasks[0].cancel()
    go.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert [answer.body for answer in answers[1:] if isinstance(answer, FetchResponse)] == [b"ok"] * 4
    assert calls == ["slow.test"]


@pytest.mark.parametrize(
    ("patterns", "host", "allowed"),
    [
        (("shop.test",), "shop.test", True),
        (("SHOP.test.",), "shop.test", True),
        (("*.shop.test",), "www.shop.test", True),
        (("*.shop.test",), "a.b.shop.test", True),
        (("*.shop.test",), "shop.test", False),
        (("shop.test",), "www.shop.test", False),
        (("shop.test",), "evilshop.test", False),
        (("*.shop.test",), "evilshop.test", False),
        (("bad pattern",), "shop.test", False),
        ((), "anything.test", True),
    ],
)
async def test_allowed_hosts(site: Site, fetch: Any, patterns: tuple[str, ...], host: str, allowed: bool) -> None:
    site.routes["/"] = page(b"ok")
    answer = fetch(site.url("/", host), scraper=scraper(*patterns))
    if allowed:
        assert (await answer).body == b"ok"
    else:
        assert await reason_of(answer) is ExitReason.FETCH_NOT_ALLOWED


async def test_allowed_hosts_hold_for_every_hop(site: Site, fetch: Any) -> None:
    site.routes |= {"/from": redirect(site.url("/to", "other.test")), "/to": page(b"ok")}
    answer = fetch(site.url("/from", "shop.test"), scraper=scraper("shop.test"))
    assert await reason_of(answer) is ExitReason.FETCH_NOT_ALLOWED
    assert len(site.asked) == 1


async def test_a_script_does_not_reach_the_gateway_of_its_own_machine(site: Site) -> None:
    """Neither by itself nor by a redirect, whatever else is allowed."""
    async with Site() as gateway:
        site.routes["/from"] = redirect(gateway.url("/api/sites"))
        gateway.routes["/api/sites"] = page(b"{}")
        own_port = parse_target(gateway.url()).port
        engine = WreqEngine(HttpSettings(allow_private=True, profile="none"), own_port=own_port)
        for url in (gateway.url("/api/sites"), site.url("/from")):
            fetch = engine.fetch(FetchRequest(url=url), Caller())
            assert await reason_of(fetch) is ExitReason.FETCH_PRIVATE_ADDRESS
        assert gateway.asked == []
        await engine.stop()


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "http://proxy.test:{port}"])
async def test_a_pool_of_the_api_leads_to_no_private_address(site: Site, tmp_path: Path, url: str) -> None:
    async def public(host: str, port: int) -> list[Address]:
        return [IPv4Address("127.0.0.1" if host == "proxy.test" else "93.184.216.34")]

    store = SqlStore(f"sqlite:///{tmp_path / 'store.db'}")
    await store.start()
    pools = ProxyPools()
    kept = StoredPools(store.proxies, (), pools)
    await kept.put(ProxyPool(name="mine", urls=(url.format(port=parse_target(site.url()).port),)))
    engine = WreqEngine(HttpSettings(profile="none"), resolve=public)
    request = FetchRequest(url="http://shop.example/latest/meta-data/")
    fetch = engine.fetch(request, Caller(), Route(proxy=pools.choose("mine")))
    assert await reason_of(fetch) is ExitReason.FETCH_PRIVATE_ADDRESS
    assert site.asked == []
    await engine.stop()
    allowed = WreqEngine(HttpSettings(profile="none", allow_private=True), resolve=public)
    site.routes["http://shop.example/latest/meta-data/"] = page(b"through the proxy")
    response = await allowed.fetch(request, Caller(), Route(proxy=pools.choose("mine")))
    assert len(site.asked) == 1, response
    await allowed.stop()
    await store.stop()
