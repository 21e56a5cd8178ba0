"""The gate before the real client: what real answers and failures say of a site."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.politeness.memory import MemoryGate
from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.port import SiteState
from scrapeyard.engines.politeness.stage import RateLimited
from scrapeyard.engines.politeness.verdicts import of_failure
from scrapeyard.engines.port import FetchRequest
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import HttpSettings, SiteSettings
from scrapeyard.store.sql import SqlStore
from tests.leaks import PATIENCE
from tests.sites.site import Site, never, page, reset
from tests.stages import context_of

HTTP = HttpSettings(
    allow_private=True,
    profile="none",
    concurrency=1,
    connect_seconds=PATIENCE,
    read_seconds=PATIENCE,
    total_seconds=PATIENCE,
)


class Door:
    """A gate, and the client behind it."""

    def __init__(self, settings: SiteSettings) -> None:
        self.gate = MemoryGate(clock=lambda: 1000.0)  # nothing here takes time
        self.engine = WreqEngine(HTTP)
        policies = SitePolicies(settings, SqlStore("sqlite:///unused.db").sites, MemoryQueue())
        self._fetch = RateLimited(self.engine, self.gate, policies)

    async def get(self, url: str, seconds: float | None = None) -> int:
        return (await self._fetch(context_of(FetchRequest(url=url, timeout_seconds=seconds)))).status

    async def state(self) -> SiteState:
        return (await self.gate.states(["127.0.0.1"]))["127.0.0.1"]


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    door = Door(SiteSettings(breaker_failures=2, wait_seconds=1))
    yield door
    await door.engine.stop()


async def test_retry_after_closes_the_site(door: Door) -> None:
    async with Site(routes={"/": page(b"", status=429, retry_after="30")}) as site:
        assert await door.get(site.url()) == 429
        with pytest.raises(FetchFailed) as caught:
            await door.get(site.url())
        assert caught.value.reason is ExitReason.FETCH_RATE_LIMITED
        assert caught.value.details["retry_after"] == pytest.approx(30)
        assert len(site.asked) == 1


@pytest.mark.parametrize("kind", ["refused", "reset", "500"])
async def test_a_site_that_cannot_answer_is_left_alone(door: Door, kind: str) -> None:
    routes = {"/": reset if kind == "reset" else page(b"", status=500)}
    async with Site(routes=routes) as site:
        url = f"http://127.0.0.1:{_closed_port()}/" if kind == "refused" else site.url()
        for _ in range(2):
            with suppress(FetchFailed):
                assert await door.get(url) == 500
        with pytest.raises(FetchFailed) as caught:
            await door.get(url)
        assert caught.value.reason is ExitReason.FETCH_SITE_DOWN
    assert (await door.state()).breaker == ("open" if kind == "500" else "closed")


async def test_a_port_that_never_answered_is_left_alone_and_its_site_is_not(door: Door) -> None:
    async with Site(routes={"/": page(b"hi")}) as site:
        closed = f"http://127.0.0.1:{_closed_port()}/"
        for _ in range(40):
            with pytest.raises(FetchFailed) as caught:
                await door.get(closed)
        assert caught.value.reason is ExitReason.FETCH_SITE_DOWN
        assert await door.get(site.url()) == 200
    assert list(await door.gate.known()) == ["127.0.0.1"]


async def test_an_origin_that_answered_and_then_fails_closes_its_site(door: Door) -> None:
    async with Site(routes={"/": page(b"hi"), "/broken": reset}) as site:
        assert await door.get(site.url()) == 200
        for _ in range(2):
            with pytest.raises(FetchFailed):
                await door.get(site.url("/broken"))
    assert (await door.state()).breaker == "open"


async def test_waiting_for_our_own_connections_says_nothing_of_the_site(door: Door) -> None:
    async with Site(routes={"/": never, "/page": page(b"hi")}) as site:
        first = asyncio.create_task(door.get(site.url()))
        await site.until(lambda: bool(site.asked))
        with pytest.raises(FetchFailed) as caught:
            await door.get(site.url("/page"), 0.2)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        began = time.perf_counter()
        assert await door.get(site.url("/page")) == 200
        took = time.perf_counter() - began
    assert of_failure(FetchRequest(url="http://127.0.0.1/"), FetchPolicy(), caught.value).answer == "unknown"
    state = await door.state()
    assert (state.recent, state.success_share) == (1, 1.0)
    assert state.latency_seconds is not None
    assert state.latency_seconds <= took


def _closed_port() -> int:
    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        return int(plug.getsockname()[1])
