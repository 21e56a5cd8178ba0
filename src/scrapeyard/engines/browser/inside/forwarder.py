"""A listener on loopback that carries each connection to the Unix socket of the worker's forward proxy.

Chromium can only be given a proxy at an address and a port. In its network namespace these are the only ones there are:
one for the browser itself, and one for each context, which adds the context's credentials. Chromium could send them
itself, but then the driver stops every request on its way, switches the cache off, and shows the credentials to sites
that ask for a login.
"""

import asyncio
from base64 import b64encode
from contextlib import suppress

_PIECE = 64 * 1024
_MAX_CONNECTIONS = 1024
_HEAD_SECONDS = 10
_LAST_WORDS_SECONDS = 10


class Forwarder:
    """Bytes both ways, with bounded buffers; one side may close before the other."""

    def __init__(self, path: str, user: str = "", password: str = "") -> None:
        """With a user, each connection is theirs at the proxy."""
        self._path = path
        self._login = b"Basic " + b64encode(f"{user}:{password}".encode()) if user else b""
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None] | None] = set()
        """The tasks of connections. Nothing else holds one whose browser has hung up before the proxy has."""
        self.port = 0

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_PIECE)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Listen no longer; connections end with the browser's context. May be called twice."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= _MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        self._open.add(task)
        try:
            with suppress(OSError, EOFError, ValueError, asyncio.CancelledError):  # cancelled when the process ends
                far_reader, far_writer = await asyncio.open_unix_connection(self._path, limit=_PIECE)
                try:
                    if self._login:
                        await self._log_in(reader, far_writer)
                    await _carry_both(reader, writer, far_reader, far_writer)
                finally:
                    far_writer.transport.abort()
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _log_in(self, reader: asyncio.StreamReader, far_writer: asyncio.StreamWriter) -> None:
        """Add the credentials behind the first line: the proxy takes one request of each connection."""
        async with asyncio.timeout(_HEAD_SECONDS):
            line = await reader.readline()
        far_writer.write(line + b"Proxy-Authorization: " + self._login + b"\r\n")


async def _carry_both(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    """Until the proxy has said all; the browser then has a moment to finish."""
    asking = asyncio.ensure_future(_carry(reader, far_writer))
    try:
        await _carry(far_reader, writer)
        await asyncio.wait((asking,), timeout=_LAST_WORDS_SECONDS)
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while piece := await source.read(_PIECE):
        target.write(piece)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()
