"""What is sent and what comes back, when all goes well."""

from collections.abc import Callable
from typing import Any

import pytest

from scrapeyard.builtin.services import Services
from scrapeyard.engines.http.clients import find_profile
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.model import ExitReason
from tests.integration.http.stand import HTML, reason_of
from tests.page_builtins import BUILTINS
from tests.sites.site import Site, page, raw, redirect


async def test_a_page_comes_back_whole(site: Site, fetch: Any) -> None:
    site.routes["/p"] = page("<h1>é</h1>".encode(), content_type="text/html; charset=utf-8", x_many="1")
    answer = await fetch(site.url("/p?q=a b&c=é#frag", "shop.test"))
    assert (answer.status, answer.body.decode(answer.encoding)) == (200, "<h1>é</h1>")
    assert answer.url == site.url("/p?q=a%20b&c=%C3%A9", "shop.test")
    assert dict(answer.headers)["x-many"] == "1"
    assert answer.bytes_received == len(answer.body)
    assert answer.elapsed_ms > 0
    assert answer.redirects == ()
    assert site.asked[0].path == "/p?q=a%20b&c=%C3%A9"


@pytest.mark.parametrize("status", [204, 304, 404, 429, 500, 503])
async def test_any_status_is_an_answer(site: Site, fetch: Any, status: int) -> None:
    site.routes["/"] = raw(
        b"HTTP/1.1 %d X\r\n%s\r\n" % (status, b"" if status in (204, 304) else b"content-length: 0\r\n")
    )
    assert (await fetch(site.url("/"))).status == status


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_methods_and_bodies_are_sent(site: Site, fetch: Any, method: str) -> None:
    site.routes["/"] = page(b"ok")
    body = b"" if method in ("GET", "HEAD") else b"data\0\xff"
    answer = await fetch(site.url("/"), method=method.lower(), body=body, headers={"X-Mine": "1", "User-Agent": "me"})
    assert answer.body == (b"" if method == "HEAD" else b"ok")
    asked = site.asked[0]
    assert (asked.method, asked.body, asked.headers["x-mine"], asked.headers["user-agent"]) == (method, body, "1", "me")


@pytest.mark.parametrize(
    ("headers", "method"),
    [
        ({"Host": "other.test"}, "GET"),
        ({"Content-Length": "5"}, "POST"),
        ({"Transfer-Encoding": "chunked"}, "POST"),
        ({"Proxy-Authorization": "x"}, "GET"),
        ({"X": "a\r\nEvil: 1"}, "GET"),
        ({"X Y": "a"}, "GET"),
        ({"X": "\u20ac"}, "GET"),
        ({f"X-{i}": "a" for i in range(101)}, "GET"),
        ({"X": "a" * 70_000}, "GET"),
        ({}, "CONNECT"),
        ({}, "TRACE"),
        ({}, "GET /evil HTTP/1.1\r\n"),
    ],
)
async def test_headers_and_methods_that_are_not_ours_to_send(
    site: Site, fetch: Any, headers: dict[str, str], method: str
) -> None:
    assert await reason_of(fetch(site.url("/"), headers=headers, method=method)) is ExitReason.FETCH_NOT_ALLOWED
    assert site.asked == []


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
async def test_a_timeout_must_be_above_zero(site: Site, fetch: Any, seconds: float) -> None:
    assert await reason_of(fetch(site.url("/"), timeout_seconds=seconds)) is ExitReason.FETCH_NOT_ALLOWED


@pytest.mark.parametrize(
    ("family", "word"), [("chrome", "Chrome/"), ("firefox", "Firefox/"), ("safari", "Safari/"), ("none", "")]
)
async def test_the_profile_speaks_like_its_browser(
    site: Site, make_engine: Callable[..., WreqEngine], family: str, word: str
) -> None:
    site.routes["/"] = page(b"ok")
    await make_engine(profile=family).fetch(FetchRequest(url=site.url("/")), Caller())
    headers = site.asked[0].headers
    assert word in headers.get("user-agent", "")
    assert "gzip" in headers["accept-encoding"]


def test_profiles_are_the_newest_and_unknown_ones_are_refused() -> None:
    assert str(find_profile("safari")) >= "Profile.Safari26_4"
    with pytest.raises(ValueError, match="netscape"):
        find_profile("netscape")


async def test_the_user_agent_setting_wins_over_the_profile(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    site.routes["/"] = page(b"ok")
    await make_engine(user_agent="our-bot/1").fetch(FetchRequest(url=site.url("/")), Caller())
    assert site.asked[0].headers["user-agent"] == "our-bot/1"


async def test_the_builtin_page_over_http(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    engine = make_engine()
    html = b"<html lang=ko><title>T</title><h1>H</h1><a href=/x>x</a><p>hello"
    site.routes |= {"/": redirect("/p"), "/p": page(html, status=404, **HTML)}
    asked = site.url("/", "shop.test")
    services = Services(fetch=lambda request: engine.fetch(request, Caller()))
    result = await BUILTINS["builtin/page"].run(services, {"url": asked})
    assert (result["status"], result["url"], result["final_url"]) == (404, asked, site.url("/p", "shop.test"))
    assert (result["title"], result["h1"], result["language"]) == ("T", "H", "ko")
    assert result["links"] == [site.url("/x", "shop.test")]
    assert "hello" in result["markdown"]
