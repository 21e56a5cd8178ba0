"""The forward proxy of browsers with what it counts into, a resolver that the test writes, and a browser's side."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

from scrapeyard.engines.browser.port import Passage, PassageCount
from scrapeyard.engines.browser.proxy.server import BrowserProxy
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import Address
from scrapeyard.engines.ledger import OwnLedgers
from scrapeyard.engines.port import Caller
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.settings import BudgetSettings, HttpSettings, ProxyPool
from tests.leaks import PATIENCE


class Names:
    """A resolver. Each name has lists of addresses, one for each time that it is asked; the last stays."""

    def __init__(self, names: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._names = {name: list(answers) for name, answers in names.items()}

    async def __call__(self, host: str, port: int) -> list[Address]:
        answers = self._names.get(host)
        if not answers:
            raise OSError("no such name")
        found = answers[0] if len(answers) == 1 else answers.pop(0)
        return [ip_address(each) for each in found]


class ProxyStand:
    """A proxy and what it tells."""

    def __init__(self, proxy: BrowserProxy, pools: ProxyPools) -> None:
        self.proxy = proxy
        self.pools = pools

    def admit(self, caller: Caller | None = None, **more: Any) -> "Context":
        """A context of a browser."""
        return Context(self.proxy, *self.proxy.admit(Passage(caller=caller or Caller(), **more)))


class Context:
    """What a browser does for one context, by hand."""

    def __init__(self, proxy: BrowserProxy, user: str, password: str) -> None:
        self.proxy = proxy
        self.user, self.password = user, password
        login = base64.b64encode(f"{user}:{password}".encode())
        self.credentials = b"Proxy-Authorization: Basic " + login + b"\r\n"

    @property
    def count(self) -> PassageCount:
        """What went through so far."""
        return self.proxy.count(self.user)

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the proxy."""
        return await asyncio.open_unix_connection(self.proxy.path)

    async def ask(self, first: str, *fields: str, body: bytes = b"") -> bytes:
        """Send a request with the credentials; all that comes back."""
        lines = "".join(f"{line}\r\n" for line in (first, *fields)).encode()
        return await self.send(lines + self.credentials + b"\r\n" + body)

    async def get(self, url: str) -> bytes:
        """As a browser asks for a page by http://."""
        host = url.split("/")[2]
        return await self.ask(f"GET {url} HTTP/1.1", f"Host: {host}", "Proxy-Connection: keep-alive")

    async def refused(self, host: str, port: int = 80) -> str:
        """Why a host is not reached: a plain request gets no answer, and a tunnel the same reason."""
        before = self.count.refused
        assert await self.get(f"http://{host}:{port}/") == b""
        answer = await self.ask(f"CONNECT {host}:{port} HTTP/1.1")
        count = self.count
        assert count.refused == before + 2
        assert answer.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 502 ", b"HTTP/1.1 504 ")), answer
        assert answer.endswith(f"\r\n\r\n{count.last_refusal}\n".encode()), answer
        return count.last_refusal

    async def send(self, data: bytes) -> bytes:
        """Exactly these bytes; all that comes back, up to the last chunk of an answer in chunks."""
        reader, writer = await self.open()
        try:
            writer.write(data)
            got = b""
            async with asyncio.timeout(PATIENCE):
                while not got.endswith(b"\r\n0\r\n\r\n") and (piece := await reader.read(2**20)):
                    got += piece
            return got
        finally:
            writer.transport.abort()

    async def tunnel(self, endpoint: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A tunnel that is open."""
        reader, writer = await self.open()
        writer.write(f"CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n".encode() + self.credentials + b"\r\n")
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        return reader, writer


@asynccontextmanager
async def forward_proxy(
    *,
    allow_private: bool = True,
    names: Mapping[str, Sequence[Sequence[str]]] | None = None,
    pools: Sequence[ProxyPool] = (),
    http: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[ProxyStand]:
    """A proxy that listens. `http` are settings beside `allow_private`; `more` goes to the proxy itself."""
    settings = HttpSettings(allow_private=allow_private, **{"connect_seconds": PATIENCE, **(http or {})})
    own = ProxyPools(pools)
    proxy = BrowserProxy(
        settings,
        dns=GuardedDns(settings, resolve=Names(names or {}), own_port=more.pop("own_port", None)),
        budgets=more.pop("budgets", None) or Budgets(BudgetSettings(), OwnLedgers()),
        pools=own,
        sites=Sites(),
        **more,
    )
    await proxy.start()
    try:
        yield ProxyStand(proxy, own)
    finally:
        await proxy.stop()
        await proxy.stop()
