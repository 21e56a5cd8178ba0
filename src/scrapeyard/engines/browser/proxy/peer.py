"""One end of a connection: its bytes wait in a buffer while a head is read, then they flow into another peer."""

import asyncio
import re
from collections.abc import Callable
from typing import cast

_BUFFER = 64 * 1024
"""Bytes that wait before reading pauses."""
_WRITES = 256 * 1024
"""Bytes that may wait to be written before whoever sends them pauses."""


class PeerGone(Exception):
    """It closed before it had sent what was expected."""


class HeadTooLong(Exception):
    """It sent more than a head may have."""


class Peer(asyncio.Protocol):
    """A browser, a site, or a proxy on the way to it. Belongs to one event loop."""

    transport: asyncio.Transport

    def __init__(self, made: Callable[["Peer"], None] | None = None) -> None:
        """`made` is called when it is connected."""
        self._made = made
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self._source: Peer | None = None
        self._sink: Peer | None = None
        self._send: Callable[[bytes], None] | None = None
        self._finish: Callable[[], None] | None = None
        self._has_ended = False
        self._is_full = False
        self._said_all = False
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.on_bytes: Callable[[int, int], None] | None = None
        """Told of bytes received and sent, as they go."""
        self.touched = self._loop.time()
        """When bytes last came or went."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As asyncio calls it, like those that follow."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=_WRITES)
        if self._made is not None:
            self._made(self)

    def data_received(self, data: bytes) -> None:
        """Onwards, or into the buffer."""
        self.touched = self._loop.time()
        if self.on_bytes is not None:
            self.on_bytes(len(data), 0)
        if self._send is not None:
            self._send(data)
            return
        self._buffer += data
        if len(self._buffer) >= _BUFFER:
            self._pause()
        self._wake()

    def eof_received(self) -> bool:
        """The other direction may go on, where the transport knows half-closed connections."""
        self._has_ended = True
        self._wake()
        if self._finish is not None:
            self._finish()
        return self.transport.can_write_eof() and not self._said_all

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002  as asyncio has it
        """Nothing comes or goes any more. What was received before still flows on."""
        self._has_ended = True
        if not self.closed.done():
            self.closed.set_result(None)
        self._wake()
        if self._sink is not None:
            self._sink.close()

    def pause_writing(self) -> None:
        """Whoever writes here must stop reading."""
        self._is_full = True
        if self._source is not None:
            self._source._pause()

    def resume_writing(self) -> None:
        """And may go on."""
        self._is_full = False
        self.touched = self._loop.time()
        if self._source is not None:
            self._source._resume()

    async def read_head(self, end: re.Pattern[bytes], limit: int) -> bytes:
        """All up to a match of `end`, and with it. Raises PeerGone or HeadTooLong."""
        looked = 0
        while (found := end.search(self._buffer, looked)) is None:
            if len(self._buffer) > limit:
                raise HeadTooLong
            looked = max(0, len(self._buffer) - 3)
            await self._more()
        if found.end() > limit:
            raise HeadTooLong
        return self._take(found.end())

    async def read(self, size: int) -> bytes:
        """So many bytes. Raises PeerGone."""
        while len(self._buffer) < size:
            await self._more()
        return self._take(size)

    def write(self, data: bytes) -> None:
        """Soon. Bytes for one that is closed are dropped."""
        if not self.transport.is_closing() and not self._said_all:
            self.transport.write(data)
            if self.on_bytes is not None:
                self.on_bytes(0, len(data))

    def end(self) -> None:
        """Nothing more will be written."""
        if self.transport.is_closing() or self._said_all:
            return
        self._said_all = True
        if self._has_ended or not self.transport.can_write_eof():
            self.transport.close()
        else:
            self.transport.write_eof()

    def close(self) -> None:
        """When all that was written has gone. May be called twice."""
        if not self.transport.is_closing():
            self.transport.close()

    def abort(self) -> None:
        """At once. May be called twice."""
        self.transport.abort()

    def pipe(
        self,
        sink: "Peer",
        *,
        send: Callable[[bytes], None] | None = None,
        finish: Callable[[], None] | None = None,
    ) -> None:
        """From now on all that comes goes to the sink, and pauses while the sink is full.

        `send` writes each piece and `finish` tells of the end, where both are not what they seem; None: as they come.
        """
        sink._source = self
        self._sink = sink
        self._send = send or sink.write
        self._finish = finish or sink.end
        if self._buffer:
            self._send(self._take(len(self._buffer)))
        if self.closed.done():
            sink.close()
        elif self._has_ended:
            self._finish()
        elif not sink._is_full:
            self._resume()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _more(self) -> None:
        if self._has_ended:
            raise PeerGone
        self._waiter = self._loop.create_future()
        self._resume()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _pause(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def _resume(self) -> None:
        if not self.transport.is_closing() and not self._has_ended:
            self.transport.resume_reading()
