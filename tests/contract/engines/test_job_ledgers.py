"""What all runs of a job used up: the contract of those who add it up, on the real server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from scrapeyard.engines.budget.redis import RedisJobLedgers
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.ledger import JobLedgers, OwnLedgers, Spent
from scrapeyard.engines.port import Caller
from scrapeyard.errors import FetchFailed
from scrapeyard.model import BudgetLimits, new_id
from scrapeyard.settings import BudgetSettings
from tests.services.valkey import ValkeyServer


@pytest.fixture(params=["own", "redis"])
async def ledgers(request: pytest.FixtureRequest) -> AsyncIterator[JobLedgers]:
    if request.param == "own":
        yield OwnLedgers()
        return
    server: ValkeyServer = request.getfixturevalue("valkey_server")
    made = RedisJobLedgers(server.url, prefix=new_id("test"))
    await made.start()
    yield made
    await made.stop()


async def test_telling_it_twice_is_harmless(ledgers: JobLedgers) -> None:
    mine = Spent(requests=3, bytes=2**50, residential_bytes=7, seconds=1.5)
    assert await ledgers.share("job_1", mine) == mine
    assert await ledgers.share("job_1", mine) == mine
    assert await ledgers.share("job_2", Spent(requests=1)) == Spent(requests=1)


async def test_processes_add_up(valkey_server: ValkeyServer) -> None:
    prefix = new_id("test")
    many = [RedisJobLedgers(valkey_server.url, prefix=prefix) for _ in range(4)]
    for each in many:
        await each.start()
    for count, each in enumerate(many, 1):
        await each.share("job_1", Spent(requests=count, bytes=count, seconds=count / 4))
    assert await many[0].share("job_1", Spent(requests=1, bytes=1, seconds=0.25)) == Spent(
        requests=10, bytes=10, seconds=2.5
    )
    for each in many:
        await each.stop()
        await each.stop()


async def test_of_all_processes_together_no_more_begin_than_may(valkey_server: ValkeyServer) -> None:
    prefix = new_id("test")
    many = [RedisJobLedgers(valkey_server.url, prefix=prefix) for _ in range(4)]
    for each in many:
        await each.start()

    async def begin(ledgers: Budgets) -> bool:
        try:
            await ledgers.begin(Caller(job_id="job_1", job_budget=BudgetLimits(requests=50)))
        except FetchFailed:
            return False
        return True

    workers = [Budgets(BudgetSettings(), each) for each in many]
    begun = await asyncio.gather(*(begin(worker) for _ in range(40) for worker in workers))
    assert sum(begun) == 50
    for each in many:
        await each.stop()


async def test_an_outage_is_survived_and_made_good() -> None:
    with ValkeyServer() as server:
        one, two = RedisJobLedgers(server.url), RedisJobLedgers(server.url)
        await one.start()
        await two.start()
        await one.share("job_1", Spent(requests=5))
        assert await two.share("job_1", Spent(requests=2)) == Spent(requests=7)
        server.stop()
        assert await two.share("job_1", Spent(requests=4)) == Spent(requests=9)
        server.start()
        for each in (one, two):
            await each._link.ready(asyncio.get_running_loop().time() + 10)
        await one.share("job_1", Spent(requests=6))
        assert await two.share("job_1", Spent(requests=4)) == Spent(requests=10)
        await one.stop()
        await two.stop()
