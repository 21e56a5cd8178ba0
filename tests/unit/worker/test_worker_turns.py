"""Work that never waits leaves the event loop to others."""

import asyncio

import pytest

from scrapeyard.worker.batches import batches as module
from scrapeyard.worker.batches.batches import SLICE_SECONDS, LoopFairness
from tests.leaks import PATIENCE


class Clock:
    """Moved by hand: work takes as long as the test says, however busy the machine is."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now

    def spin(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


async def test_others_have_a_turn_after_each_slice(clock: Clock) -> None:
    turns, rounds, stop = LoopFairness(), 0, False

    async def other() -> None:
        nonlocal rounds
        while not stop:
            rounds += 1
            await asyncio.sleep(0)

    async def busy() -> None:
        for _ in range(100):
            await turns.maybe_yield()
            clock.spin(SLICE_SECONDS / 5)

    watching = asyncio.create_task(other())
    await asyncio.gather(*(busy() for _ in range(4)))
    stop = True
    await watching
    assert rounds >= 4 * 100 / 5 / 2


async def test_one_at_a_time_goes_on_between_two_rounds_of_the_loop(clock: Clock) -> None:
    turns, log = LoopFairness(), []

    async def busy(name: int) -> None:
        for _ in range(20):
            await turns.maybe_yield()
            log.append(name)
            clock.spin(SLICE_SECONDS)

    async def tick() -> None:
        while True:
            log.append(-1)
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    await asyncio.gather(*(busy(name) for name in range(8)))
    ticking.cancel()
    longest = max(len(run) for run in "".join("t" if name < 0 else "b" for name in log).split("t"))
    assert longest <= 2


async def test_who_waits_is_served_in_order(clock: Clock) -> None:
    turns, log = LoopFairness(), []

    async def busy(name: int) -> None:
        for _ in range(3):
            await turns.maybe_yield()
            log.append(name)
            clock.spin(SLICE_SECONDS)

    await asyncio.gather(*(busy(name) for name in range(5)))
    assert log == [0, 1, 2, 3, 4] * 3


async def test_one_who_gives_up_does_not_hold_the_others() -> None:
    turns = LoopFairness()
    waiting = [asyncio.create_task(turns.maybe_yield()) for _ in range(5)]
    await asyncio.sleep(0)
    for task in waiting[:3]:
        task.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*waiting, return_exceptions=True)
    await turns.maybe_yield()
