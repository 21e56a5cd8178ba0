"""A page in the real browser tries to reach this machine in many ways. None arrives.

The browser runs without a network namespace here, so that nothing but its flags and the proxy holds it back.
"""

import asyncio
import socket
import ssl
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from scrapeyard.engines.browser.found import find_browser
from scrapeyard.engines.browser.host import ProcessHost, start_host
from scrapeyard.engines.browser.operations import Click, Goto, Operation
from scrapeyard.engines.browser.port import ContextOptions, HostContext
from scrapeyard.errors import FetchFailed
from scrapeyard.settings import BrowserSettings
from tests.leaks import PATIENCE
from tests.services.forward_proxy import Context, forward_proxy
from tests.sites.private_ways import (
    CLICKS,
    PAGES,
    SPELLINGS,
    STATUSES,
    UNREACHABLE,
    count_ways,
    headers_of,
    move_of,
    page_of,
)
from tests.sites.site import Asked, Site, page, redirect

NAMES = {
    "shop.example": [["127.0.0.1"]],
    "loop.example": [["127.0.0.1"]],
    "localhost": [["127.0.0.1", "::1"]],
    "www.localhost": [["127.0.0.1"]],
    "mixed.example": [["127.0.0.1", "10.0.0.1"]],
    "ten.example": [["10.0.0.1"]],
}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 2\r\n\r\nok"


class Listener(asyncio.DatagramProtocol):
    """Everything that comes to one port of this machine, by TCP and UDP, on any of its addresses."""

    def __init__(self) -> None:
        self.ways: Counter[str] = Counter()
        """By the first part of the path; `tls` and `udp` for what has none."""
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> "Listener":
        self._server = await asyncio.start_server(self._take, sock=_any_address(socket.SOCK_STREAM))
        self.port: int = self._server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        udp = _any_address(socket.SOCK_DGRAM, self.port)
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=udp)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self._transport.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, way: str, *, host: str = "127.0.0.1") -> str:
        """Its URL under a name of this machine."""
        return f"http://{host}:{self.port}/{way}"

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.ways["udp"] += 1

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        found = ""
        try:
            async with asyncio.timeout(PATIENCE):
                line = await reader.readuntil(b" HTTP/1.1\r\n")
                found = line.decode("latin-1").split(" ")[1].strip("/").partition("?")[0]
            writer.write(ANSWER)
            await writer.drain()
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError):
            pass
        finally:
            self.ways[found or "tls"] += 1
            self._tasks.discard(task)
            writer.close()


def _any_address(kind: int, port: int = 0) -> socket.socket:
    """On IPv4 and IPv6 at once."""
    made = socket.socket(socket.AF_INET6, kind)
    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    made.bind(("::", port))
    made.setblocking(False)
    return made


class Stage:
    """A browser behind the proxy, two sites with bad pages, and the listener that they try to reach."""

    def __init__(self, host: ProcessHost, listener: Listener, sites: list[Site], context: Context) -> None:
        self.host = host
        self.listener = listener
        self.sites = sites
        self.context = context
        for site in sites:
            self._write_pages(site)

    async def perform(self, operation: Operation, number: int = 1) -> str:
        """Empty: it could be done."""
        try:
            await self.host.perform(number, operation)
        except FetchFailed as error:
            return error.message
        return ""

    async def try_pages(self, sites: list[Site]) -> None:
        """Open each bad page on each of these sites, all at once, and wait until it has tried everything."""
        bad = [(site, name) for site in sites for name in PAGES]
        await asyncio.gather(*(self._try_page(site, name, number) for number, (site, name) in enumerate(bad, start=2)))

    async def _try_page(self, site: Site, name: str, number: int) -> None:
        await self.open(number)
        url = site.url(f"/{name}", host="shop.example")
        assert await self.perform(Goto(url=url, wait_until="commit", timeout=60), number) == ""
        await site.until(lambda: f"/settled?{name}" in _paths(site))
        await self.host.close(number)

    async def open(self, number: int) -> None:
        """A context of its own."""
        told = HostContext(options=ContextOptions(), user=self.context.user, password=self.context.password)
        await self.host.open(number, told)

    async def try_clicks(self) -> None:
        """Open each page that waits for a click, and click."""
        for way in CLICKS:
            assert await self.perform(Goto(url=self.sites[0].url(f"/moves/{way}", host="shop.example"))) == ""
            assert await self.perform(Click(selector="#go")) == ""

    async def try_spellings(self, spellings: dict[str, str]) -> None:
        """Open the listener under other names, at once and by a redirect."""
        for way, host in spellings.items():
            await self.perform(Goto(url=self.listener.url(f"goto-{way}", host=host), wait_until="commit", timeout=20))
            away = self.sites[0].url(f"/away/{way}", host="shop.example")
            await self.perform(Goto(url=away, wait_until="commit", timeout=20))

    def _write_pages(self, site: Site) -> None:
        url, port = self.listener.url, self.listener.port
        for name in PAGES:
            site.routes[f"/{name}"] = _html(page_of(name, url, port), headers_of(name, url, port))
        for status in STATUSES:
            site.routes[f"/redirects/{status}"] = redirect(url(f"redirect-{status}"), status)
        for way, host in {**SPELLINGS, **UNREACHABLE}.items():
            site.routes[f"/away/{way}"] = redirect(url(f"away-{way}", host=host).encode().decode("latin-1"))
        site.routes["/settled"] = page(b"")

        async def otherwise(asked: Asked, writer: asyncio.StreamWriter) -> None:
            path, _, query = asked.path.partition("?")
            if path.startswith("/moves/"):
                way = path.removeprefix("/moves/")
                answer = _html(move_of(way, url), headers_of(way, url, port))
            elif path == "/worker.js":
                answer = page(f"fetch('{query}', {{mode: 'no-cors'}})".encode(), content_type="text/javascript")
            elif path == "/xslt":
                xml = f'<?xml-stylesheet type="text/xsl" href="{query}"?><a/>'
                answer = page(xml.encode(), content_type="text/xml")
            else:
                answer = page(b"", status=404)
            await answer(asked, writer)

        site.otherwise = otherwise


def _html(html: str, headers: dict[str, str]) -> Any:
    named = {name.replace("-", "_"): value for name, value in headers.items()}
    return page(b"<!doctype html><meta charset=utf-8>" + html.encode(), content_type="text/html", **named)


def _paths(site: Site) -> list[str]:
    return [asked.path for asked in site.asked]


@asynccontextmanager
async def staged(*, allow_private: bool) -> AsyncIterator[Stage]:
    """`allow_private`: the proxy lets everything pass."""
    found = find_browser(BrowserSettings())
    if found.missing:
        pytest.skip(f"it needs a browser: {found.missing}")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("shop.example").configure_cert(tls)
    settings = BrowserSettings(namespace="off", arguments=("--ignore-certificate-errors",))
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="b-"))  # short: Chromium makes sockets in it
        listener = await stack.enter_async_context(Listener())
        sites = [await stack.enter_async_context(site) for site in (Site(), Site(tls=tls))]
        opened = forward_proxy(
            allow_private=allow_private,
            names=NAMES,
            http={"allow_hosts": ("shop.example",), "connect_seconds": 10},
        )
        stand = await stack.enter_async_context(opened)
        context = stand.admit()
        host = await start_host(settings, stand.proxy.path, Path(folder))
        stack.push_async_callback(host.end)
        stage = Stage(host, listener, sites, context)
        await stage.open(1)
        yield stage
        with suppress(FetchFailed):
            await host.close(1)


@pytest.mark.browser
@pytest.mark.security
async def test_no_page_reaches_a_private_address() -> None:
    async with staged(allow_private=False) as stage:
        await stage.try_pages(stage.sites)
        assert stage.context.count.refused >= 50, "the proxy was asked"
        await stage.try_clicks()
        before = stage.context.count.refused
        await stage.try_spellings({**SPELLINGS, **UNREACHABLE})
        assert stage.context.count.refused >= before + 2 * len({**SPELLINGS, **UNREACHABLE})
        reached = {asked.headers.get("host", "").partition(":")[0] for site in stage.sites for asked in site.asked}
        assert reached == {"shop.example"}
    assert dict(stage.listener.ways) == {}


@pytest.mark.browser
@pytest.mark.security
async def test_the_listener_counts_what_does_arrive() -> None:
    """The control: where the proxy lets private addresses pass, most of the same ways arrive."""
    assert count_ways() + len(SPELLINGS) + len(UNREACHABLE) >= 100
    async with staged(allow_private=True) as stage, asyncio.timeout(PATIENCE):
        await stage.try_pages(stage.sites[:1])  # the listener cannot tell the ways of one site from the other's
        await stage.try_clicks()
        await stage.try_spellings(SPELLINGS)
        ways = stage.listener.ways
        while len(ways) < 90:
            await asyncio.sleep(0.1)
        assert "udp" not in ways, "the proxy carries no UDP, whatever it allows"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.sendto(b"x", ("127.0.0.1", stage.listener.port))
        while "udp" not in ways:
            await asyncio.sleep(0.1)
