"""Waiting for a site's turn: no slot is held while every fetch of a run waits, and one is before any goes on."""

import asyncio
from types import SimpleNamespace

import pytest

from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.worker.attempts import waiting
from scrapeyard.worker.attempts.slots import ParkedRuns, SlotLease, Slots, share_out
from scrapeyard.worker.attempts.waiting import SiteWait


class Sleepers:
    """Sleeps that end when the test says."""

    def __init__(self) -> None:
        self.asleep: list[asyncio.Future[None]] = []
        self._changed = asyncio.Condition()

    async def sleep(self, _seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asleep.append(future)
        async with self._changed:
            self._changed.notify_all()
        await future

    async def until(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.asleep) >= count)

    def wake(self, number: int) -> None:
        self.asleep[number].set_result(None)


@pytest.fixture
async def sleepers(monkeypatch: pytest.MonkeyPatch) -> Sleepers:
    sleepers = Sleepers()
    known = {"Lock": asyncio.Lock, "CancelledError": asyncio.CancelledError, "sleep": sleepers.sleep}
    monkeypatch.setattr(waiting, "asyncio", SimpleNamespace(**known))
    return sleepers


@pytest.fixture
def share() -> Slots:
    (share,) = share_out(1, 0)
    share.hold("run")
    return share


def pausing_of(share: Slots, most: int = 10) -> SiteWait:
    return SiteWait(SlotLease("run", share, ParkedRuns(most)))


async def fetch(run: SiteWait, seconds: float) -> None:
    async with run.fetching():
        await run.pause(seconds)


async def test_a_waiting_run_holds_no_slot_and_has_one_again_when_it_goes_on(sleepers: Sleepers, share: Slots) -> None:
    run = pausing_of(share)
    task = asyncio.create_task(fetch(run, 5))
    await sleepers.until(1)
    assert share.held == 0
    sleepers.wake(0)
    await task
    assert share.held == 1


async def test_a_run_comes_back_only_when_a_slot_is_free(sleepers: Sleepers, share: Slots) -> None:
    task = asyncio.create_task(fetch(pausing_of(share), 5))
    await sleepers.until(1)
    share.hold("other")
    sleepers.wake(0)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    share.free("other")
    await task
    assert share.held == 1


async def test_the_slot_stays_while_one_fetch_goes_on(sleepers: Sleepers, share: Slots) -> None:
    run = pausing_of(share)
    async with run.fetching():
        waits = asyncio.create_task(fetch(run, 5))
        await sleepers.until(1)
        assert share.held == 1
    assert share.held == 0
    sleepers.wake(0)
    await waits
    assert share.held == 1


async def test_a_new_fetch_takes_the_slot_again(sleepers: Sleepers, share: Slots) -> None:
    run = pausing_of(share)
    waits = asyncio.create_task(fetch(run, 5))
    await sleepers.until(1)
    async with run.fetching():
        assert share.held == 1
    assert share.held == 0
    sleepers.wake(0)
    await waits


async def test_several_that_wait_wake_one_after_another(sleepers: Sleepers, share: Slots) -> None:
    run = pausing_of(share)
    tasks = [asyncio.create_task(fetch(run, 5)) for _ in range(3)]
    await sleepers.until(3)
    assert share.held == 0
    for number in (1, 0, 2):
        sleepers.wake(number)
        await tasks[number]
        assert share.held == (1 if number == 2 else 0)


async def test_a_run_that_ends_while_it_waits_is_not_waited_for(sleepers: Sleepers, share: Slots) -> None:
    outside = ParkedRuns(10)
    run = SiteWait(SlotLease("run", share, outside))
    task = asyncio.create_task(fetch(run, 5))
    await sleepers.until(1)
    assert len(outside) == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await run.close()
    await run.close()
    assert len(outside) == 0


async def test_too_many_that_wait_are_put_back(sleepers: Sleepers, share: Slots) -> None:
    with pytest.raises(FetchFailed) as failure:
        await fetch(pausing_of(share, most=0), 5)
    assert (failure.value.reason, share.held) == (ExitReason.FETCH_RATE_LIMITED, 1)


async def test_a_short_wait_and_a_run_without_a_seat_wait_in_place(sleepers: Sleepers, share: Slots) -> None:
    short = asyncio.create_task(fetch(pausing_of(share), waiting.IN_PLACE))
    await sleepers.until(1)
    assert share.held == 1
    sleepers.wake(0)
    await short
    seatless = asyncio.create_task(fetch(SiteWait(None), 5))
    await sleepers.until(2)
    sleepers.wake(1)
    await seatless
