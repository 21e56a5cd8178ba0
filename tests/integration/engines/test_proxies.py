"""Through real proxies: credentials, rotation, stickiness, rest and return, and every byte counted."""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme

from scrapeyard.engines.budget.meters import Metered, Meters
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.ledger import OwnLedgers
from scrapeyard.engines.port import PLAIN, Caller, FetchRequest, FetchResponse, Route
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.errors import FetchFailed
from scrapeyard.model import BudgetLimits, ExitReason, FetchPolicy
from scrapeyard.settings import BudgetSettings, HttpSettings, ProxyPool
from scrapeyard.store.sql import SqlStore
from tests.leaks import PATIENCE
from tests.services.proxies import ProxyServer
from tests.services.sqlite import migrated
from tests.sites.site import Answer, Asked, Site, page, redirect
from tests.stages import context_of

EXITS = ("127.0.0.11", "127.0.0.12", "127.0.0.13")


@pytest.fixture(scope="module")
def proxies() -> Iterator[list[ProxyServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(ProxyServer(ip, user="user", password="pass word")) for ip in EXITS]


class Clock:
    """A time that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Stand:
    """The client with what counts around it."""

    def __init__(self, engine: WreqEngine, store: SqlStore, *pools: ProxyPool) -> None:
        self.clock = Clock()
        self.pools = ProxyPools(pools, clock=self.clock)
        self.meters = Meters(store.meters)
        self.store = store
        self.fetch = Metered(
            engine,
            budgets=Budgets(BudgetSettings(), OwnLedgers()),
            meters=self.meters,
            pools=self.pools,
        )

    async def through(self, pool: str, url: str, caller: Caller | None = None, **choice: Any) -> FetchResponse:
        way = Route(proxy=self.pools.choose(pool, **choice))
        return await self.fetch(context_of(FetchRequest(url=url), caller), way)

    async def used(self) -> dict[str, tuple[int, int]]:
        await self.meters.flush()
        return {
            use.proxy_class: (use.requests, use.bytes) for use in await self.store.meters.use(["proxy_class"], "2000")
        }


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as opened:
        opened.routes["/who"] = who
        opened.routes["/page"] = page(b"x" * 1234)
        opened.routes["/moved"] = redirect("/page")
        yield opened


@pytest.fixture
async def engine() -> AsyncIterator[WreqEngine]:
    made = WreqEngine(HttpSettings(allow_private=True, connect_seconds=PATIENCE, total_seconds=PATIENCE))
    yield made
    await made.stop()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    made = SqlStore(migrated(tmp_path / "store.db"))
    await made.start()
    yield made
    await made.stop()


async def who(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Tells from which address it was asked."""
    address = str(writer.get_extra_info("peername")[0]).encode()
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(address), address))


def pool_of(*urls: str, **more: Any) -> ProxyPool:
    return ProxyPool(name="pool", urls=urls, **more)


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
async def test_credentials_arrive(
    scheme: str, proxies: list[ProxyServer], site: Site, engine: WreqEngine, store: SqlStore
) -> None:
    stand = Stand(engine, store, pool_of(proxies[0].url(scheme, "user:pass%20word")))
    response = await stand.through("pool", site.url("/who"))
    assert (response.status, response.body) == (200, b"127.0.0.11")
    assert response.proxy_class == "datacenter"


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
@pytest.mark.parametrize("login", ["user:wrong", ""])
async def test_wrong_ones_are_the_proxys_failure_and_make_it_rest(
    scheme: str, login: str, proxies: list[ProxyServer], site: Site, engine: WreqEngine, store: SqlStore
) -> None:
    stand = Stand(engine, store, pool_of(proxies[0].url(scheme, login)))
    for _ in range(2):
        with pytest.raises(FetchFailed) as failed:
            await stand.through("pool", site.url("/who"))
        assert failed.value.reason is ExitReason.FETCH_PROXY
        assert "wrong" not in failed.value.message + repr(failed.value.details)
    assert site.asked == []
    assert stand.pools.standing()["pool"] == (1, [f"pool/127.0.0.1:{proxies[0].port}"])


async def test_rotation_spreads_and_a_site_stays(
    proxies: list[ProxyServer], site: Site, engine: WreqEngine, store: SqlStore
) -> None:
    urls = [proxy.url(login="user:pass%20word") for proxy in proxies]
    sticky = ProxyPool(name="sticky", urls=urls, rotation="session")
    stand = Stand(engine, store, pool_of(*urls), sticky)
    turns = Counter([(await stand.through("pool", site.url("/who"))).body.decode() for _ in range(9)])
    assert turns == dict.fromkeys(EXITS, 3)
    for session in ("a", "b", "c"):
        seen = {(await stand.through("sticky", site.url("/who"), session=session)).body for _ in range(3)}
        assert len(seen) == 1


async def test_a_dead_one_rests_and_comes_back(site: Site, engine: WreqEngine, store: SqlStore) -> None:
    with ProxyServer("127.0.0.14") as mortal, ProxyServer("127.0.0.15") as steady:
        stand = Stand(engine, store, pool_of(mortal.url(), steady.url(), cooldown_seconds=60))
        mortal.stop()
        tries = [stand.through("pool", site.url("/who")) for _ in range(8)]
        ends = [end for each in tries for end in await asyncio.gather(each, return_exceptions=True)]
        failures = [end for end in ends if isinstance(end, FetchFailed)]
        assert [failure.reason for failure in failures] == [ExitReason.FETCH_PROXY] * 2
        assert "Connection refused" in failures[0].message
        assert {end.body for end in ends if isinstance(end, FetchResponse)} == {b"127.0.0.15"}
        mortal.start()
        stand.clock.now += 60
        seen = {(await stand.through("pool", site.url("/who"))).body for _ in range(2)}
        assert seen == {b"127.0.0.14", b"127.0.0.15"}
        assert stand.pools.standing()["pool"] == (2, [])


async def test_bytes_add_up_with_what_the_site_sent(
    proxies: list[ProxyServer], site: Site, engine: WreqEngine, store: SqlStore
) -> None:
    sent = 0

    def sized(size: int) -> Answer:
        async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            sent += size
            await page(b"y" * size)(asked, writer)

        return answer

    for size in (0, 1, 1000, 300_000):
        site.routes[f"/{size}"] = sized(size)
    urls = [proxy.url("socks5h", "user:pass%20word") for proxy in proxies]
    cheap, dear = (ProxyPool(name=name, proxy_class=name, urls=urls) for name in ("datacenter", "residential"))
    stand, caller = Stand(engine, store, cheap, dear), Caller(job_id="job_1")
    fetches = [
        stand.through(name, site.url(f"/{size}"), caller)
        for name in ("datacenter", "residential")
        for size in (0, 1, 1000, 300_000)
        for _ in range(3)
    ]
    fetches += [stand.fetch(context_of(FetchRequest(url=site.url("/1000")), caller), PLAIN) for _ in range(5)]
    await asyncio.gather(*fetches)
    each = 3 * 301_001
    assert sent == 2 * each + 5000 == caller.ledger.spent.bytes
    assert caller.ledger.bytes_by_class == {"datacenter": each, "residential": each, "direct": 5000}
    assert await stand.used() == {"datacenter": (12, each), "residential": (12, each), "": (5, 5000)}
    by_job = await store.meters.use(["job_id", "site"], "2000")
    assert [(use.job_id, use.site, use.bytes) for use in by_job] == [("job_1", "127.0.0.1", sent)]


async def test_redirects_are_requests_and_a_page_too_large_costs_what_came(
    proxies: list[ProxyServer], site: Site, engine: WreqEngine, store: SqlStore
) -> None:
    stand, caller = Stand(engine, store, pool_of(proxies[0].url(login="user:pass%20word"))), Caller()
    assert (await stand.through("pool", site.url("/moved"), caller)).bytes_received == 1234
    assert (caller.ledger.spent.requests, caller.ledger.spent.bytes) == (2, 1234)

    async def endless(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"3e8\r\n" + b"z" * 1000 + b"\r\n")

    site.routes["/endless"] = endless
    way = Route(proxy=stand.pools.choose("pool"))
    with pytest.raises(FetchFailed) as failed:
        await stand.fetch(context_of(FetchRequest(url=site.url("/endless"), max_bytes=999), caller), way)
    assert failed.value.reason is ExitReason.FETCH_TOO_LARGE
    assert caller.ledger.spent.bytes == 2234
    assert stand.pools.standing()["pool"][1] == []


async def test_a_budget_stops_before_the_proxy_is_used(
    proxies: list[ProxyServer], site: Site, engine: WreqEngine, store: SqlStore
) -> None:
    pool = pool_of(proxies[0].url(login="user:pass%20word"), proxy_class="residential")
    policy = FetchPolicy(budget=BudgetLimits(residential_megabytes=1000 / 2**20))
    stand, caller = Stand(engine, store, pool), Caller(policy=policy)
    await stand.through("pool", site.url("/page"), caller)
    with pytest.raises(FetchFailed) as failed:
        await stand.through("pool", site.url("/page"), caller)
    assert failed.value.reason is ExitReason.FETCH_BUDGET
    assert len(site.asked) == 1
    assert (await stand.fetch(context_of(FetchRequest(url=site.url("/page")), caller))).status == 200


async def test_a_pools_own_authority_is_trusted_through_it_alone(
    proxies: list[ProxyServer], engine: WreqEngine, store: SqlStore, tmp_path: Path
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    url = proxies[0].url(login="user:pass%20word")
    trusting = ProxyPool(name="trusting", urls=[url], ca_file=tmp_path / "ca.pem")
    lost = ProxyPool(name="lost", urls=[url], ca_file=tmp_path / "none.pem")
    stand = Stand(engine, store, trusting, pool_of(url), lost)
    async with Site(tls=context) as site:
        site.routes["/page"] = page(b"seen")
        assert (await stand.through("trusting", site.url("/page"))).body == b"seen"
        for pool, reason in (("pool", ExitReason.FETCH_TLS), ("lost", ExitReason.FETCH_PROXY)):
            with pytest.raises(FetchFailed) as failed:
                await stand.through(pool, site.url("/page"))
            assert failed.value.reason is reason
