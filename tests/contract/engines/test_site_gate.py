"""What every gate of sites promises. A test skips only on a capability that the gate lacks."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from scrapeyard.engines.politeness import redis, redis_scripts
from scrapeyard.engines.politeness.memory import MAX_SITES, MemoryGate
from scrapeyard.engines.politeness.port import UNUSED, SiteGate, SiteLimits, SiteState, SiteVerdict, Ticket
from scrapeyard.engines.politeness.redis import RedisGate
from scrapeyard.redis.scripts import Script
from tests.leaks import PATIENCE
from tests.services.valkey import ValkeyServer

SITE = "shop.example"
OK = SiteVerdict(answer="ok", latency=0.01)
FAILED = SiteVerdict(answer="failed")
SLOW_DOWN = SiteVerdict(answer="throttled")
OPEN = SiteLimits()
PATIENT = 1_000_000.0
CLOCK = "test:clock"
"""The server's key that holds the time for the gate's scripts."""


class ClockedGate(RedisGate):
    """Knows how many of its questions are not answered yet."""

    asking = 0

    async def _ask_many(self, *question: Any) -> list[Any]:
        self.asking += 1
        try:
            return await super()._ask_many(*question)
        finally:
            self.asking -= 1

    @property
    def is_quiet(self) -> bool:
        """Whether all was told and answered."""
        return not self.asking and not self._reports


@dataclass(kw_only=True)
class Stand:
    """A kind of gate, and how time passes for it."""

    make: Callable[[], SiteGate]
    server: ValkeyServer | None = None
    """The capability `server`: several processes share it, and it can be stopped."""
    clock: list[float]
    """Moved by hand. The tests with an outage go by the real time."""
    made: list[SiteGate] = field(default_factory=list)

    async def start(self) -> SiteGate:
        gate = self.make()
        self.made.append(gate)
        await gate.start()
        return gate

    async def later(self, seconds: float) -> None:
        """Time passes, once all was told: an answer on its way would take the old time for the new one."""
        async with asyncio.timeout(PATIENCE):
            while not all(gate.is_quiet for gate in self.made if isinstance(gate, ClockedGate)):
                await asyncio.sleep(0.01)
        self.clock[0] += seconds
        self.show()

    def show(self) -> None:
        """Let the server see the clock."""
        if self.server is not None:
            self.server.command("SET", CLOCK, repr(self.clock[0]))

    def need_server(self) -> ValkeyServer:
        if self.server is None:
            pytest.skip("the capability `server` is not declared: this gate lives in one process")
        return self.server


def _memory(_request: pytest.FixtureRequest, _monkeypatch: pytest.MonkeyPatch) -> Stand:
    clock = [time.time()]
    return Stand(make=lambda: MemoryGate(lambda: clock[0]), clock=clock)


def _redis(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Stand:
    # on a busy machine a short patience ends now and then, and a gate that then keeps its own books is no failure
    clock = [time.time()]
    if "outage" in request.fixturenames:
        server = request.getfixturevalue("own_valkey")
        return Stand(make=lambda: RedisGate(server.url, patience_seconds=PATIENCE), server=server, clock=clock)
    server = request.getfixturevalue("valkey_server")
    server.command("FLUSHALL")
    for name in ("ENTER", "REPORT", "LOOK", "RESET"):
        real = getattr(redis_scripts, name).text
        clocked = real.replace("redis.call('TIME')", f"{{redis.call('GET', '{CLOCK}'), 0}}")
        assert real != clocked
        monkeypatch.setattr(redis, name, Script(clocked))
    monkeypatch.setattr(redis, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    stand = Stand(make=lambda: ClockedGate(server.url, patience_seconds=PATIENCE), server=server, clock=clock)
    stand.show()
    return stand


@pytest.fixture(params=[_memory, _redis], ids=["memory", "redis"])
async def stand(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    stand = request.param(request, monkeypatch)
    yield stand
    for gate in stand.made:
        await gate.stop()
        await gate.stop()


@pytest.fixture
async def gate(stand: Stand) -> SiteGate:
    return await stand.start()


@pytest.fixture
def outage() -> None:
    """Asks for a server of the test's own, and for the real time."""


async def goes(gate: SiteGate, limits: SiteLimits = OPEN, verdict: SiteVerdict = OK, site: str = SITE) -> Ticket:
    """One request that goes at once."""
    turn = await gate.acquire(site, limits, PATIENT)
    assert (turn.refused, turn.wait) == ("", 0.0)
    gate.release(turn, verdict)
    return turn


async def state(gate: SiteGate, site: str = SITE) -> SiteState:
    return (await gate.states([site]))[site]


async def until(gate: SiteGate, holds: Callable[[SiteState], bool]) -> SiteState:
    """The state, once what was told has arrived."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = (await gate.states([SITE])).get(SITE)
            if found is not None and holds(found):
                return found
            await asyncio.sleep(0.01)


async def test_a_site_without_limits_lets_everything_through(gate: SiteGate) -> None:
    for _ in range(50):
        await goes(gate)
    found = await until(gate, lambda found: found.recent == 40)
    assert (found.rate, found.waiting, found.in_flight, found.breaker) == (None, 0, None, "closed")
    assert found.success_share == 1.0
    assert found.latency_seconds == pytest.approx(0.01)
    assert abs(found.seen_at - time.time()) < 10 * PATIENCE


async def test_only_a_site_that_is_well_and_has_no_limits_gives_turns_at_once(gate: SiteGate) -> None:
    assert gate.at_once(SITE, OPEN) is None
    await goes(gate)
    assert gate.at_once(SITE, SiteLimits(rate=10)) is None
    first, second = gate.at_once(SITE, OPEN), gate.at_once(SITE, OPEN)
    assert first is not None
    assert second is not None
    gate.release(first, SiteVerdict(answer="throttled", retry_after=60))
    assert gate.at_once(SITE, OPEN) is None
    gate.release(second, OK)
    assert gate.at_once(SITE, OPEN) is None
    assert (await gate.acquire(SITE, OPEN, 1.0)).refused == "late"


async def test_places_come_up_at_the_rate(gate: SiteGate) -> None:
    limits = SiteLimits(rate=10)
    waits = [(await gate.acquire(SITE, limits, PATIENT)).wait for _ in range(5)]
    assert waits == pytest.approx([0, 0.1, 0.2, 0.3, 0.4], abs=0.05)
    assert (await state(gate)).rate == 10
    assert (await state(gate)).waiting in (3, 4)


async def test_other_sites_do_not_wait(gate: SiteGate) -> None:
    limits = SiteLimits(rate=1)
    for _ in range(3):
        await gate.acquire(SITE, limits, PATIENT)
    await goes(gate, limits, site="other.example")


async def test_a_burst_goes_at_once_after_a_rest(gate: SiteGate) -> None:
    limits = SiteLimits(rate=10, burst=4)
    waits = [(await gate.acquire(SITE, limits, PATIENT)).wait for _ in range(6)]
    assert waits == pytest.approx([0, 0, 0, 0, 0.1, 0.2], abs=0.05)


async def test_a_rest_saves_up_no_more_than_the_burst(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(rate=20, burst=2)
    await gate.acquire(SITE, limits, PATIENT)
    await stand.later(0.5)
    waits = [(await gate.acquire(SITE, limits, PATIENT)).wait for _ in range(4)]
    assert waits == pytest.approx([0, 0, 0.05, 0.1], abs=0.03)


async def test_a_place_comes_up_in_its_time(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(rate=10)
    turns = [await gate.acquire(SITE, limits, PATIENT) for _ in range(4)]
    await stand.later(turns[2].wait + 0.001)
    assert (await gate.recheck(turns[1], PATIENT)).wait == 0
    assert (await gate.recheck(turns[2], PATIENT)).wait == 0
    assert (await gate.recheck(turns[3], PATIENT)).wait == pytest.approx(0.1, abs=0.05)


async def test_asking_again_takes_no_second_place(gate: SiteGate) -> None:
    limits = SiteLimits(rate=2)
    turns = [await gate.acquire(SITE, limits, PATIENT) for _ in range(3)]
    for _ in range(4):
        turns = [await gate.recheck(turn, PATIENT) for turn in turns]
    assert [turn.wait for turn in turns] == pytest.approx([0, 0.5, 1], abs=0.2)
    assert (await gate.acquire(SITE, limits, PATIENT)).wait == pytest.approx(1.5, abs=0.2)


async def test_a_seat_that_was_waited_for_brings_one_place(gate: SiteGate) -> None:
    limits = SiteLimits(rate=2, concurrency=1)
    first, second = [await gate.acquire(SITE, limits, PATIENT) for _ in range(2)]
    gate.release(first, OK)
    await until(gate, lambda found: found.in_flight == 1 and found.waiting == 0)
    for _ in range(4):
        second = await gate.recheck(second, PATIENT)
        assert second.wait == pytest.approx(0.5, abs=0.2)
    gate.release(second, OK)
    await until(gate, lambda found: found.in_flight == 0)
    assert (await gate.acquire(SITE, limits, PATIENT)).wait == pytest.approx(1, abs=0.3)


async def test_one_who_asks_again_with_too_little_time_left_stands_in_line_no_more(gate: SiteGate) -> None:
    limits = SiteLimits(concurrency=1)
    first, second, third = [await gate.acquire(SITE, limits, PATIENT) for _ in range(3)]
    refused = await gate.recheck(second, 0.001)
    assert refused.refused == "late"
    assert refused.retry_after > 0.001
    await until(gate, lambda found: found.waiting == 1)
    gate.release(first, OK)
    await until(gate, lambda found: found.waiting == 0)
    assert (await gate.recheck(third, PATIENT)).wait == 0


async def test_a_turn_that_would_come_too_late_is_refused_and_takes_no_place(gate: SiteGate) -> None:
    limits = SiteLimits(rate=1)
    await gate.acquire(SITE, limits, PATIENT)
    for _ in range(3):
        turn = await gate.acquire(SITE, limits, 0.5)
        assert turn.refused == "late"
        assert turn.retry_after == pytest.approx(1, abs=0.2)
    assert (await gate.acquire(SITE, limits, PATIENT)).wait == pytest.approx(1, abs=0.2)


async def test_the_last_place_can_be_given_back(gate: SiteGate) -> None:
    limits = SiteLimits(rate=1)
    await gate.acquire(SITE, limits, PATIENT)
    turn = await gate.acquire(SITE, limits, PATIENT)
    assert (await state(gate)).waiting == 1
    gate.release(turn, UNUSED)
    found = await until(gate, lambda found: found.waiting == 0)
    assert found.requests_a_second == 0


async def test_those_behind_a_place_that_is_given_back_move_up(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(rate=2)
    turns = [await gate.acquire(SITE, limits, PATIENT) for _ in range(402)]
    assert turns[-1].wait == pytest.approx(200.5, abs=0.1)
    for turn in turns[1:-1]:
        gate.release(turn, UNUSED)
    await until(gate, lambda found: found.waiting == 1)
    await stand.later(0.0)
    assert (await gate.recheck(turns[-1], PATIENT)).wait == pytest.approx(0.5, abs=0.1)
    assert (await gate.acquire(SITE, limits, PATIENT)).wait == pytest.approx(1.0, abs=0.1)
    await stand.later(0.5)
    assert (await gate.recheck(turns[-1], PATIENT)).wait == pytest.approx(0.0, abs=0.01)


async def test_places_given_back_do_not_raise_the_rate(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(rate=1)
    turns = [await gate.acquire(SITE, limits, PATIENT) for _ in range(9)]
    for turn in turns[1::3]:
        gate.release(turn, UNUSED)
    waiting = [turn for place, turn in enumerate(turns) if place % 3 != 1]
    await until(gate, lambda found: found.waiting == len(waiting) - 1)
    for second in range(len(waiting)):
        up = [turn for turn in waiting if (await gate.recheck(turn, PATIENT)).wait < 0.01]
        assert len(up) == second + 1
        await stand.later(1.0)


async def test_a_new_limit_moves_those_who_wait(stand: Stand, gate: SiteGate) -> None:
    turns = [await gate.acquire(SITE, SiteLimits(rate=2), PATIENT) for _ in range(11)]
    assert turns[-1].wait == pytest.approx(5, abs=0.2)
    await gate.acquire(SITE, SiteLimits(rate=20), PATIENT)
    assert (await gate.recheck(turns[-1], PATIENT)).wait == pytest.approx(0.5, abs=0.1)
    await gate.acquire(SITE, SiteLimits(rate=0.5), PATIENT)
    assert (await gate.recheck(turns[-1], PATIENT)).wait == pytest.approx(20, abs=2)
    refused = await gate.recheck(turns[-1], 10)
    assert (refused.refused, refused.retry_after) == ("late", pytest.approx(20, abs=2))


async def test_a_slower_limit_does_not_shut_newcomers_out(gate: SiteGate) -> None:
    """Places that are now too far ahead for anyone to wait for do not stand in the way."""
    for _ in range(50):
        await gate.acquire(SITE, SiteLimits(rate=100), 1)
    turn = await gate.acquire(SITE, SiteLimits(rate=5), 1)
    assert (turn.refused, turn.retry_after) == ("late", pytest.approx(1.2, abs=0.2))


async def test_what_robots_txt_asks_for_holds_beside_the_rate(gate: SiteGate) -> None:
    await goes(gate, SiteLimits(rate=10, crawl_rate=2))
    turn = await gate.acquire(SITE, SiteLimits(rate=10), PATIENT)
    assert turn.wait == pytest.approx(0.5, abs=0.1)
    assert (await state(gate)).rate == 2


async def test_what_robots_txt_no_longer_asks_for_ends(stand: Stand, gate: SiteGate) -> None:
    gate.release(await gate.acquire(SITE, SiteLimits(crawl_rate=2), within=5.0), OK)
    turn = await gate.acquire(SITE, OPEN, within=5.0)
    assert turn.wait == pytest.approx(0.5, abs=0.1)
    gate.release(turn, OK)
    await stand.later(16)
    await goes(gate)
    assert (await state(gate)).rate is None


async def test_no_more_are_in_flight_than_allowed(gate: SiteGate) -> None:
    limits = SiteLimits(concurrency=2)
    first, second, third, fourth = [await gate.acquire(SITE, limits, PATIENT) for _ in range(4)]
    assert (first.wait, second.wait) == (0, 0)
    assert 0 < third.wait < fourth.wait
    found = await state(gate)
    assert (found.in_flight, found.waiting) == (2, 2)
    gate.release(first, OK)
    await until(gate, lambda found: found.waiting == 1)
    fourth = await gate.recheck(fourth, PATIENT)
    third = await gate.recheck(third, PATIENT)
    assert third.wait == 0, "the order is that of asking"
    assert fourth.wait > 0
    for turn in (second, third, fourth):
        gate.release(turn, OK)
    found = await until(gate, lambda found: found.in_flight == 0)
    assert found.waiting == 0


async def test_rate_and_concurrency_hold_together(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(rate=10, concurrency=1)
    first = await gate.acquire(SITE, limits, PATIENT)
    second = await gate.acquire(SITE, limits, PATIENT)
    assert second.wait > 0
    await stand.later(0.3)
    assert (await gate.recheck(second, PATIENT)).wait > 0, "no seat yet, though the time has come"
    gate.release(first, OK)
    await until(gate, lambda found: found.waiting == 0)
    assert (await gate.recheck(second, PATIENT)).wait == 0


async def test_one_who_waits_for_a_seat_may_give_up(gate: SiteGate) -> None:
    limits = SiteLimits(concurrency=1)
    first = await gate.acquire(SITE, limits, PATIENT)
    second = await gate.acquire(SITE, limits, PATIENT)
    gate.release(second, UNUSED)
    await until(gate, lambda found: found.waiting == 0)
    assert (await gate.acquire(SITE, limits, 0.001)).refused == "late"
    found = await state(gate)
    assert (found.in_flight, found.waiting) == (1, 0)
    gate.release(first, OK)


async def test_failures_in_a_row_open_the_breaker(gate: SiteGate) -> None:
    limits = SiteLimits(breaker_failures=3, breaker_seconds=60)
    for _ in range(2):
        await goes(gate, limits, FAILED)
    await goes(gate, limits, OK)
    for _ in range(2):
        await goes(gate, limits, FAILED)
    await until(gate, lambda found: found.recent == 5)
    assert (await state(gate)).breaker == "closed"
    await goes(gate, limits, FAILED)
    found = await until(gate, lambda found: found.breaker == "open")
    assert found.breaker_seconds == pytest.approx(60, abs=1)
    turn = await gate.acquire(SITE, limits, PATIENT)
    assert (turn.refused, turn.retry_after) == ("down", pytest.approx(60, abs=1))


async def test_a_share_of_failures_opens_the_breaker(gate: SiteGate) -> None:
    limits = SiteLimits(breaker_failures=100, breaker_ratio=0.5)
    for number in range(19):
        await goes(gate, limits, FAILED if number % 2 else OK)
    await until(gate, lambda found: found.recent == 19)
    assert (await state(gate)).breaker == "closed", "too few to tell"
    await goes(gate, limits, FAILED)
    assert (await until(gate, lambda found: found.recent == 20)).breaker == "open"


async def test_what_says_nothing_of_the_site_does_not_count(gate: SiteGate) -> None:
    limits = SiteLimits(breaker_failures=2)
    for _ in range(5):
        await goes(gate, limits, SiteVerdict(answer="unknown"))
    await goes(gate, limits, OK)
    found = await until(gate, lambda found: found.recent == 1)
    assert (found.breaker, found.success_share) == ("closed", 1.0)


async def test_those_who_wait_learn_that_the_site_is_down(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(rate=1, breaker_failures=1)
    going = await gate.acquire(SITE, limits, PATIENT)
    waiting = await gate.acquire(SITE, limits, PATIENT)
    gate.release(going, FAILED)
    await until(gate, lambda found: found.breaker == "open")
    async with asyncio.timeout(PATIENCE):
        while (waiting := await gate.recheck(waiting, PATIENT)).refused != "down":
            await asyncio.sleep(0.01)


async def test_after_the_pause_exactly_one_request_tries(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(breaker_failures=1, breaker_seconds=0.3)
    await goes(gate, limits, FAILED)
    await until(gate, lambda found: found.breaker == "open")
    await stand.later(0.35)
    assert (await state(gate)).breaker == "half_open"
    probe, other = await gate.acquire(SITE, limits, PATIENT), await gate.acquire(SITE, limits, PATIENT)
    assert (probe.refused, probe.is_probe, probe.wait) == ("", True, 0)
    assert other.refused == "down"
    gate.release(probe, FAILED)
    assert (await until(gate, lambda found: found.breaker == "open")).breaker_seconds > 0.1
    await stand.later(0.35)
    probe = await gate.acquire(SITE, limits, PATIENT)
    assert probe.is_probe
    gate.release(probe, OK)
    await until(gate, lambda found: found.breaker == "closed")
    await goes(gate, limits)


async def test_a_probe_that_waits_for_its_place_is_not_told_that_the_site_is_down(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(rate=1, breaker_failures=1, breaker_seconds=0.3)
    going, waiting = [await gate.acquire(SITE, limits, PATIENT) for _ in range(2)]
    gate.release(going, FAILED)
    await until(gate, lambda found: found.breaker == "open")
    await stand.later(0.35)
    probe = await gate.acquire(SITE, limits, PATIENT)
    assert probe.is_probe
    assert probe.wait > 0.5
    asked = await gate.recheck(probe, PATIENT)
    assert (asked.refused, asked.is_probe) == ("", True)
    assert 0 < asked.wait <= probe.wait
    assert (await gate.recheck(waiting, PATIENT)).refused == "down"


async def test_a_probe_that_tells_nothing_leaves_it_to_another(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(breaker_failures=1, breaker_seconds=0.1)
    await goes(gate, limits, FAILED)
    await until(gate, lambda found: found.breaker == "open")
    await stand.later(0.15)
    gate.release(await gate.acquire(SITE, limits, PATIENT), UNUSED)
    async with asyncio.timeout(PATIENCE):
        while not (await gate.acquire(SITE, limits, PATIENT)).is_probe:
            await asyncio.sleep(0.01)


async def test_a_429_halves_the_rate_once_for_all_that_were_under_way(gate: SiteGate) -> None:
    limits = SiteLimits(rate=100)
    for _ in range(4):
        gate.release(await gate.acquire(SITE, limits, PATIENT), SLOW_DOWN)
    found = await until(gate, lambda found: found.slowed)
    assert found.rate == 50
    assert found.breaker == "closed"


async def test_a_site_without_a_rate_is_slowed_from_what_was_observed(gate: SiteGate) -> None:
    for _ in range(40):
        await goes(gate)
    await until(gate, lambda found: found.recent == 40)
    gate.release(await gate.acquire(SITE, OPEN, PATIENT), SLOW_DOWN)
    found = await until(gate, lambda found: found.slowed)
    assert found.rate is not None
    assert 4 < found.rate < 25, "about half of 41 in the first second"
    turns = [await gate.acquire(SITE, OPEN, PATIENT) for _ in range(3)]
    assert turns[-1].wait > 0.03


async def test_it_is_slowed_down_no_further_than_the_floor_and_comes_back(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(rate=4, min_rate=1.5)
    gate.release(await gate.acquire(SITE, limits, PATIENT), SLOW_DOWN)
    assert (await until(gate, lambda found: found.slowed)).rate == 2
    await stand.later(1.05)
    gate.release(await gate.acquire(SITE, limits, PATIENT), SLOW_DOWN)
    await until(gate, lambda found: found.rate == 1.5)
    slower = SiteLimits(rate=1.9, min_rate=1.5)
    await stand.later(2.05)
    grown = [1.5]
    while (await state(gate)).slowed and len(grown) < 30:
        gate.release(await gate.acquire(SITE, slower, PATIENT), OK)
        await stand.later(1.05)
        grown.append((await state(gate)).rate or 0)
    assert grown == sorted(grown)
    assert grown[-1] == 1.9
    assert len(set(grown)) > 3, "gradually"


async def test_retry_after_closes_the_site(stand: Stand, gate: SiteGate) -> None:
    limits = SiteLimits(rate=100)
    gate.release(await gate.acquire(SITE, limits, PATIENT), SiteVerdict(answer="throttled", retry_after=0.5))
    found = await until(gate, lambda found: found.closed_seconds > 0)
    assert found.closed_seconds == pytest.approx(0.5, abs=0.2)
    turn = await gate.acquire(SITE, limits, PATIENT)
    assert turn.wait == pytest.approx(0.5, abs=0.2)
    assert (await gate.acquire(SITE, limits, 0.1)).refused == "late"
    await stand.later(turn.wait + 0.01)
    assert (await gate.recheck(turn, PATIENT)).wait == 0


async def test_a_site_is_closed_for_an_hour_at_most(gate: SiteGate) -> None:
    gate.release(await gate.acquire(SITE, OPEN, PATIENT), SiteVerdict(answer="throttled", retry_after=1e9))
    found = await until(gate, lambda found: found.closed_seconds > 0)
    assert found.closed_seconds == pytest.approx(3600, abs=2)


async def test_without_adapting_nothing_slows_it_down(gate: SiteGate) -> None:
    limits = SiteLimits(rate=100, adapt=False)
    gate.release(await gate.acquire(SITE, limits, PATIENT), SiteVerdict(answer="throttled", retry_after=10))
    found = await until(gate, lambda found: found.recent == 1)
    assert (found.rate, found.slowed, found.closed_seconds) == (100, False, 0)


async def test_rising_latency_slows_it_down(gate: SiteGate) -> None:
    limits = SiteLimits(rate=1000, burst=100)
    for _ in range(40):
        gate.release(await gate.acquire(SITE, limits, PATIENT), SiteVerdict(answer="ok", latency=0.1))
    await until(gate, lambda found: found.recent == 40)
    assert not (await state(gate)).slowed
    for _ in range(20):
        gate.release(await gate.acquire(SITE, limits, PATIENT), SiteVerdict(answer="ok", latency=2.0))
    found = await until(gate, lambda found: found.slowed)
    assert found.rate == 500


async def test_a_reset_makes_it_well_and_keeps_the_limits(gate: SiteGate) -> None:
    limits = SiteLimits(rate=100, breaker_failures=1)
    gate.release(
        await gate.acquire(SITE, limits, PATIENT), SiteVerdict(answer="throttled", retry_after=60, failed=True)
    )
    await until(gate, lambda found: found.breaker == "open" and found.slowed)
    await gate.reset(SITE)
    found = await state(gate)
    assert (found.breaker, found.slowed, found.closed_seconds, found.rate) == ("closed", False, 0, 100)
    turn = await gate.acquire(SITE, limits, PATIENT)
    assert (turn.refused, turn.wait) == ("", pytest.approx(0, abs=0.02))
    await gate.reset("never.seen.example")


async def test_sites_that_were_asked_are_known(gate: SiteGate) -> None:
    assert list(await gate.known()) == []
    assert await gate.states([SITE]) == {}
    await goes(gate, site="a.example")
    await goes(gate, SiteLimits(rate=5), site="b.example")
    async with asyncio.timeout(PATIENCE):
        while sorted(await gate.known()) != ["a.example", "b.example"]:
            await asyncio.sleep(0.01)
    assert set(await gate.states(["a.example", "b.example", "c.example"])) == {"a.example", "b.example"}


async def test_processes_share_one_line(stand: Stand) -> None:
    stand.need_server()
    limits = SiteLimits(rate=10)
    gates = [await stand.start() for _ in range(3)]
    waits = [(await gate.acquire(SITE, limits, PATIENT)).wait for _ in range(2) for gate in gates]
    assert waits == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5], abs=0.06)


async def test_processes_share_breaker_and_slow_down(stand: Stand) -> None:
    stand.need_server()
    one, other = await stand.start(), await stand.start()
    limits = SiteLimits(breaker_failures=2, breaker_seconds=60)
    await goes(one, limits)
    await goes(other, limits)
    for _ in range(2):
        await goes(one, limits, FAILED)
    await until(one, lambda found: found.breaker == "open")
    async with asyncio.timeout(PATIENCE):
        while (turn := await other.acquire(SITE, limits, PATIENT)).refused != "down":
            other.release(turn, UNUSED)
            await asyncio.sleep(0.01)


async def test_one_probe_across_processes(stand: Stand) -> None:
    stand.need_server()
    gates = [await stand.start() for _ in range(4)]
    limits = SiteLimits(breaker_failures=1, breaker_seconds=0.1)
    await goes(gates[0], limits, FAILED)
    await until(gates[0], lambda found: found.breaker == "open")
    await stand.later(0.15)
    turns = await asyncio.gather(*(gate.acquire(SITE, limits, PATIENT) for gate in gates for _ in range(5)))
    assert sum(turn.is_probe for turn in turns) == 1
    assert sum(turn.refused == "down" for turn in turns) == 19


async def test_what_a_dead_process_held_is_free_again(stand: Stand) -> None:
    stand.need_server()
    dying, living = await stand.start(), await stand.start()
    limits = SiteLimits(concurrency=1)
    held = await dying.acquire(SITE, limits, PATIENT)
    assert held.wait == 0
    turn = await living.acquire(SITE, limits, PATIENT)
    assert turn.wait > 0
    dying._background.cancel()  # nobody renews what it held
    assert lease(stand, held) - stand.clock[0] == pytest.approx(10, abs=0.01)
    await stand.later(9.9)
    turn = await living.recheck(turn, PATIENT)
    assert turn.wait > 0
    await stand.later(0.2)
    assert (await living.recheck(turn, PATIENT)).wait == 0


async def test_places_of_a_dead_process_are_given_back(stand: Stand) -> None:
    stand.need_server()
    dying, living = await stand.start(), await stand.start()
    limits = SiteLimits(rate=1)
    for _ in range(100):
        await dying.acquire(SITE, limits, PATIENT)
    turn = await living.acquire(SITE, limits, PATIENT)
    assert turn.wait == pytest.approx(100, abs=0.1)
    await stand.later(0.0)
    await dying._background.stop()
    first = lease(stand, turn)
    await stand.later(9.0)
    async with asyncio.timeout(PATIENCE):
        while lease(stand, turn) <= first:
            await asyncio.sleep(0.02)
    await stand.later(1.1)
    assert (await living.acquire(SITE, limits, PATIENT)).wait == pytest.approx(1, abs=0.2)
    assert (await living.recheck(turn, PATIENT)).wait == pytest.approx(0, abs=0.1)


async def test_one_who_leaves_while_the_server_is_asked_keeps_nothing(stand: Stand) -> None:
    stand.need_server()
    gate = await stand.start()
    limits = SiteLimits(rate=1, concurrency=50)
    await gate.acquire(SITE, limits, PATIENT)
    asking = [asyncio.create_task(gate.acquire(SITE, limits, PATIENT)) for _ in range(20)]
    await asyncio.sleep(0)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert all(task.cancelled() for task in asking)
    await until(gate, lambda found: found.waiting == 0 and found.in_flight == 1)


def lease(stand: Stand, turn: Ticket) -> float:
    """When the server forgets a turn that is not renewed."""
    reply = stand.need_server().command("ZSCORE", f"scrapeyard:site:{SITE}:alive", turn.ticket)
    return float(reply.split(b"\r\n")[1])


async def test_what_a_living_process_holds_is_renewed(stand: Stand) -> None:
    stand.need_server()
    gate = await stand.start()
    turn = await gate.acquire(SITE, SiteLimits(concurrency=1), PATIENT)
    assert not turn.is_local
    first = lease(stand, turn)
    await stand.later(redis.RENEW_SECONDS)
    async with asyncio.timeout(PATIENCE):
        while lease(stand, turn) <= first:
            await asyncio.sleep(0.02)


async def test_keys_expire_by_themselves(stand: Stand, gate: SiteGate) -> None:
    server = stand.need_server()
    await gate.acquire(SITE, SiteLimits(rate=1, concurrency=1), PATIENT)
    gate.release(await gate.acquire("other.example", OPEN, PATIENT), OK)
    await until(gate, lambda found: found.in_flight == 1)
    async with asyncio.timeout(PATIENCE):
        while server.command("TTL", "scrapeyard:sites") == b":-1\r\n":
            await asyncio.sleep(0.02)
    names = [word for word in server.command("KEYS", "scrapeyard:*").decode().split("\r\n") if word[:1] == "s"]
    assert len(names) >= 4
    for name in names:
        assert int(server.command("TTL", name)[1:]) > 0, name


async def test_a_healthy_site_without_limits_costs_no_round_trip(stand: Stand, gate: SiteGate) -> None:
    server = stand.need_server()
    await goes(gate)

    def commands() -> int:
        return int(server.command("INFO", "stats").decode().split("total_commands_processed:")[1].split("\r\n")[0])

    before = commands()
    for _ in range(500):
        await goes(gate)
    assert commands() - before < 20
    assert (await until(gate, lambda found: found.recent == 40)).success_share == 1


async def test_while_the_server_is_away_each_process_keeps_to_the_limits(stand: Stand, outage: None) -> None:
    server = stand.need_server()
    limits = SiteLimits(rate=0.001, breaker_failures=2)
    gate = await stand.start()
    turn = await gate.acquire(SITE, limits, PATIENT)
    waiting = await gate.acquire(SITE, limits, PATIENT)
    assert waiting.wait == pytest.approx(1000, abs=500)
    with capture_logs() as logs:
        server.stop()
        async with asyncio.timeout(PATIENCE):
            while not (local := await gate.acquire(SITE, limits, PATIENT)).is_local:
                gate.release(local, UNUSED)
        gate.release(turn, FAILED)
        waits = [local.wait, *[(await gate.acquire(SITE, limits, PATIENT)).wait for _ in range(3)]]
        assert waits == pytest.approx([0, 1000, 2000, 3000], abs=500)
        async with asyncio.timeout(PATIENCE):
            while not (waiting := await gate.recheck(waiting, PATIENT)).is_local and waiting.wait:
                await asyncio.sleep(0.01)
        assert (await gate.states([SITE]))[SITE].rate == 0.001
        assert list(await gate.known()) == [SITE]
        gate.release(local, FAILED)
        server.start()
        async with asyncio.timeout(PATIENCE):
            while (turn := await gate.acquire(SITE, limits, PATIENT)).is_local:
                gate.release(turn, UNUSED)
                await asyncio.sleep(0.02)
    assert [entry["event"] for entry in logs] == ["sites.away", "sites.back"]


async def test_a_gate_starts_without_its_server(stand: Stand, outage: None) -> None:
    server = stand.need_server()
    server.stop()
    stand.make = lambda: RedisGate(server.url)  # with the usual patience, which ends here
    async with asyncio.timeout(PATIENCE):
        gate = await stand.start()
        await goes(gate, SiteLimits(rate=5))


async def test_a_process_remembers_a_bounded_number_of_sites() -> None:
    gate = MemoryGate()
    for number in range(MAX_SITES + 10):
        await goes(gate, site=f"s{number}.example")
    known = await gate.known()
    assert len(known) == MAX_SITES
    assert "s0.example" not in known
