"""Redirects: method, headers, cookies, and where they may not lead."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.model import ExitReason
from tests.integration.http.stand import reason_of
from tests.sites.site import Asked, Site, page, redirect


@pytest.mark.parametrize(
    ("status", "method", "expected"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "PUT", "PUT"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
    ],
)
async def test_the_method_after_a_redirect(site: Site, fetch: Any, status: int, method: str, expected: str) -> None:
    site.routes |= {"/from": redirect("/to", status), "/to": page(b"there")}
    body = b"" if method == "HEAD" else b"data"
    answer = await fetch(site.url("/from"), method=method, body=body, headers={"Content-Type": "text/plain"})
    assert (answer.url, answer.redirects) == (site.url("/to"), (site.url("/from"),))
    asked = site.asked[1]
    kept = expected == method
    assert (asked.method, asked.body) == (expected, body if kept else b"")
    assert ("content-type" in asked.headers) is kept


@pytest.mark.parametrize(
    ("location", "path"), [("/caf\u00e9".encode(), "/caf%C3%A9"), (b"/caf\xe9", "/caf%E9")], ids=["utf-8", "latin-1"]
)
async def test_the_bytes_of_a_location_stand_for_themselves(site: Site, fetch: Any, location: bytes, path: str) -> None:
    async def answer(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: " + location + b"\r\n\r\n")

    site.routes |= {"/from": answer, path: page(b"there")}
    assert (await fetch(site.url("/from"))).url == site.url(path)


async def test_a_redirect_is_an_answer_when_not_followed(site: Site, fetch: Any) -> None:
    site.routes["/from"] = redirect("/to")
    answer = await fetch(site.url("/from"), follow_redirects=False)
    assert (answer.status, dict(answer.headers)["location"], len(site.asked)) == (302, "/to", 1)


async def test_a_redirect_without_a_location_is_an_answer(site: Site, fetch: Any) -> None:
    site.routes["/from"] = page(b"", status=302)
    assert (await fetch(site.url("/from"))).status == 302


async def test_credentials_stay_within_their_origin(site: Site, fetch: Any) -> None:
    site.routes |= {
        "/same": redirect("/out"),
        "/out": redirect(site.url("/there", "other.test")),
        "/there": page(b"ok"),
    }
    secrets = {"Authorization": "Bearer x", "Cookie": "session=1", "X-Mine": "1"}
    await fetch(site.url("/same", "shop.test"), headers=secrets)
    first, second, third = (asked.headers for asked in site.asked)
    assert first["authorization"] == second["authorization"] == "Bearer x"
    assert first["cookie"] == second["cookie"] == "session=1"
    assert "authorization" not in third
    assert "cookie" not in third
    assert third["x-mine"] == "1"


async def test_cookies_set_on_the_way_are_sent_to_their_site_alone_and_forgotten(site: Site, fetch: Any) -> None:
    site.routes |= {
        "/set": redirect("/got", set_cookie="seen=1; Path=/"),
        "/got": redirect(site.url("/there", "other.test")),
        "/there": page(b"ok"),
    }
    await fetch(site.url("/set", "shop.test"))
    await fetch(site.url("/there", "shop.test"))
    assert [asked.headers.get("cookie") for asked in site.asked] == [None, "seen=1", None, None]


async def test_redirects_end(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    engine = make_engine(max_redirects=3)
    site.routes |= {"/loop": redirect("/loop")}
    site.routes |= {f"/{i}": redirect(f"/{i + 1}") for i in range(3)} | {"/3": page(b"end")}
    assert await reason_of(engine.fetch(FetchRequest(url=site.url("/loop")), Caller())) is ExitReason.FETCH_REDIRECTS
    assert len(site.asked) == 4
    assert (await engine.fetch(FetchRequest(url=site.url("/0")), Caller())).body == b"end"


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("file:///etc/passwd", ExitReason.FETCH_BAD_URL),
        ("gopher://shop.test/", ExitReason.FETCH_BAD_URL),
        ("http://user:pw@shop.test/", ExitReason.FETCH_BAD_URL),
        ("http://0x7f.1/", ExitReason.FETCH_BAD_URL),
        ("http://[::1", ExitReason.FETCH_BAD_URL),
        ("http://unknown.invalid/", ExitReason.FETCH_DNS),
        ("http://169.254.169.254/latest/meta-data/", ExitReason.FETCH_PRIVATE_ADDRESS),
    ],
)
async def test_where_redirects_may_not_lead(site: Site, fetch: Any, location: str, reason: ExitReason) -> None:
    site.routes["/from"] = redirect(location)
    assert await reason_of(fetch(site.url("/from"))) is reason
