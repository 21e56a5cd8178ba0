"""HTTP/1.1 on a connection, with bounds on the head of a request: its size, its headers, its time."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scrapeyard.errors import Refusal
from scrapeyard.gateway.http.problems import from_error

MAX_HEAD = 64 * 1024
"""Maximum bytes of a request line and its headers."""
MAX_HEADERS = 200
HEAD_SECONDS = 30.0
"""Seconds that a head may take, from the connection or from its first byte."""


class BoundedHttp(HttpToolsProtocol):
    """Answers 431 to a head that is too large, and closes a connection whose head does not end in time."""

    head_seconds = HEAD_SECONDS
    _head = 0
    _clock: asyncio.TimerHandle | None = None
    _refusal: Refusal | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A caller connects; its first head must follow."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came. A head that is still not complete counts with all its bytes."""
        super().data_received(data)
        if self._clock is not None and not self.transport.is_closing():
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._refusal = _too_large()
                self.send_400_response("")

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        if self._clock is None:
            self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header is complete."""
        self._size += len(name) + len(value)
        if self._size > MAX_HEAD or len(self.headers) >= MAX_HEADERS:
            self._refusal = _too_large()
            raise self._refusal
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is complete. HTTP/0.9, which has none, is not spoken."""
        self._end_head()
        if self.parser.get_http_version() not in ("1.0", "1.1"):
            raise ValueError("this HTTP version is not spoken")
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what could not be parsed, and close."""
        self._end_head()
        if self.transport.is_closing():
            return
        refusal, self._refusal = self._refusal or Refusal("bad_request", 400, msg), None
        answer = from_error(refusal)
        head = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in answer.raw_headers)
        line = f"HTTP/1.1 {answer.status_code} \r\n{head}connection: close\r\n\r\n"
        self.transport.write(line.encode() + bytes(answer.body))
        self.transport.close()

    def _await_head(self) -> None:
        self._head = self._size = 0
        self._clock = self.loop.call_later(self.head_seconds, self._late)

    def _end_head(self) -> None:
        clock, self._clock = self._clock, None
        if clock is not None:
            clock.cancel()

    def _late(self) -> None:
        self._clock = None
        if not self.transport.is_closing():
            self.transport.close()


def _too_large() -> Refusal:
    return Refusal("head_too_large", 431, f"more than {MAX_HEAD} bytes or {MAX_HEADERS} headers before the body")
