"""Named sessions, clearances, and what else a request brings along."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.engines.http.cookies import MAX_SESSION_BYTES, Cookie, MemorySessions, Sessions
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest, Route
from scrapeyard.errors import StoreUnavailable
from scrapeyard.model import ExitReason, FetchPolicy, Scraper, ScraperRef
from scrapeyard.store.sql import SqlStore
from tests.integration.http.stand import reason_of
from tests.sites.site import Asked, Site, page, raw, redirect

Make = Callable[..., WreqEngine]


def caller(scraper_id: str = "shop/product") -> Caller:
    return Caller(scraper=Scraper(ref=ScraperRef(id=scraper_id, version="1.0.0"), folder=None))


async def get(engine: WreqEngine, url: str, who: Caller | None = None, way: Route | None = None, **options: Any) -> Any:
    return await engine.fetch(FetchRequest(url=url, **options), who or caller(), way or Route())


@pytest.fixture
def shop(site: Site) -> Site:
    site.routes |= {
        "/login": redirect("/in", set_cookie="token=secret; Path=/"),
        "/in": page(b"in"),
        "/out": page(b"out", set_cookie="token=; Path=/; Max-Age=0"),
        "/page": page(b"page"),
    }
    return site


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore(f"sqlite:///{folder / 'store.db'}")
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


def cookies(site: Site) -> list[str | None]:
    return [asked.headers.get("cookie") for asked in site.asked]


async def test_a_session_outlives_its_fetch_and_others_do_not_have_it(shop: Site, make_engine: Make) -> None:
    engine = make_engine()
    await get(engine, shop.url("/login", "shop.test"), session="me")
    await get(engine, shop.url("/page", "shop.test"), session="me")
    await get(engine, shop.url("/page", "shop.test"), session="you")
    await get(engine, shop.url("/page", "shop.test"))
    await get(engine, shop.url("/page", "shop.test"), caller("other/scraper"), session="me")
    await get(engine, shop.url("/page", "other.test"), session="me")
    assert cookies(shop) == [None, "token=secret", "token=secret", None, None, None, None]


async def test_a_cookie_that_ends_is_gone_from_the_session(shop: Site, make_engine: Make) -> None:
    engine = make_engine()
    for path in ("/login", "/out", "/page"):
        await get(engine, shop.url(path), session="me")
    assert cookies(shop)[-2:] == ["token=secret", None]


async def test_a_session_survives_a_restart_and_is_shared(shop: Site, make_engine: Make, tmp_path: Path) -> None:
    async with opened(tmp_path) as first:
        await get(make_engine(sessions=first.sessions), shop.url("/login"), session="me")
    async with opened(tmp_path) as second:
        await get(make_engine(sessions=second.sessions), shop.url("/page"), session="me")
    assert cookies(shop)[-1] == "token=secret"


async def test_fetches_at_once_lose_no_cookie(site: Site, make_engine: Make, tmp_path: Path) -> None:
    async def give(asked: Asked, writer: asyncio.StreamWriter) -> None:
        name = asked.path.strip("/")
        await page(b"", set_cookie=f"{name}=1; Path=/")(asked, writer)

    site.otherwise = give
    async with opened(tmp_path) as store:
        engine = make_engine(sessions=store.sessions)
        await asyncio.gather(*(get(engine, site.url(f"/c{number}"), session="me") for number in range(20)))
        await get(engine, site.url("/last"), session="me")
    assert len((cookies(site)[-1] or "").split("; ")) == 20


async def test_cookies_of_a_failed_fetch_are_kept(shop: Site, make_engine: Make) -> None:
    engine = make_engine()
    shop.routes["/loop"] = redirect("/loop", set_cookie="seen=1; Path=/")
    assert await reason_of(get(engine, shop.url("/loop"), session="me")) is ExitReason.FETCH_REDIRECTS
    await get(engine, shop.url("/page"), session="me")
    assert cookies(shop)[-1] == "seen=1"


async def test_a_script_that_writes_its_own_cookies_is_left_alone(shop: Site, make_engine: Make) -> None:
    engine = make_engine()
    await get(engine, shop.url("/login"), session="me")
    await get(engine, shop.url("/page"), session="me", headers={"Cookie": "mine=1"})
    assert cookies(shop)[-1] == "mine=1"


@pytest.mark.parametrize("name", ["a b", "../x", "x" * 65, "é", "-", "a/b"])
async def test_names_that_cannot_be(shop: Site, make_engine: Make, name: str) -> None:
    assert await reason_of(get(make_engine(), shop.url("/page"), session=name)) is ExitReason.FETCH_NOT_ALLOWED
    assert shop.asked == []


class Away(MemorySessions):
    async def read(self, scraper_id: str, name: str, saved_after: float) -> bytes:
        raise StoreUnavailable("away")

    async def change(self, *_: Any) -> None:
        raise StoreUnavailable("away")


async def test_a_store_that_is_away_costs_the_session_but_not_the_page(shop: Site, make_engine: Make) -> None:
    answer = await get(make_engine(sessions=Away()), shop.url("/login"), session="me")
    assert answer.body == b"in"


async def test_a_session_is_bounded_and_ends() -> None:
    sessions = Sessions(MemorySessions(), days=1)
    many = [Cookie(name=f"c{number}", value="x" * 4000, domain="shop.example") for number in range(100)]
    places = {cookie.place for cookie in many}
    await sessions.keep("a/b", "me", many, places, 1000.0)
    kept = await sessions.open("a/b", "me", 1001.0)
    assert 0 < len(kept) * 4000 < MAX_SESSION_BYTES
    assert kept[-1].name == "c99"
    assert await sessions.open("a/b", "me", 1001.0 + 86_400) == []


async def test_a_clearance_goes_to_its_site_alone_and_is_not_kept(site: Site, make_engine: Make) -> None:
    site.routes |= {
        "/from": redirect(site.url("/to", "www.shop.test")),
        "/to": redirect(site.url("/there", "other.test")),
        "/there": page(b"ok"),
        "/page": page(b"ok"),
    }
    agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
    way = Route(cookies=(("cf", "1"),), user_agent=agent, headers=(("X-Clear", "yes"), ("Accept-Language", "ko")))
    engine = make_engine()
    await get(engine, site.url("/from", "shop.test"), way=way, session="me", headers={"accept-language": "de"})
    await get(engine, site.url("/page", "shop.test"), session="me")
    first, second, third, plain = (asked.headers for asked in site.asked)
    assert (first["cookie"], second["cookie"], third.get("cookie"), plain.get("cookie")) == ("cf=1", "cf=1", None, None)
    assert first["user-agent"] == third["user-agent"] == agent
    assert (first["x-clear"], second.get("x-clear"), third.get("x-clear")) == ("yes", None, None)
    assert first["accept-language"] == "de"
    assert '"131"' in first["sec-ch-ua"]
    assert first["sec-ch-ua-platform"] == '"Linux"'


@pytest.mark.parametrize(
    ("policy", "request_", "way", "word"),
    [
        ("", "", "", "Chrome/"),
        ("edge", "", "", "Edg/"),
        ("edge", "firefox", "", "Firefox/"),
        ("edge", "firefox", "safari", "Version/"),
    ],
)
async def test_which_profile_is_worn(
    site: Site, make_engine: Make, policy: str, request_: str, way: str, word: str
) -> None:
    site.routes["/"] = page(b"ok")
    who = Caller(policy=FetchPolicy(profile=policy))
    await get(make_engine(), site.url("/"), who, Route(profile=way), profile=request_)
    assert word in site.asked[0].headers["user-agent"]


async def test_an_unknown_profile_is_refused(site: Site, make_engine: Make) -> None:
    assert await reason_of(get(make_engine(), site.url("/"), profile="netscape4")) is ExitReason.FETCH_NOT_ALLOWED


async def test_a_cookie_outside_ascii_comes_back_as_it_came(site: Site, make_engine: Make) -> None:
    async def answer(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nset-cookie: city=" + "Köln".encode() + b"\r\n\r\n")

    site.routes["/"] = answer
    engine = make_engine()
    for _ in range(2):
        await get(engine, site.url("/"), session="me")
    assert site.asked[1].headers["cookie"].encode("latin-1") == "city=Köln".encode()


async def test_a_cookie_that_cannot_be_sent_as_it_came_is_not_sent_as_another(site: Site, make_engine: Make) -> None:
    engine = make_engine()
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n"
    site.routes["/first"] = raw(head + b"set-cookie: city=Bonn\r\nset-cookie: lang=de\r\n\r\n")
    site.routes["/second"] = raw(head + b"set-cookie: city=K\xf6ln\r\n\r\n")
    for path in ("/first", "/second", "/third"):
        await get(engine, site.url(path), session="me")
    assert cookies(site) == [None, "city=Bonn; lang=de", "lang=de"]
