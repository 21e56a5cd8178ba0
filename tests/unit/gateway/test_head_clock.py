"""The clock of a request's head, moved by hand."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from scrapeyard.gateway.http.protocol import HEAD_SECONDS, BoundedHttp

LINE = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"


class HandClock:
    """The running loop, but its timers ring only when told."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timers: list[tuple[float, Callable[[], object], asyncio.TimerHandle]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_later(self, seconds: float, call: Callable[[], object]) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(0, call, (), self._loop)
        self._timers.append((seconds, call, handle))
        return handle

    def ring(self) -> None:
        timers, self._timers = self._timers, []
        for seconds, call, handle in timers:
            if seconds == HEAD_SECONDS and not handle.cancelled():
                call()


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.said = b""
        self.closed = False

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_named: None

    def write(self, data: bytes) -> None:
        self.said += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": body})


def connected() -> tuple[BoundedHttp, Wire, HandClock]:
    config = Config(_app, log_config=None)
    config.load()
    clock, wire = HandClock(), Wire()
    http = BoundedHttp(config, ServerState(), {}, cast("asyncio.AbstractEventLoop", clock))
    http.connection_made(cast("asyncio.Transport", wire))
    return http, wire, clock


async def _served(http: BoundedHttp) -> None:
    await asyncio.gather(*http.tasks)


async def test_a_caller_that_says_nothing_is_cut_off() -> None:
    _http, wire, clock = connected()
    clock.ring()
    assert wire.closed


async def test_a_head_that_does_not_end_is_cut_off() -> None:
    http, wire, clock = connected()
    http.data_received(LINE)
    clock.ring()
    assert wire.closed


async def test_a_slow_body_is_not_a_slow_head() -> None:
    http, wire, clock = connected()
    http.data_received(LINE + b"\r\n")
    clock.ring()
    assert not wire.closed
    http.data_received(b"body")
    await _served(http)
    assert wire.said.endswith(b"body")
    assert not wire.closed


async def test_the_next_head_on_a_kept_connection_has_its_own_time() -> None:
    http, wire, clock = connected()
    http.data_received(LINE + b"\r\nbody")
    await _served(http)
    clock.ring()
    assert not wire.closed
    http.data_received(LINE)
    clock.ring()
    assert wire.closed
