"""A listener on loopback that carries each connection to the Unix socket of the worker's forward proxy.

Chromium can only be given a proxy at an address and a port. In its network namespace this is the only one there is.
"""

import asyncio
from contextlib import suppress

_PIECE = 64 * 1024
_MAX_CONNECTIONS = 1024
_LAST_WORDS_SECONDS = 10


class Forwarder:
    """Bytes both ways, with bounded buffers; one side may close before the other."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._server: asyncio.Server | None = None
        self._open = 0
        self.port = 0

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_PIECE)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= _MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._open += 1
        try:
            with suppress(OSError, asyncio.CancelledError):  # cancelled only when the process ends
                far_reader, far_writer = await asyncio.open_unix_connection(self._path, limit=_PIECE)
                try:
                    await _carry_both(reader, writer, far_reader, far_writer)
                finally:
                    far_writer.transport.abort()
        finally:
            self._open -= 1
            writer.transport.abort()


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
