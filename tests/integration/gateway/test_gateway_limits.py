"""Limits of clients: what a caller is told, and two gateways that count together."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
import redis.asyncio
from starlette.types import Scope

from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.port import Caller
from scrapeyard.gateway.limits import redis as on_redis
from scrapeyard.gateway.limits.memory import MemoryLimiter
from scrapeyard.gateway.limits.port import ClientLimiter, Entry
from scrapeyard.gateway.limits.redis import RedisLimiter
from scrapeyard.model import new_id
from scrapeyard.model.identity import ClientBudget, ClientLimits, Identity, Role
from scrapeyard.settings import GatewaySettings, Settings
from tests.integration.gateway_stand import open_stand
from tests.leaks import PATIENCE
from tests.services.valkey import ValkeyServer


class One:
    """Credentials for the test: everybody is the same client."""

    in_use = True

    def __init__(self, limits: ClientLimits) -> None:
        self.limits = limits
        self.name = "shop"

    async def identify(self, token: str | None, scope: Scope) -> Identity | None:
        return Identity(client=self.name, role=Role.OPERATOR, limits=self.limits)


async def test_a_caller_learns_its_rate_and_when_to_come_back(tmp_path: Path) -> None:
    now = 0.0
    async with open_stand(tmp_path) as stand:
        stand.gateway.authenticator._kinds = (One(ClientLimits(rate=2.5)),)
        stand.services.limiter._clock = lambda: now  # type: ignore[attr-defined]
        answers = [await stand.client.get("/api/jobs") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert [answer.headers["ratelimit"] for answer in answers] == [
            '"calls";r=1;t=1',
            '"calls";r=0;t=1',
            '"calls";r=0;t=1',
        ]
        refused = answers[2]
        assert refused.headers["ratelimit-policy"] == '"calls";q=2;w=1'
        assert (refused.headers["retry-after"], refused.json()["code"]) == ("1", "too_many_calls")
        assert refused.json()["retryable"] is True
        now = 0.4
        assert (await stand.client.get("/api/jobs")).status_code == 200
        assert (await stand.client.get("/api/jobs")).status_code == 429
        assert (await stand.client.get("/api/live")).status_code == 200, "open routes know no client"


async def test_a_body_over_the_clients_own_limit_is_refused(tmp_path: Path) -> None:
    body = {"scraper": "shop/product", "input": {"url": "http://a.example/" + "x" * 2000}, "wait": 0}

    async def piecewise() -> AsyncIterator[bytes]:
        yield json.dumps(body).encode()

    async with open_stand(tmp_path) as stand:
        stand.gateway.authenticator._kinds = (One(ClientLimits(body_mb=0.001)),)
        declared = await stand.client.post("/api/scrape", json=body)
        assert (declared.status_code, declared.json()["code"]) == (413, "too_large")
        headers = {"Content-Type": "application/json"}
        undeclared = await stand.client.post("/api/scrape", content=piecewise(), headers=headers)
        assert undeclared.status_code == 413
        upload = await stand.client.post(
            "/api/jobs?scraper=shop/product", content=b"url\n" * 500, headers={"Content-Type": "text/csv"}
        )
        assert upload.status_code == 413
        stand.gateway.authenticator._kinds = (One(ClientLimits(body_mb=1000)),)
        assert (await stand.client.post("/api/scrape", json=body)).status_code == 202


async def test_a_client_cannot_fill_the_queue_alone(tmp_path: Path) -> None:
    body = {"scraper": "shop/product", "input": {"url": "http://a.example/"}, "wait": 0}
    settings = Settings(gateway=GatewaySettings(max_backlog=8))
    async with open_stand(tmp_path, settings) as stand:
        one = One(ClientLimits())
        stand.gateway.authenticator._kinds = (one,)
        answers = [await stand.client.post("/api/scrape", json=body) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [202] * 4 + [429]
        assert (answers[4].json()["code"], answers[4].headers["retry-after"]) == ("queue_share", "2")
        one.name = "other"
        assert (await stand.client.post("/api/scrape", json=body)).status_code == 202
        one.name = "shop"
        run = (await stand.take()).run_id
        assert run in {answer.json()["id"] for answer in answers[:4]}
        await stand.store.runs.cancel(run, 0.0)
        stand.gateway.scraping._shares._sampled_at = float("-inf")
        assert (await stand.client.post("/api/scrape", json=body)).status_code == 202


async def test_a_slow_rate_names_a_longer_window(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        stand.gateway.authenticator._kinds = (One(ClientLimits(rate=0.1)),)
        assert (await stand.client.get("/api/jobs")).headers["ratelimit-policy"] == '"calls";q=1;w=10'
        assert (await stand.client.get("/api/jobs")).headers["retry-after"] == "10"


async def test_calls_that_run_are_counted_until_they_are_answered(tmp_path: Path) -> None:
    body = {"scraper": "shop/product", "input": {"url": "http://a.example"}}
    async with open_stand(tmp_path) as stand:
        stand.gateway.authenticator._kinds = (One(ClientLimits(concurrency=2)),)

        def call() -> asyncio.Task[httpx.Response]:
            return asyncio.create_task(stand.client.post("/api/scrape", json=body))

        first, second = call(), call()
        taken = [await stand.take(), await stand.take()]
        third = await stand.client.post("/api/scrape", json=body)
        assert (third.status_code, third.json()["code"], third.headers["retry-after"]) == (429, "too_many_calls", "1")
        assert "ratelimit" not in third.headers
        assert (await stand.client.get("/api/jobs")).status_code == 200, "reading holds no place"
        await stand.finish(taken[0])
        await asyncio.wait((first, second), return_when=asyncio.FIRST_COMPLETED)
        fourth = call()
        await stand.finish(await stand.take())
        await stand.finish(taken[1])
        assert {(await task).status_code for task in (first, second, fourth)} == {200}


async def test_runs_that_nobody_waits_for_count_until_they_end(tmp_path: Path) -> None:
    body = {"scraper": "shop/product", "input": {"url": "http://a.example"}, "wait": 0}
    async with open_stand(tmp_path) as stand:
        await stand.gateway.start()
        stand.gateway.authenticator._kinds = (One(ClientLimits(concurrency=2)),)

        async def status(**more: object) -> int:
            return (await stand.client.post("/api/scrape", json=body | more)).status_code

        assert [await status(), await status(wait=0.01), await status()] == [202, 202, 429], "also a wait in vain"
        assert await status(wait=5) == 429
        await stand.finish(await stand.take())

        async def again() -> bool:
            return await status() == 202

        async with asyncio.timeout(PATIENCE):
            while not await again():
                await asyncio.sleep(0.05)
        assert await status() == 429, "one place came free, and is taken"
        for _ in range(2):
            await stand.finish(await stand.take())


async def test_a_client_whose_budget_is_used_up_starts_nothing_more(tmp_path: Path) -> None:
    body = {"scraper": "shop/product", "input": {"url": "http://a.example"}, "wait": 0}
    budget = ClientLimits(daily=ClientBudget(runs=2), monthly=ClientBudget(mb=1.0))
    async with open_stand(tmp_path) as stand:
        now = 1_800_000_000.0  # 2027-01-15 08:00 UTC
        stand.gateway.client_budgets.clock = lambda: now
        stand.gateway.authenticator._kinds = (One(budget),)
        meters = Meters(stand.store.meters, clock=lambda: now)
        caller = Caller(client="shop")
        meters.count_run(caller)
        await meters.flush()
        assert (await stand.client.post("/api/scrape", json=body)).status_code == 202
        meters.count_run(caller)
        await meters.flush()
        now += 6
        refused = await stand.client.post("/api/scrape", json=body)
        assert (refused.status_code, refused.json()["code"]) == (429, "client_budget")
        assert refused.json()["detail"].startswith("the client's runs of this day are used up (2)")
        assert int(refused.headers["retry-after"]) == 16 * 3600 - 6
        crawl = await stand.client.post("/api/crawl", json={"url": "http://a.example"})
        assert (crawl.status_code, crawl.json()["code"]) == (429, "client_budget")
        assert (await stand.client.get("/api/jobs")).status_code == 200, "reading costs nothing"
        now += 86_400
        assert (await stand.client.post("/api/scrape", json=body)).status_code == 202
        meters.count(site="a.example", caller=caller, size=2**20)
        await meters.flush()
        now += 6
        month = await stand.client.post("/api/scrape", json=body)
        assert "megabytes of this month are used up (1); more from 2027-02-01" in month.json()["detail"]


@pytest.fixture
async def two(valkey_server: ValkeyServer) -> AsyncIterator[tuple[ClientLimiter, ClientLimiter]]:
    """The limiters of two gateways."""
    async with AsyncExitStack() as stack:
        prefix = new_id("test")
        both = RedisLimiter(valkey_server.url, prefix=prefix), RedisLimiter(valkey_server.url, prefix=prefix)
        for limiter in both:
            await limiter.start()
            stack.push_async_callback(limiter.stop)
        yield both


async def seconds(server: ValkeyServer) -> float:
    async with redis.asyncio.from_url(server.url) as client:
        whole, micro = await client.time()
    return float(whole) + micro / 1e6


async def test_two_gateways_hold_one_rate_within_five_percent(
    two: tuple[ClientLimiter, ClientLimiter], valkey_server: ValkeyServer
) -> None:
    """Counted against the server's own clock: however slow this machine is, so many calls fit into that time."""
    limits, admitted = ClientLimits(rate=200.0), 0
    began = await seconds(valkey_server)

    async def call_until(limiter: ClientLimiter) -> None:
        nonlocal admitted
        while admitted < 1000:
            entry = await limiter.enter("shop", limits, holds=False)
            admitted += not entry.refused
            if entry.refused:
                await asyncio.sleep(entry.retry_after / 4)

    await asyncio.gather(*(call_until(limiter) for limiter in two for _ in range(8)))
    took = await seconds(valkey_server) - began
    assert admitted <= 1.05 * (200 + 200.0 * took), "no more than the burst and the rate"
    other = await two[0].enter("other", limits, holds=False)
    assert not other.refused, "each client has its own"


async def test_places_are_shared_and_those_of_a_killed_gateway_come_free(
    two: tuple[ClientLimiter, ClientLimiter], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ClientLimits(concurrency=10)
    entries = [await two[number % 2].enter("shop", limits, holds=True) for number in range(14)]
    assert [bool(entry.refused) for entry in entries] == [False] * 10 + [True] * 4
    two[0].leave(entries[0])

    async def enter() -> Entry:
        return await two[1].enter("shop", limits, holds=True)

    while (await enter()).refused:
        await asyncio.sleep(0)
    assert (await enter()).refused == "concurrency", "one place came free, and was taken again"
    monkeypatch.setattr(on_redis, "LEASE_SECONDS", 0.001)
    assert not (await two[0].enter("lost", ClientLimits(concurrency=1), holds=True)).refused
    while (await two[1].enter("lost", ClientLimits(concurrency=1), holds=True)).refused:
        await asyncio.sleep(0)


async def test_without_the_server_each_gateway_counts_alone() -> None:
    limiter = RedisLimiter("redis://127.0.0.1:1")
    limiter._alone = MemoryLimiter(lambda: 0.0)
    await limiter.start()
    try:
        entries = [await limiter.enter("shop", ClientLimits(rate=2.0, concurrency=5), holds=True) for _ in range(3)]
        assert [entry.refused for entry in entries] == ["", "", "rate"]
        for entry in entries:
            limiter.leave(entry)
    finally:
        await limiter.stop()
