"""Through proxies: they are used, they are paid by their own name, and their faults are not the site's."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import trustme

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.url import Address
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, Proxy, Route
from scrapeyard.model import ExitReason
from tests.integration.http.stand import failure_of, reason_of
from tests.sites.proxy import LOGIN, PASSWORD, USER, plain_proxy, proxy
from tests.sites.site import Asked, Site, page, raw

BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.fixture
async def secure_site(tmp_path: Path) -> AsyncIterator[tuple[Site, Path]]:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    async with Site(tls=context) as site:
        site.routes["/"] = page(b"secure")
        yield site, bundle


def way(url: str) -> Route:
    return Route(proxy=Proxy(url=url, name="home-1", proxy_class="residential"))


Get = Callable[[str, Route], Any]


@pytest.fixture
def get(make_engine: Callable[..., WreqEngine], secure_site: tuple[Site, Path]) -> Get:
    engine = make_engine(ca_bundle=secure_site[1])

    async def get(url: str, way: Route) -> FetchResponse:
        return await engine.fetch(FetchRequest(url=url), Caller(), way)

    return get


@pytest.mark.parametrize(("listens", "scheme"), [("http", "http"), ("socks5", "socks5"), ("socks5", "socks5h")])
async def test_a_tunnel_with_a_login(secure_site: tuple[Site, Path], get: Get, listens: str, scheme: str) -> None:
    async with proxy(listens) as port:
        answer = await get(secure_site[0].url("/"), way(f"{scheme}://{LOGIN}@127.0.0.1:{port}"))
    assert answer.body == b"secure"
    assert (answer.way, answer.proxy_class) == ("chrome via home-1", "residential")


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
async def test_plain_http_through_socks(site: Site, get: Get, scheme: str) -> None:
    site.routes["/"] = page(b"plain")
    async with proxy("socks5") as port:
        assert (await get(site.url("/"), way(f"{scheme}://{LOGIN}@127.0.0.1:{port}"))).body == b"plain"


async def test_plain_http_asks_the_proxy_for_the_whole_url(get: Get) -> None:
    async with plain_proxy(BASIC) as listening:
        answer = await get("http://shop.test/p?q=1", way(f"http://{LOGIN}@127.0.0.1:{listening.port}"))
    assert answer.body == b"by proxy: http://shop.test/p?q=1"


@pytest.mark.parametrize("login", ["", "me:wrong@"])
async def test_a_login_that_the_proxy_does_not_take(
    site: Site, secure_site: tuple[Site, Path], get: Get, login: str
) -> None:
    async with proxy("http") as tunnel, proxy("socks5") as socks, plain_proxy(BASIC) as plain:
        for url, through in (
            (secure_site[0].url("/"), f"http://{login}127.0.0.1:{tunnel}"),
            (secure_site[0].url("/"), f"socks5://{login}127.0.0.1:{socks}"),
            (site.url("/"), f"socks5h://{login}127.0.0.1:{socks}"),
            ("http://shop.test/", f"http://{login}127.0.0.1:{plain.port}"),
        ):
            failure = await failure_of(get(url, way(through)))
            assert failure.reason is ExitReason.FETCH_PROXY
            assert "home-1" in failure.message
            assert "wrong" not in repr(failure.details) + failure.message
    assert site.asked == []


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h", "https"])
@pytest.mark.parametrize("target", ["http://shop.test/", "https://shop.test/"])
async def test_a_dead_proxy(get: Get, scheme: str, target: str) -> None:
    assert await reason_of(get(target, way(f"{scheme}://127.0.0.1:1"))) is ExitReason.FETCH_PROXY
    assert await reason_of(get(target, way(f"{scheme}://nowhere.invalid:1"))) is ExitReason.FETCH_PROXY


async def test_a_proxy_that_says_nothing(make_engine: Callable[..., WreqEngine]) -> None:
    engine = make_engine(connect_seconds=0.5)
    async with Site(silent=True) as listening:
        through = way(f"http://127.0.0.1:{listening.port}")
        answer = engine.fetch(FetchRequest(url="https://shop.test/"), Caller(), through)
        assert await reason_of(answer) is ExitReason.FETCH_PROXY


@pytest.mark.parametrize("status", [403, 500, 502, 504])
async def test_a_tunnel_that_the_proxy_does_not_open(get: Get, status: int) -> None:
    async with Site(otherwise=page(b"no", status=status)) as listening:
        answer = get("https://shop.test/", way(f"http://127.0.0.1:{listening.port}"))
        assert await reason_of(answer) is ExitReason.FETCH_PROXY


async def test_a_proxy_that_breaks_off(get: Get) -> None:
    async with Site(otherwise=raw(b"", close=True)) as listening:
        for target in ("http://shop.test/", "https://shop.test/"):
            answer = get(target, way(f"http://127.0.0.1:{listening.port}"))
            assert await reason_of(answer) is ExitReason.FETCH_PROXY


async def test_a_vendors_own_error_is_not_the_sites(get: Get) -> None:
    async with Site(otherwise=page(b"", status=502, x_brd_error="no peers")) as listening:
        failure = await failure_of(get("http://shop.test/", way(f"http://127.0.0.1:{listening.port}")))
    assert failure.reason is ExitReason.FETCH_PROXY
    assert "no peers" in failure.message


async def test_what_the_site_does_behind_a_proxy_is_the_sites(
    site: Site, secure_site: tuple[Site, Path], make_engine: Callable[..., WreqEngine]
) -> None:
    strict = make_engine()
    site.routes["/cut"] = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", close=True)
    async with proxy("socks5") as port, plain_proxy("") as plain:
        through = way(f"socks5://{LOGIN}@127.0.0.1:{port}")
        untrusted = strict.fetch(FetchRequest(url=secure_site[0].url("/")), Caller(), through)
        assert await reason_of(untrusted) is ExitReason.FETCH_TLS
        cut = strict.fetch(FetchRequest(url=site.url("/cut")), Caller(), through)
        assert await reason_of(cut) is ExitReason.FETCH_PROTOCOL
        plain.otherwise = page(b"", status=503)
        answer = await strict.fetch(
            FetchRequest(url="http://shop.test/"), Caller(), way(f"http://127.0.0.1:{plain.port}")
        )
        assert answer.status == 503


@pytest.mark.parametrize(
    "url", ["", "nonsense", "ftp://127.0.0.1:1", "http://", "http://a b:1", "socks4://127.0.0.1:1"]
)
async def test_a_proxy_that_is_none(get: Get, url: str) -> None:
    chosen = Route(proxy=Proxy(url=url or "//", name="x"))
    assert await reason_of(get("http://shop.test/", chosen)) is ExitReason.FETCH_PROXY


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
async def test_private_targets_are_refused_before_the_proxy_is_asked(
    make_engine: Callable[..., WreqEngine], scheme: str
) -> None:
    async def resolve(host: str, port: int) -> list[Address]:
        return [IPv4Address("10.0.0.1" if host == "inside.example" else "93.184.215.14")]

    engine = make_engine(resolve=resolve, allow_private=False)
    async with Site(otherwise=page(b"", status=302, location="http://inside.example/")) as listening:
        through = way(f"{scheme}://127.0.0.1:{listening.port}")
        for url in ("http://inside.example/", "https://inside.example/", "http://127.0.0.1/", "http://[::1]/"):
            answer = engine.fetch(FetchRequest(url=url), Caller(), through)
            assert await reason_of(answer) is ExitReason.FETCH_PRIVATE_ADDRESS
        assert listening.asked == []
        if scheme == "http":
            onward = engine.fetch(FetchRequest(url="http://outside.example/"), Caller(), through)
            assert await reason_of(onward) is ExitReason.FETCH_PRIVATE_ADDRESS
            assert [asked.path for asked in listening.asked] == ["http://outside.example/"]


async def test_socks5_is_given_the_address_that_was_checked(make_engine: Callable[..., WreqEngine]) -> None:
    asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"\x05\x00")
        asked.set_result(await reader.readexactly(10))
        writer.close()

    async def resolve(host: str, port: int) -> list[Address]:
        return [IPv4Address("93.184.215.14")]

    server = await asyncio.start_server(socks, "127.0.0.1", 0)
    async with server:
        through = way(f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        engine = make_engine(resolve=resolve, allow_private=False)
        await reason_of(engine.fetch(FetchRequest(url="http://shop.example/"), Caller(), through))
    assert (await asked)[3:8] == b"\x01\x5d\xb8\xd7\x0e"


async def test_one_proxy_in_the_environment_changes_nothing(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    async with plain_proxy(BASIC) as listening:
        answer = await get("http://shop.test/", way(f"http://{LOGIN}@127.0.0.1:{listening.port}"))
    assert answer.body.startswith(b"by proxy")


async def test_each_exit_has_connections_of_its_own(make_engine: Callable[..., WreqEngine]) -> None:
    async def echo(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await page(asked.headers["proxy-authorization"].encode())(asked, writer)

    engine = make_engine()
    async with Site(otherwise=echo) as listening:
        seen: dict[str, set[bytes]] = {"one": set(), "two": set()}
        for user in ("one", "two") * 10:
            through = way(f"http://{user}:x@127.0.0.1:{listening.port}")
            seen[user].add((await engine.fetch(FetchRequest(url="http://shop.test/"), Caller(), through)).body)
        assert [len(words) for words in seen.values()] == [1, 1]
        assert seen["one"] != seen["two"]
        by_login = {
            login: {asked.reader for asked in listening.asked if asked.headers["proxy-authorization"] == login}
            for login in {asked.headers["proxy-authorization"] for asked in listening.asked}
        }
        one, two = by_login.values()
        assert one.isdisjoint(two)
        assert max(len(one), len(two)) < 5, "and they are used again"


def test_credentials_are_not_told() -> None:
    chosen = way("http://me:secret@proxy.example:8080")
    assert "secret" not in repr(chosen) + str(chosen.proxy)
    assert "proxy.example:8080" in repr(chosen)
