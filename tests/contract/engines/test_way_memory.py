"""What every memory of ways must do, in one process and on Redis."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from scrapeyard.engines.escalation.memory import MemoryWays
from scrapeyard.engines.escalation.port import MOST_COUNTED, NOTHING, WayMemory
from scrapeyard.engines.escalation.redis import RedisWays
from scrapeyard.engines.port import Proxy
from scrapeyard.engines.solver.port import Clearance, ClearedCookie
from scrapeyard.gateway import sites
from tests.leaks import PATIENCE
from tests.services.valkey import ValkeyServer

REMEMBER = 2400.0
HALF_LIFE = 100.0


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def running(*memories: WayMemory) -> AsyncIterator[None]:
    """Started, and stopped whatever happens; twice."""
    async with AsyncExitStack() as stack:
        for memory in memories:
            await memory.start()
            stack.push_async_callback(memory.stop)
            stack.push_async_callback(memory.stop)
        yield


@pytest.fixture(params=["memory", "redis"])
async def memory(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[WayMemory]:
    made: WayMemory
    if request.param == "memory":
        made = MemoryWays(REMEMBER, clock=clock)
    else:
        made = RedisWays(request.getfixturevalue("redis_url"), REMEMBER, clock=clock)
    async with running(made):
        yield made


def clearance(clock: Clock, name: str = "one", *, host: str = "www.shop.test", seconds: float = 600) -> Clearance:
    proxy = Proxy(url="http://user:secret@10.0.0.1:8080", name="homes/1", proxy_class="residential")
    cookies = (ClearedCookie(name="cf_clearance", value=name, domain=".shop.test"),)
    return Clearance(
        id=name,
        host=host,
        cookies=cookies,
        user_agent="Mozilla/5.0",
        profile="chrome131",
        proxy=proxy,
        got_at=clock.now,
        expires_at=clock.now + seconds,
    )


async def test_nothing_is_known_at_first(memory: WayMemory) -> None:
    assert await memory.recall("shop.test", fresh=True) == NOTHING


async def test_tries_are_counted_by_way(memory: WayMemory, clock: Clock) -> None:
    await memory.note("shop.test", "chrome", ok=False, cost=1.0)
    await memory.note("shop.test", "firefox", ok=True, cost=1.1)
    await memory.note("shop.test", "firefox", ok=True, cost=1.1)
    await memory.note("other.test", "chrome", ok=True, cost=1.0)
    known = {each.way: each for each in (await memory.recall("shop.test", fresh=True)).tried}
    assert known.keys() == {"chrome", "firefox"}
    found = (known["firefox"].successes, known["firefox"].failures, known["firefox"].cost)
    assert found == pytest.approx((2, 0, 1.1), rel=0.001)
    assert (known["firefox"].works, known["chrome"].fails) == (True, True)
    assert known["chrome"].used_at == pytest.approx(clock.now, abs=0.01)


async def test_counts_fade_and_are_bounded(memory: WayMemory, clock: Clock) -> None:
    for _ in range(30):
        await memory.note("shop.test", "chrome", ok=False, cost=1.0)
    (tried,) = (await memory.recall("shop.test", fresh=True)).tried
    assert tried.failures == pytest.approx(MOST_COUNTED, rel=0.001)
    clock.now += HALF_LIFE
    (tried,) = (await memory.recall("shop.test", fresh=True)).tried
    assert tried.failures == pytest.approx(MOST_COUNTED / 2, rel=0.01)
    await memory.note("shop.test", "chrome", ok=True, cost=1.0)
    (tried,) = (await memory.recall("shop.test", fresh=True)).tried
    assert (tried.successes, tried.failures) == pytest.approx((1, MOST_COUNTED / 2), rel=0.01)
    clock.now += 5 * HALF_LIFE
    (tried,) = (await memory.recall("shop.test", fresh=True)).tried
    assert not tried.is_known


async def test_a_site_has_a_bounded_number_of_ways(memory: WayMemory) -> None:
    for number in range(80):
        await memory.note("shop.test", f"way {number}", ok=True, cost=1.0)
    assert len((await memory.recall("shop.test", fresh=True)).tried) <= 50


async def test_a_clearance_is_kept_whole(memory: WayMemory, clock: Clock) -> None:
    await memory.keep("shop.test", clearance(clock))
    known = await memory.recall("shop.test", fresh=True)
    assert known.clearances == (clearance(clock),)
    assert "secret" not in str(sites.ways(known))
    assert "secret" not in repr(known)


async def test_a_newer_clearance_takes_the_place_of_the_older(memory: WayMemory, clock: Clock) -> None:
    old, new, other = clearance(clock, "old"), clearance(clock, "new"), clearance(clock, "other", host="img.shop.test")
    for each in (old, new, other):
        await memory.keep("shop.test", each)
    assert {each.id for each in (await memory.recall("shop.test", fresh=True)).clearances} == {"new", "other"}
    await memory.drop("shop.test", old)  # is gone already, and must not take the new one along
    assert {each.id for each in (await memory.recall("shop.test", fresh=True)).clearances} == {"new", "other"}
    await memory.drop("shop.test", new)
    assert {each.id for each in (await memory.recall("shop.test", fresh=True)).clearances} == {"other"}


async def test_a_clearance_ends(memory: WayMemory, clock: Clock) -> None:
    await memory.keep("shop.test", clearance(clock, seconds=60))
    await memory.keep("shop.test", clearance(clock, "gone", seconds=-1))
    clock.now += 61
    assert (await memory.recall("shop.test", fresh=True)).clearances == ()


async def test_one_claims_and_others_wait(memory: WayMemory) -> None:
    assert await memory.claim("shop.test", "", 3600)
    assert not await memory.claim("shop.test", "", 3600)
    assert await memory.claim("shop.test", "homes", 3600)
    await memory.release("shop.test", "")
    assert await memory.claim("shop.test", "", 3600)


async def test_a_site_is_forgotten(memory: WayMemory, clock: Clock) -> None:
    await memory.note("shop.test", "chrome", ok=True, cost=1.0)
    await memory.keep("shop.test", clearance(clock))
    await memory.forget("shop.test")
    assert await memory.recall("shop.test", fresh=True) == NOTHING


async def test_workers_share_what_they_learn(redis_url: str, clock: Clock) -> None:
    one, two = (RedisWays(redis_url, REMEMBER, clock=clock) for _ in range(2))
    async with running(one, two):
        for _ in range(2):
            await one.note("shop.test", "chrome", ok=False, cost=1.0)
            await two.note("shop.test", "chrome", ok=False, cost=1.0)
        await one.keep("shop.test", clearance(clock))
        assert await one.claim("shop.test", "", 3600)
        assert not await two.claim("shop.test", "", 3600)
        await two.release("shop.test", "")  # not its own
        assert not await two.claim("shop.test", "", 3600)
        await one.stop()  # writes what is left
        known = await two.recall("shop.test", fresh=True)
        assert known.tried[0].failures == pytest.approx(4, rel=0.001)
        assert known.clearances == (clearance(clock),)


async def test_notes_arrive_by_themselves(redis_url: str) -> None:
    one, two = (RedisWays(redis_url, REMEMBER) for _ in range(2))
    async with running(one, two), asyncio.timeout(PATIENCE):
        await one.note("shop.test", "chrome", ok=True, cost=1.0)
        while not (await two.recall("shop.test", fresh=True)).tried:
            await asyncio.sleep(0.01)


async def test_while_redis_is_away_a_process_remembers_for_itself(own_valkey: ValkeyServer, clock: Clock) -> None:
    memory = RedisWays(own_valkey.url, REMEMBER, clock=clock)
    async with running(memory):
        await memory.note("shop.test", "chrome", ok=False, cost=1.0)
        own_valkey.stop()
        await memory.keep("shop.test", clearance(clock))
        assert (await memory.recall("shop.test")).clearances == (clearance(clock),)
        assert (await memory.recall("shop.test", fresh=True)).tried[0].failures == 1
        assert await memory.claim("shop.test", "", 3600)
        await memory.release("shop.test", "")


async def test_a_clearance_that_cannot_be_read_is_left_out(valkey_server: ValkeyServer, redis_url: str) -> None:
    memory = RedisWays(redis_url, REMEMBER)
    async with running(memory):
        valkey_server.command("HSET", "scrapeyard:clearances:shop.test", "x y", "id {broken")
        valkey_server.command("HSET", "scrapeyard:ways:shop.test", "chrome", "not numbers")
        assert await memory.recall("shop.test", fresh=True) == NOTHING
