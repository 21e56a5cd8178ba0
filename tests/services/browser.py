"""A real browser for tests: where it is, a host process of it, and a plain proxy in place of the worker's."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrapeyard.engines.browser.found import find_browser, find_light
from scrapeyard.engines.browser.host import ProcessHost, start_host
from scrapeyard.engines.browser.operations import Operation
from scrapeyard.engines.browser.port import USUAL_HOST, ContextEnd, ContextOptions, Done, HostContext, HostKind
from scrapeyard.errors import FetchFailed
from scrapeyard.settings import BrowserSettings


def found_browser(driver: str = "patchright") -> str:
    """Path of the browser, empty for the driver's own. Skips the test where there is none."""
    found = find_browser(BrowserSettings(driver=driver))  # type: ignore[arg-type]
    if found.missing:
        pytest.skip(f"it needs a browser: {found.missing}")
    return found.executable


class UnixProxy:
    """An HTTP proxy on a Unix socket that lets everything with credentials pass, and remembers who asked for what."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.asked: list[tuple[str, str, str]] = []
        """User, method and target."""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> "UnixProxy":
        """Listen."""
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def stop(self) -> None:
        """Hang up on everyone."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._pass(reader, writer)
        except (EOFError, OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            if given := [line for line in head if line.lower().startswith("proxy-authorization:")]:
                user = b64decode(given[0].split()[-1]).decode().partition(":")[0]
                break
            refusal = b"HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"
            writer.write(refusal)
        method, target, _ = head[0].split(" ")
        self.asked.append((user, method, target))
        host, _, path = target.removeprefix("http://").partition("/")
        name, _, port = host.partition(":")
        try:
            far_reader, far_writer = await asyncio.open_connection(name, int(port or 80))
        except OSError:
            writer.write(b"HTTP/1.1 502 X\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 X\r\n\r\n")
        else:
            kept = [line for line in head[1:] if line and not line.lower().startswith(("proxy-", "connection:"))]
            lines = [f"{method} /{path} HTTP/1.1", *kept, "Connection: close", "", ""]
            far_writer.write("\r\n".join(lines).encode("latin-1"))
        try:
            await asyncio.gather(_carry(reader, far_writer), _carry(far_reader, writer))
        finally:
            far_writer.transport.abort()


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while piece := await source.read(65536):
        target.write(piece)
        await target.drain()
    target.write_eof()


class OpenPage:
    """A context of a host, for a test."""

    def __init__(self, host: ProcessHost, number: int) -> None:
        self.host = host
        self.number = number
        self.end: ContextEnd | None = None

    async def do(self, operation: Operation, raw: bytes = b"") -> Any:
        """What it returned as JSON."""
        return msgspec.json.decode((await self.done(operation, raw)).value)

    async def done(self, operation: Operation, raw: bytes = b"") -> Done:
        """With the raw part."""
        return await self.host.perform(self.number, operation, raw)

    async def fails(self, operation: Operation) -> FetchFailed:
        """How it failed."""
        with pytest.raises(FetchFailed) as caught:
            await self.done(operation)
        return caught.value

    async def close(self) -> ContextEnd:
        """What is left."""
        self.end = await self.host.close(self.number)
        return self.end


_numbers = count(1)


@asynccontextmanager
async def opened(
    host: ProcessHost, *, max_bytes: int = 20 * 2**20, state: Any = None, **options: Any
) -> AsyncIterator[OpenPage]:
    """A new context, closed at the end."""
    page = OpenPage(host, next(_numbers))
    options.setdefault("timeout", 60)
    told = HostContext(
        options=ContextOptions(**options),
        user=f"u{page.number}",
        password="secret",
        state=state or {},
        max_bytes=max_bytes,
    )
    await host.open(page.number, told)
    try:
        yield page
    finally:
        if page.end is None and host.is_alive:
            await page.close()


@asynccontextmanager
async def hosted(
    folder: Path, kind: HostKind = USUAL_HOST, **settings: Any
) -> AsyncIterator[tuple[ProcessHost, UnixProxy]]:
    """A host with a browser, and the proxy that is all it can reach."""
    if not kind.light:
        found_browser(settings.get("driver", "patchright"))
    elif words := find_light(BrowserSettings(**settings)).missing:
        pytest.skip(f"it needs the light browser: {words}")
    folder.mkdir(parents=True, exist_ok=True)
    proxy = await UnixProxy(folder / "proxy").start()
    try:
        host = await start_host(BrowserSettings(**settings), proxy.path, folder / "hosts", kind)
        try:
            yield host, proxy
        finally:
            await host.end()
    finally:
        await proxy.stop()
