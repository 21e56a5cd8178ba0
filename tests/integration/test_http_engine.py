"""The HTTP engine against real servers on loopback, most of which misbehave."""

import asyncio
import gzip
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Any

import brotli
import pytest
import trustme
import zstandard

from scrapeyard.builtin import BUILTINS
from scrapeyard.engines.clients import Clients, newest_profile
from scrapeyard.engines.http import WreqEngine
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.engines.target import Address
from scrapeyard.errors import FetchFailed, SettingsInvalid
from scrapeyard.model import ExitReason, Scraper, ScraperRef
from scrapeyard.settings import HttpSettings
from tests.sites.site import Asked, Site, chunks, never, page, raw, redirect, reset, stalled

MB = 1024 * 1024
HTML = {"content_type": "text/html"}


async def resolve(host: str, port: int) -> list[Address]:
    """Every name of ours is on loopback; the others are unknown."""
    if host.endswith(".test"):
        return [IPv4Address("127.0.0.1")]
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


@pytest.fixture
async def make_engine() -> AsyncIterator[Callable[..., WreqEngine]]:
    engines: list[WreqEngine] = []

    def make(resolve: Any = resolve, authorities: Path | None = None, **settings: Any) -> WreqEngine:
        engine = WreqEngine(
            HttpSettings(**{"allow_private": True, "total_seconds": 10, **settings}),
            resolve=resolve,
            authorities=authorities,
        )
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        await engine.stop()
        await engine.stop()


@pytest.fixture
async def fetch(make_engine: Callable[..., WreqEngine]) -> Callable[..., Awaitable[FetchResponse]]:
    engine = make_engine()
    await engine.start()

    async def fetch(url: str, *, scraper: Scraper | None = None, **options: Any) -> FetchResponse:
        return await engine.fetch(FetchRequest(url=url, **options), scraper)

    return fetch


async def reason_of(answer: Awaitable[FetchResponse]) -> ExitReason:
    with pytest.raises(FetchFailed) as failure:
        await answer
    assert failure.value.message
    return failure.value.reason


def scraper(*allowed_hosts: str) -> Scraper:
    ref = ScraperRef(id="shop/product", version="1.0.0")
    return Scraper(ref=ref, folder=None, allowed_hosts=allowed_hosts)


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
    await make_engine(profile=family).fetch(FetchRequest(url=site.url("/")), None)
    headers = site.asked[0].headers
    assert word in headers.get("user-agent", "")
    assert "gzip" in headers["accept-encoding"]


def test_profiles_are_the_newest_and_unknown_ones_are_refused() -> None:
    assert str(newest_profile("safari")) >= "Profile.Safari26_4"
    with pytest.raises(SettingsInvalid, match="netscape"):
        newest_profile("netscape")


async def test_the_user_agent_setting_wins_over_the_profile(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    site.routes["/"] = page(b"ok")
    await make_engine(user_agent="our-bot/1").fetch(FetchRequest(url=site.url("/")), None)
    assert site.asked[0].headers["user-agent"] == "our-bot/1"


async def test_a_proxy_in_the_environment_is_not_used(
    site: Site, make_engine: Callable[..., WreqEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Site() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url(""))
        site.routes["/"] = page(b"ok")
        answer = await make_engine().fetch(FetchRequest(url=site.url("/", "shop.test")), None)
        assert (answer.body, proxy.asked) == (b"ok", [])


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
    assert await reason_of(engine.fetch(FetchRequest(url=site.url("/loop")), None)) is ExitReason.FETCH_REDIRECTS
    assert len(site.asked) == 4
    assert (await engine.fetch(FetchRequest(url=site.url("/0")), None)).body == b"end"


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


async def test_private_addresses_are_refused_without_a_connection(
    site: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    engine = make_engine(allow_private=False)
    for url in (site.url("/"), site.url("/", "shop.test"), site.url("/", "[::ffff:127.0.0.1]")):
        assert await reason_of(engine.fetch(FetchRequest(url=url), None)) is ExitReason.FETCH_PRIVATE_ADDRESS
    assert (site.asked, site.open) == ([], 0)


async def test_a_redirect_into_the_private_network_is_refused(
    site: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    engine = make_engine(allow_private=False, allow_hosts=("shop.test",))
    site.routes |= {"/from": redirect(site.url("/secret", "other.test")), "/secret": page(b"secret")}
    answer = engine.fetch(FetchRequest(url=site.url("/from", "shop.test")), None)
    assert await reason_of(answer) is ExitReason.FETCH_PRIVATE_ADDRESS
    assert [asked.path for asked in site.asked] == ["/from"]


async def test_a_name_that_is_public_and_private_at_once_is_refused(make_engine: Callable[..., WreqEngine]) -> None:
    async def both(host: str, port: int) -> list[Address]:
        return [ip_address("93.184.216.34"), ip_address("10.0.0.1")]

    answer = make_engine(resolve=both, allow_private=False).fetch(FetchRequest(url="http://both.example/"), None)
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
        for _ in range(3):
            assert (await engine.fetch(FetchRequest(url=good.url("/", "rebind.example")), None)).body == b"good"
        engine._names._known.clear()  # as if half a minute had passed
        again = engine.fetch(FetchRequest(url=good.url("/", "rebind.example")), None)
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
    tasks = [asyncio.create_task(engine.fetch(FetchRequest(url=site.url("/", "slow.test")), None)) for _ in range(5)]
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


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        (raw(b"", close=True), ExitReason.FETCH_PROTOCOL),
        (raw(b"\0\1\2 what\r\n\r\n", close=True), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort", close=True), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!"), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n"), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello"), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 2 * MB + b"\r\n\r\n"), ExitReason.FETCH_PROTOCOL),
        (reset, ExitReason.FETCH_PROTOCOL),
        (page(b"not gzip", content_encoding="gzip"), ExitReason.FETCH_DECODE),
        (page(gzip.compress(b"x" * 100)[:-6], content_encoding="gzip"), ExitReason.FETCH_DECODE),
        (page(b"\xff" * 40, content_encoding="br"), ExitReason.FETCH_DECODE),
        (page(b"\xff" * 40, content_encoding="zstd"), ExitReason.FETCH_DECODE),
        (page(gzip.compress(b"x"), content_encoding="gzip, gzip, gzip, gzip"), ExitReason.FETCH_DECODE),
    ],
)
async def test_broken_answers(site: Site, fetch: Any, route: Any, reason: ExitReason) -> None:
    site.routes["/"] = route
    assert await reason_of(fetch(site.url("/"))) is reason
    site.routes["/good"] = page(b"good")
    assert (await fetch(site.url("/good"))).body == b"good"


async def test_a_connection_closed_while_idle_is_made_anew(site: Site, fetch: Any) -> None:
    answers = iter([page(b"first"), raw(b"", close=True), page(b"again")])

    async def in_turn(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await next(answers)(asked, writer)

    site.routes["/"] = in_turn
    assert (await fetch(site.url("/"))).body == b"first"
    assert (await fetch(site.url("/"))).body == b"again"


async def test_a_post_is_never_sent_twice(site: Site, fetch: Any) -> None:
    site.routes["/"] = raw(b"", close=True)
    assert await reason_of(fetch(site.url("/"), method="POST", body=b"pay")) is ExitReason.FETCH_PROTOCOL
    assert len(site.asked) == 1


async def test_nobody_listens(fetch: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        assert await reason_of(fetch(url)) is ExitReason.FETCH_CONNECT


async def test_a_name_nobody_knows(fetch: Any) -> None:
    assert await reason_of(fetch("http://nowhere.invalid/")) is ExitReason.FETCH_DNS


@pytest.mark.parametrize("route", [never, stalled])
async def test_a_slow_site_times_out_and_its_connection_goes(site: Site, fetch: Any, route: Any) -> None:
    site.routes["/"] = route
    assert await reason_of(fetch(site.url("/"), timeout_seconds=0.2)) is ExitReason.FETCH_TIMEOUT
    async with asyncio.timeout(30):
        await site.until(lambda: site.open == 0)


async def test_the_time_limit_covers_all_redirects(site: Site, fetch: Any) -> None:
    site.routes |= {"/0": redirect("/1"), "/1": never}
    assert await reason_of(fetch(site.url("/0"), timeout_seconds=0.2)) is ExitReason.FETCH_TIMEOUT


async def test_a_server_that_never_shakes_hands_times_out(make_engine: Callable[..., WreqEngine]) -> None:
    engine = make_engine(connect_seconds=0.2)
    async with Site(silent=True) as site:
        url = f"https://shop.test:{site.port}/"
        assert await reason_of(engine.fetch(FetchRequest(url=url), None)) is ExitReason.FETCH_TIMEOUT


async def test_a_cancelled_fetch_lets_its_connection_go(site: Site, fetch: Any) -> None:
    site.routes["/"] = never
    task = asyncio.create_task(fetch(site.url("/")))
    await site.until(lambda: len(site.asked) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(30):
        await site.until(lambda: site.open == 0)


@pytest.mark.parametrize("route", [page(b"x" * 3 * MB), chunks(b"x" * 65536, 64)])
async def test_a_page_over_the_limit_is_not_read(
    site: Site, make_engine: Callable[..., WreqEngine], route: Any
) -> None:
    site.routes["/"] = route
    engine = make_engine(max_body_mb=1)
    assert await reason_of(engine.fetch(FetchRequest(url=site.url("/")), None)) is ExitReason.FETCH_TOO_LARGE
    site.routes["/good"] = page(b"good")
    assert (await engine.fetch(FetchRequest(url=site.url("/good")), None)).body == b"good"


async def test_a_caller_may_lower_the_limit_but_not_raise_it(
    site: Site, make_engine: Callable[..., WreqEngine]
) -> None:
    site.routes["/"] = page(b"x" * 2 * MB)
    engine = make_engine(max_body_mb=1)
    for limit in (1000, 10 * MB, -1):
        answer = engine.fetch(FetchRequest(url=site.url("/"), max_bytes=limit), None)
        assert await reason_of(answer) is ExitReason.FETCH_TOO_LARGE
    site.routes["/"] = page(b"x" * MB)
    assert len((await engine.fetch(FetchRequest(url=site.url("/")), None)).body) == MB


def _deflate(data: bytes) -> bytes:
    return zlib.compress(data)


def _bare_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


def _two_members(data: bytes) -> bytes:
    return gzip.compress(data[:10]) + gzip.compress(data[10:])


def _streamed_zstd(data: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(data) + compressor.flush()


ENCODERS = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("gzip", _two_members),
    ("deflate", _deflate),
    ("deflate", _bare_deflate),
    ("br", brotli.compress),
    ("zstd", zstandard.compress),
    ("zstd", _streamed_zstd),
    ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
    ("identity", bytes),
    ("utf-8", bytes),
]


@pytest.mark.parametrize("size", [0, 1, 1000, 700_000])
@pytest.mark.parametrize(("name", "encode"), ENCODERS)
async def test_compressed_pages(site: Site, fetch: Any, name: str, encode: Any, size: int) -> None:
    body = bytes(i * 7 % 251 for i in range(1000)) * (size // 1000) if size >= 1000 else b"x" * size
    wire = encode(body)
    site.routes["/"] = page(wire, content_encoding=name)
    answer = await fetch(site.url("/"))
    assert answer.body == body
    assert answer.bytes_received == len(wire)


@pytest.mark.parametrize(
    ("name", "encode"), [entry for entry in ENCODERS if entry[0] in ("gzip", "br", "zstd", "gzip, br")]
)
async def test_a_compression_bomb_stops_at_the_limit(
    site: Site, make_engine: Callable[..., WreqEngine], name: str, encode: Any
) -> None:
    bomb = encode(b"\0" * 40 * MB)
    assert len(bomb) < MB
    site.routes["/"] = page(bomb, content_encoding=name)
    answer = make_engine(max_body_mb=1).fetch(FetchRequest(url=site.url("/")), None)
    assert await reason_of(answer) is ExitReason.FETCH_TOO_LARGE


@pytest.mark.parametrize("member", [gzip.compress(b"", mtime=0), zstandard.compress(b"")], ids=["gzip", "zstd"])
async def test_a_body_of_countless_empty_parts_is_refused(site: Site, fetch: Any, member: bytes) -> None:
    name = "gzip" if member.startswith(b"\x1f\x8b") else "zstd"
    site.routes["/"] = page(member * 20_000, content_encoding=name)
    assert await reason_of(fetch(site.url("/"))) is ExitReason.FETCH_DECODE


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html; charset=utf-8", "é".encode(), "é"),
        ("text/html; charset=ISO-8859-1", "“é”".encode("cp1252"), "“é”"),
        ('text/html; charset="windows-1251"', "Привет".encode("cp1251"), "Привет"),
        ("text/html", b'<meta charset="euc-kr">' + "가격".encode("cp949"), '<meta charset="euc-kr">가격'),
        ("text/html", b"<meta http-equiv=x content='text/html; charset=shift_jis'>" + "値段".encode("cp932"), None),
        ("text/html; charset=latin1", b"\xef\xbb\xbf" + "é".encode(), "é"),
        ("text/html", "é".encode("utf-16"), "é"),
        ("text/html", "é".encode(), "é"),
        ("text/html", b"caf\xe9", "café"),
        ("text/html; charset=zlib", "é".encode(), "é"),
        ("text/html; charset=nonsense", b"<meta charset=utf-16>" + "é".encode(), None),
        ("text/html; charset=gb2312", "价格".encode("gb18030"), "价格"),
        ("", b"", ""),
    ],
)
async def test_charsets(site: Site, fetch: Any, content_type: str, body: bytes, text: str | None) -> None:
    site.routes["/"] = page(body, content_type=content_type)
    answer = await fetch(site.url("/"))
    decoded = answer.body.decode(answer.encoding)
    assert decoded.endswith(("値段", "é")) if text is None else decoded == text


@pytest.fixture
async def secure() -> AsyncIterator[tuple[Site, trustme.CA]]:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("shop.test").configure_cert(context)
    async with Site(tls=context) as site:
        site.routes["/"] = page(b"secure")
        yield site, authority


async def test_an_unknown_authority_is_refused(secure: tuple[Site, trustme.CA], fetch: Any) -> None:
    site, _ = secure
    assert await reason_of(fetch(site.url("/", "shop.test"))) is ExitReason.FETCH_TLS
    assert site.asked == []


async def test_a_certificate_holds_for_its_host_alone(
    secure: tuple[Site, trustme.CA], make_engine: Callable[..., WreqEngine], tmp_path: Path
) -> None:
    site, authority = secure
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    engine = make_engine(authorities=tmp_path / "ca.pem")
    assert (await engine.fetch(FetchRequest(url=site.url("/", "shop.test")), None)).body == b"secure"
    other = engine.fetch(FetchRequest(url=site.url("/", "other.test")), None)
    assert await reason_of(other) is ExitReason.FETCH_TLS


async def test_only_so_many_are_in_flight(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    go = asyncio.Event()

    async def wait(asked: Any, writer: Any) -> None:
        await go.wait()
        await page(b"ok")(asked, writer)

    site.routes["/"] = wait
    engine = make_engine(concurrency=3)
    tasks = [asyncio.create_task(engine.fetch(FetchRequest(url=site.url("/")), None)) for _ in range(10)]
    await site.until(lambda: len(site.asked) == 3)
    waiting = engine.fetch(FetchRequest(url=site.url("/"), timeout_seconds=0.1), None)
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
        await engine.fetch(FetchRequest(url=site.url("/", "shop.test")), None)
    assert site.open == 1
    await engine.stop()
    async with asyncio.timeout(30):
        await site.until(lambda: site.open == 0)


async def test_stopping_fails_what_is_in_flight(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    site.routes["/"] = never
    engine = make_engine()
    task = asyncio.create_task(engine.fetch(FetchRequest(url=site.url("/")), None))
    await site.until(lambda: len(site.asked) == 1)
    await engine.stop()
    assert await reason_of(task) is ExitReason.FETCH_CONNECT


def test_clients_are_bounded_and_kept_by_use() -> None:
    clients = Clients(HttpSettings(), size=2)
    address = (IPv4Address("127.0.0.1"),)
    first = clients.get("a.test", address)
    clients.get("b.test", address)
    assert clients.get("a.test", address) is first
    clients.get("c.test", address)
    assert clients.get("a.test", address) is first
    assert clients.get("a.test", (IPv4Address("127.0.0.2"),)) is not first


async def test_many_pages_at_once(site: Site, fetch: Any) -> None:
    site.routes["/"] = page(b"x" * 18_000)
    answers = await asyncio.gather(*(fetch(site.url("/", f"h{i % 7}.test")) for i in range(200)))
    assert {len(answer.body) for answer in answers} == {18_000}


async def test_the_builtin_page_over_http(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    engine = make_engine()
    html = b"<html lang=ko><title>T</title><h1>H</h1><a href=/x>x</a><p>hello"
    site.routes |= {"/": redirect("/p"), "/p": page(html, status=404, **HTML)}
    asked = site.url("/", "shop.test")
    result = await BUILTINS["builtin/page"].run(lambda request: engine.fetch(request, None), {"url": asked})
    assert (result["status"], result["url"], result["final_url"]) == (404, asked, site.url("/p", "shop.test"))
    assert (result["title"], result["h1"], result["language"]) == ("T", "H", "ko")
    assert result["links"] == [site.url("/x", "shop.test")]
    assert "hello" in result["markdown"]
