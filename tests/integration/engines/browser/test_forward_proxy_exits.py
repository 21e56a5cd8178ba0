"""The forward proxy through exits: every kind of them, with credentials, and what it learns from failures."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trustme

from scrapeyard.engines.ledger import Ledger
from scrapeyard.engines.port import Caller, Proxy
from scrapeyard.settings import ProxyPool
from tests.services.forward_proxy import ProxyStand, forward_proxy
from tests.services.proxies import ProxyServer
from tests.sites.proxy import plain_proxy
from tests.sites.site import Asked, Site, page, raw

EXIT = "127.0.0.11"
NAMES = {"shop.example": [["127.0.0.1"]], "private.example": [["10.0.0.1"]], "dead.example": [["127.0.0.1"]]}


@pytest.fixture(scope="module")
def server() -> Iterator[ProxyServer]:
    with ProxyServer(EXIT, user="user", password="pass word") as started:
        yield started


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as opened:
        opened.otherwise = who
        yield opened


async def who(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Tells from which address it was asked."""
    address = str(writer.get_extra_info("peername")[0]).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(address), address))


def pool_of(url: str) -> ProxyPool:
    return ProxyPool(name="pool", urls=(url,), proxy_class="residential")


async def both(stand: ProxyStand, site: Site, host: str, caller: Caller) -> list[bytes]:
    """A page by plain HTTP and by tunnel."""
    context = stand.admit(caller, exit=stand.pools.choose("pool"))
    plain = await context.get(site.url("/", host=host))
    tunnel = await context.ask(f"CONNECT {host}:{site.port} HTTP/1.1", body=b"GET / HTTP/1.0\r\n\r\n")
    return [plain, tunnel]


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
async def test_pages_come_through_the_exit(scheme: str, server: ProxyServer, site: Site) -> None:
    async def closing(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await who(asked, writer)
        writer.close()

    site.otherwise = closing
    ledger = Ledger()
    async with forward_proxy(names=NAMES, pools=[pool_of(server.url(scheme, "user:pass%20word"))]) as stand:
        host = "127.0.0.1" if scheme == "socks5h" else "shop.example" if scheme == "socks5" else "127.0.0.1"
        for answer in await both(stand, site, host, Caller(ledger=ledger)):
            assert answer.endswith(b"\r\n\r\n" + EXIT.encode()), answer
    assert set(ledger.bytes_by_class) == {"residential"}
    assert ledger.spent.residential_bytes == ledger.spent.bytes > 80


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
async def test_names_that_are_private_here_are_refused_before_the_exit(scheme: str, site: Site) -> None:
    async with Site() as exit_, forward_proxy(allow_private=False, names=NAMES) as stand:
        way = Proxy(url=f"{scheme}://127.0.0.1:{exit_.port}", name="pool/x")
        context = stand.admit(exit=way)
        for host in ("private.example", "127.0.0.1", "shop.example", "localhost"):
            assert (await context.refused(host, 8080)).startswith(("fetch_private_address: ", "fetch_dns: "))
        assert exit_.asked == []
        assert exit_.open == 0


async def test_an_exit_that_resolves_gets_the_name(site: Site) -> None:
    async with Site() as exit_, forward_proxy(names=NAMES) as stand:
        exit_.otherwise = page(b"by proxy")
        context = stand.admit(exit=Proxy(url=f"http://u:p%40@127.0.0.1:{exit_.port}", name="pool/x"))
        assert (await context.get("http://shop.example/a?b")).endswith(b"by proxy")
        exit_.otherwise = raw(b"HTTP/1.1 200 Fine\r\nX: y\r\n\r\nhello")
        reader, writer = await context.tunnel("shop.example:443")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
        plain, tunnel = exit_.asked
        assert plain.path == "http://shop.example/a?b"
        assert (tunnel.method, tunnel.path) == ("CONNECT", "shop.example:443")
        assert plain.headers["proxy-authorization"] == tunnel.headers["proxy-authorization"] == "Basic dTpwQA=="
        assert plain.headers["host"] == "shop.example"


async def test_a_guarded_exit_must_pass_the_guard_itself(server: ProxyServer, site: Site) -> None:
    http = {"allow_hosts": ("shop.example",)}
    async with forward_proxy(allow_private=False, names=NAMES, http=http) as stand:
        for guarded, word in ((True, "fetch_private_address"), (False, "fetch_proxy")):
            way = Proxy(url=f"http://127.0.0.1:{server.port}", name="pool/x", guarded=guarded)
            assert (await stand.admit(exit=way).refused("shop.example", site.port)).startswith(word)
    assert site.asked == []


@pytest.mark.parametrize("login", ["user:wrong", ""])
@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_wrong_credentials_are_the_exits_failure_and_make_it_rest(
    scheme: str, login: str, server: ProxyServer, site: Site
) -> None:
    async with forward_proxy(pools=[pool_of(server.url(scheme, login))]) as stand:
        said = await stand.admit(exit=stand.pools.choose("pool")).refused("127.0.0.1", site.port)
        assert said.startswith("fetch_proxy: the proxy pool/127.0.0.1:")
        assert "wrong" not in said
        assert stand.pools.standing()["pool"] == (1, [f"pool/127.0.0.1:{server.port}"])
    assert site.asked == []


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 503 Away\r\nX-Brd-Error: no exit\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_what_an_exit_says_itself_is_no_page(said: bytes, site: Site) -> None:
    async with Site() as exit_:
        exit_.otherwise = raw(said, close=True)
        async with forward_proxy(pools=[pool_of(f"http://127.0.0.1:{exit_.port}")]) as stand:
            said = await stand.admit(exit=stand.pools.choose("pool")).refused("127.0.0.1", site.port)
            assert said.startswith("fetch_proxy: ")
            assert stand.pools.standing()["pool"][1]


@pytest.mark.parametrize("said", [b"", b"garbage\r\n\r\n", b"\x05\xff", b"\x05\x00\x05\x01\x00\x01", b"x" * 300_000])
@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h", "https"])
async def test_a_hostile_exit_fails_plainly(scheme: str, said: bytes, site: Site) -> None:
    async def say(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    exit_ = await asyncio.start_server(say, "127.0.0.1", 0)
    url = f"{scheme}://127.0.0.1:{exit_.sockets[0].getsockname()[1]}"
    try:
        async with forward_proxy(pools=[pool_of(url)]) as stand:
            said = await stand.admit(exit=stand.pools.choose("pool")).refused("127.0.0.1", site.port)
            assert said.startswith("fetch_proxy: ")
    finally:
        exit_.close()
    assert site.asked == []


async def test_an_exit_by_tls_is_trusted_by_its_pools_authority(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    names = {"localhost": [["127.0.0.1"]], "shop.example": [["127.0.0.1"]]}
    async with Site(tls=context) as exit_, forward_proxy(names=names) as stand:
        exit_.otherwise = page(b"by proxy")
        url = f"https://localhost:{exit_.port}"
        trusted = stand.admit(exit=Proxy(url=url, name="pool/x", ca_file=tmp_path / "ca.pem"))
        assert (await trusted.get("http://shop.example/")).endswith(b"by proxy")
        other = stand.admit(exit=Proxy(url=url, name="pool/x"))
        said = await other.refused("shop.example")
        assert said.startswith("fetch_proxy: ")
        assert "certificate" in said


async def test_credentials_of_the_browser_stay_here() -> None:
    async with plain_proxy("Basic dTpw") as exit_, forward_proxy(names=NAMES) as stand:
        context = stand.admit(exit=Proxy(url=f"http://u:p@127.0.0.1:{exit_.port}", name="pool/x"))
        assert (await context.get("http://shop.example/")).endswith(b"by proxy: http://shop.example/")
