"""A named session is the same for plain HTTP and for a browser."""

import time
from typing import Any

from scrapeyard.engines.browser.places import LANGUAGES, place_of
from scrapeyard.engines.browser.sessions import MAX_STORAGE, BrowserSessions, from_browser, to_browser
from scrapeyard.engines.http.cookies import Cookie, MemorySessions, Sessions


def cookie(name: str, value: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "value": value, "domain": "shop.test", "path": "/", "expires": -1, **more}


async def test_what_a_browser_sets_plain_http_has_and_the_other_way_round() -> None:
    store = MemorySessions()
    browser, http = BrowserSessions(store, 7), Sessions(store, 7)
    await browser.keep("shop/a", "main", {}, {"cookies": [cookie("sid", "1", httpOnly=True)], "origins": []})
    (kept,) = await http.open("shop/a", "main", time.time())
    assert kept == Cookie(name="sid", value="1", domain="shop.test", host_only=True, http_only=True)
    other = Cookie(name="lang", value="de", domain="shop.test")
    await http.keep("shop/a", "main", [other], {other.place}, time.time())
    state = await browser.open("shop/a", "main")
    assert {(each["name"], each["domain"], each["httpOnly"]) for each in state["cookies"]} == {
        ("sid", "shop.test", True),
        ("lang", ".shop.test", False),
    }
    assert await http.open("shop/b", "main", time.time()) == []


async def test_only_what_changed_is_written() -> None:
    store = MemorySessions()
    browser, http = BrowserSessions(store, 7), Sessions(store, 7)
    before = {"cookies": [cookie("a", "1"), cookie("gone", "1")], "origins": []}
    await browser.keep("shop/a", "main", {}, before)
    meanwhile = Cookie(name="b", value="2", domain="shop.test", host_only=True)
    await http.keep("shop/a", "main", [meanwhile], {meanwhile.place}, time.time())
    await browser.keep("shop/a", "main", before, {"cookies": [cookie("a", "1")], "origins": []})
    assert {each.name for each in await http.open("shop/a", "main", time.time())} == {"a", "b"}


async def test_the_storage_of_pages_is_kept_within_bounds() -> None:
    browser = BrowserSessions(MemorySessions(), 7)
    small = [{"origin": "https://shop.test", "localStorage": [{"name": "token", "value": "1"}]}]
    await browser.keep("shop/a", "main", {}, {"cookies": [], "origins": small})
    assert (await browser.open("shop/a", "main"))["origins"] == small
    large = [{"origin": "https://shop.test", "localStorage": [{"name": "x", "value": "y" * MAX_STORAGE}]}]
    await browser.keep("shop/a", "main", {"origins": small}, {"cookies": [], "origins": large})
    assert (await browser.open("shop/a", "main"))["origins"] == small


def test_a_cookie_survives_the_way_there_and_back() -> None:
    for made in (
        Cookie(name="a", value="1", domain="shop.test", host_only=True, secure=True, ends=2e9),
        Cookie(name="b", value="", domain="shop.test", path="/x", http_only=True),
    ):
        assert from_browser(to_browser(made)) == made


def test_every_country_has_a_place() -> None:
    for country in LANGUAGES:
        place = place_of(country)
        assert place is not None
        assert place.locale.endswith(country)
        assert -90 <= place.latitude <= 90
    seoul = place_of("kr")
    assert seoul is not None
    assert (seoul.locale, seoul.timezone) == ("ko-KR", "Asia/Seoul")
    assert place_of("zz") is None
