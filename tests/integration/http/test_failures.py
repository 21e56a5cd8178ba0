"""Sites that misbehave."""

import asyncio
import gzip
import socket
from collections.abc import Callable
from typing import Any

import pytest

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.model import ExitReason, FetchPolicy
from tests.integration.http.stand import MB, failure_of, reason_of
from tests.leaks import PATIENCE
from tests.sites.site import Asked, Site, never, page, raw, redirect, reset, stalled


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        (raw(b"", close=True), ExitReason.FETCH_PROTOCOL),
        (raw(b"\0\1\2 what\r\n\r\n", close=True), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort", close=True), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!"), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n"), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello"), ExitReason.FETCH_PROTOCOL),
        (raw(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 2 * MB + b"\r\n\r\n"), ExitReason.FETCH_PROTOCOL),
        (reset, ExitReason.FETCH_PROTOCOL),
        (page(b"not gzip", content_encoding="gzip"), ExitReason.FETCH_DECODE),
        (page(gzip.compress(b"x" * 100)[:-6], content_encoding="gzip"), ExitReason.FETCH_DECODE),
        (page(b"\xff" * 40, content_encoding="br"), ExitReason.FETCH_DECODE),
        (page(b"\xff" * 40, content_encoding="zstd"), ExitReason.FETCH_DECODE),
        (page(gzip.compress(b"x"), content_encoding="gzip, gzip, gzip, gzip"), ExitReason.FETCH_DECODE),
    ],
)
async def test_broken_answers(site: Site, fetch: Any, route: Any, reason: ExitReason) -> None:
    site.routes["/"] = route
    assert await reason_of(fetch(site.url("/"))) is reason
    site.routes["/good"] = page(b"good")
    assert (await fetch(site.url("/good"))).body == b"good"


@pytest.mark.parametrize("length", [b"", b"-1", b"42s", b'"5"', b"5, 6"])
async def test_an_odd_length_is_named(site: Site, fetch: Any, length: bytes) -> None:
    site.routes["/"] = raw(b"HTTP/1.1 200 OK\r\ncontent-length: " + length + b"\r\n\r\nhello", close=True)
    failure = await failure_of(fetch(site.url("/")))
    assert failure.reason is ExitReason.FETCH_PROTOCOL
    assert "Content-Length" in failure.message


async def test_a_connection_closed_while_idle_is_made_anew(site: Site, fetch: Any) -> None:
    used: set[asyncio.StreamReader] = set()
    closed = 0

    async def once(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal closed
        again = asked.reader in used
        used.add(asked.reader)
        closed += again
        await (raw(b"", close=True) if again else page(b"ok"))(asked, writer)

    site.routes["/"] = once
    for _ in range(50):
        assert (await fetch(site.url("/"))).body == b"ok"
        if closed:
            break
    assert closed


async def test_a_post_is_never_sent_twice(site: Site, fetch: Any) -> None:
    site.routes["/"] = raw(b"", close=True)
    assert await reason_of(fetch(site.url("/"), method="POST", body=b"pay")) is ExitReason.FETCH_PROTOCOL
    assert len(site.asked) == 1


async def test_nobody_listens(fetch: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        assert await reason_of(fetch(url)) is ExitReason.FETCH_CONNECT


async def test_a_name_nobody_knows(fetch: Any) -> None:
    assert await reason_of(fetch("http://nowhere.invalid/")) is ExitReason.FETCH_DNS


@pytest.mark.parametrize("route", [never, stalled])
async def test_a_slow_site_times_out_and_its_connection_goes(site: Site, fetch: Any, route: Any) -> None:
    site.routes["/"] = route
    assert await reason_of(fetch(site.url("/"), timeout_seconds=0.2)) is ExitReason.FETCH_TIMEOUT
    async with asyncio.timeout(PATIENCE):
        await site.until(lambda: site.open == 0)


async def test_the_time_limit_covers_all_redirects(site: Site, fetch: Any) -> None:
    site.routes |= {"/0": redirect("/1"), "/1": never}
    assert await reason_of(fetch(site.url("/0"), timeout_seconds=0.2)) is ExitReason.FETCH_TIMEOUT


async def test_a_server_that_never_shakes_hands_times_out(make_engine: Callable[..., WreqEngine]) -> None:
    engine = make_engine(connect_seconds=0.2)
    async with Site(silent=True) as site:
        url = f"https://shop.test:{site.port}/"
        assert await reason_of(engine.fetch(FetchRequest(url=url), Caller())) is ExitReason.FETCH_TIMEOUT


async def test_a_policy_shortens_the_time_to_connect(make_engine: Callable[..., WreqEngine]) -> None:
    engine = make_engine()
    async with Site(silent=True) as site:
        request = FetchRequest(url=f"https://shop.test:{site.port}/")
        failure = await failure_of(engine.fetch(request, Caller(policy=FetchPolicy(connect_seconds=0.2))))
    assert (failure.reason, failure.details["stage"]) == (ExitReason.FETCH_TIMEOUT, "connecting")
    assert "policy.connect_seconds" in failure.message


async def test_a_policy_shortens_a_request(site: Site, make_engine: Callable[..., WreqEngine]) -> None:
    engine, caller = make_engine(), Caller(policy=FetchPolicy(request_seconds=0.2))
    site.routes["/"] = never
    failure = await failure_of(engine.fetch(FetchRequest(url=site.url("/")), caller))
    assert failure.reason is ExitReason.FETCH_TIMEOUT
    assert "policy.request_seconds" in failure.message


async def test_a_cancelled_fetch_lets_its_connection_go(site: Site, fetch: Any) -> None:
    site.routes["/"] = never
    task = asyncio.create_task(fetch(site.url("/")))
    await site.until(lambda: len(site.asked) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(PATIENCE):
        await site.until(lambda: site.open == 0)


@pytest.mark.parametrize("route", [never, stalled])
async def test_a_silence_is_bounded_by_itself(site: Site, make_engine: Callable[..., WreqEngine], route: Any) -> None:
    site.routes["/"] = route
    failure = await failure_of(make_engine(read_seconds=0.2).fetch(FetchRequest(url=site.url("/")), Caller()))
    assert failure.reason is ExitReason.FETCH_TIMEOUT
    assert "http.read_seconds" in failure.message
