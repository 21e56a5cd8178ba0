"""Contexts of a real browser that reach only this machine: every host name leads to 127.0.0.1."""

import asyncio
import functools
import itertools
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapeyard.builtin.services import Services
from scrapeyard.engines.browser.host import start_host
from scrapeyard.engines.browser.port import BrowserHost, ContextOptions, HostContext, Perform
from scrapeyard.model import RunProgress
from scrapeyard.settings import BrowserSettings
from tests.services.browser import found_browser

_ONE_ANSWER = re.compile(rb"\r\n(?:proxy-)?connection: [^\r]*", re.IGNORECASE)


class LocalBrowser:
    """One browser for many contexts. Keeps what built-ins keep."""

    def __init__(self, host: BrowserHost) -> None:
        self.files: dict[str, bytes] = {}
        self.told: list[str] = []
        self.opened = 0
        self._host = host
        self._numbers = itertools.count(1)

    @asynccontextmanager
    async def open(self, options: ContextOptions) -> AsyncIterator[Perform]:
        """As `Services.open_browser`."""
        self.opened += 1
        number = next(self._numbers)
        await self._host.open(number, HostContext(options=options, user="me", password="secret"))
        try:
            yield functools.partial(self._host.perform, number)
        finally:
            await self._host.close(number)

    async def keep(self, name: str, _content_type: str, data: bytes) -> None:
        """As `Services.artifact`."""
        self.files[name] = data

    def say(self, progress: RunProgress) -> None:
        """As `Services.progress`."""
        self.told.append(progress.message)

    def services(self, fetch: Any = None) -> Services:
        """For a built-in."""
        return Services(fetch=fetch, open_browser=self.open, artifact=self.keep, progress=self.say)


@asynccontextmanager
async def local_browser() -> AsyncIterator[LocalBrowser]:
    """A browser, or a skipped test."""
    executable = found_browser()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = await asyncio.start_unix_server(_pass_on, folder / "proxy")
        try:
            host = await start_host(BrowserSettings(executable=executable), str(folder / "proxy"), folder / "browsers")
            try:
                yield LocalBrowser(host)
            finally:
                await host.end()
        finally:
            server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request for a whole URL, or one tunnel."""
    with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, rest = head.split(b" ", 2)
        place = urlsplit(target.decode() if b"://" in target else f"//{target.decode()}")
        site_reader, site_writer = await asyncio.open_connection("127.0.0.1", place.port or 80)
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            path = (place.path or "/") + (f"?{place.query}" if place.query else "")
            version, fields = rest.split(b"\r\n", 1)
            fields = _ONE_ANSWER.sub(b"", b"\r\n" + fields).removeprefix(b"\r\n")
            site_writer.write(b"%s %s %s\r\nConnection: close\r\n%s" % (method, path.encode(), version, fields))
        there = asyncio.ensure_future(_copy(reader, site_writer))
        await _copy(site_reader, writer)
        there.cancel()
        with suppress(asyncio.CancelledError):
            await there
        await _close(site_writer)
    await _close(writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        writer.close()
        await writer.wait_closed()
