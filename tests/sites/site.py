"""A small web server for tests that answers with exact bytes, right or wrong, and remembers what it was asked."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.leaks import PATIENCE

CRLF = b"\r\n"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    reader: asyncio.StreamReader = field(repr=False)

    async def gone(self) -> None:
        """Returns when the client has closed its side."""
        while await self.reader.read(65536):
            pass


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass(kw_only=True)
class Site:
    """Serves on a free loopback port until closed. A path without a route answers `otherwise`."""

    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    silent: bool = False
    """Takes connections and says nothing, not even in a TLS handshake."""
    routes: dict[str, Answer] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    otherwise: Answer | None = None
    """None: 404."""

    def __post_init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()
        self.open = 0

    async def __aenter__(self) -> "Site":
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=self.tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, path: str = "/", host: str | None = None) -> str:
        """A path of this site, under any name that resolves to it."""
        return f"{'https' if self.tls else 'http'}://{host or self.host}:{self.port}{path}"

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition about connections or requests holds; it is looked at on every change."""
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(condition)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        await self._note(opened=1)
        try:
            while self.silent and await reader.read(65536):
                pass
            while not writer.is_closing():
                await self._answer(await _read(reader), writer)
        except (asyncio.CancelledError, asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.transport.abort()
            self._tasks.discard(task)
            await self._note(opened=-1)

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.asked.append(asked)
        await self._note(opened=0)
        otherwise = self.otherwise or page(b"not here", status=404)
        await self.routes.get(asked.path.partition("?")[0], otherwise)(asked, writer)
        await writer.drain()

    async def _note(self, opened: int) -> None:
        self.open += opened
        async with self._changed:
            self._changed.notify_all()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = await reader.readuntil(CRLF * 2)
    first, *rest = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest) if name}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method=method, path=path, headers=headers, body=body, reader=reader)


def raw(data: bytes, *, close: bool = False) -> Answer:
    """Exactly these bytes, then perhaps the end of the connection."""

    async def answer(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if close:
            writer.close()

    return answer


def page(body: bytes, *, status: int = 200, **headers: str) -> Answer:
    """A whole answer; `content_type="text/html"` names a header. The body is left out of answers to HEAD."""
    named = {"content_length": str(len(body)), **headers}
    lines = [f"HTTP/1.1 {status} Reason", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
    head = "\r\n".join(lines).encode("latin-1") + CRLF * 2

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head if asked.method == "HEAD" else head + body)

    return answer


def redirect(location: str, status: int = 302, **headers: str) -> Answer:
    """An answer that sends the client elsewhere."""
    return page(b"", status=status, location=location, **headers)


def chunks(piece: bytes, count: int, **headers: str) -> Answer:
    """A chunked body of unknown length."""
    lines = [
        "HTTP/1.1 200 OK",
        "transfer-encoding: chunked",
        *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items()),
    ]

    async def answer(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join(lines).encode() + CRLF * 2)
        for _ in range(count):
            writer.write(b"%x\r\n" % len(piece) + piece + CRLF)
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    return answer


async def never(asked: Asked, _writer: asyncio.StreamWriter) -> None:
    """No answer at all, for as long as the client stays."""
    await asked.gone()


async def stalled(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Half a body, and then nothing for as long as the client stays."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
    await asked.gone()


async def reset(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Half a body, and then the connection is torn down."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
    await writer.drain()
    writer.transport.abort()
