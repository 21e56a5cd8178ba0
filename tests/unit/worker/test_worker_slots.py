"""A worker's slots: one share for all, one kept for urgent work, each with a taker of its own."""

import asyncio

import pytest

from scrapeyard.errors import Overloaded
from scrapeyard.model import Priority
from scrapeyard.worker.attempts.slots import ParkedRuns, SlotLease, share_out
from tests.leaks import PATIENCE


@pytest.mark.parametrize(
    ("slots", "wanted", "shares"),
    [(1, -1, [1]), (1, 5, [1]), (2, -1, [1, 1]), (8, -1, [6, 2]), (8, 0, [8]), (8, 3, [5, 3]), (4, 99, [1, 3])],
)
async def test_slots_are_divided(slots: int, wanted: int, shares: list[int]) -> None:
    assert [await share.room() for share in share_out(slots, wanted)] == shares


def test_the_kept_share_is_for_urgent_work_alone() -> None:
    open_to_all, kept = share_out(4, -1)
    assert tuple(open_to_all.priorities) == (Priority.HIGH, Priority.NORMAL, Priority.LOW)
    assert tuple(kept.priorities) == (Priority.HIGH,)


async def test_a_full_share_waits_until_a_run_is_over() -> None:
    (share,) = share_out(1, -1)
    share.hold("run_1")
    waiting = asyncio.create_task(share.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    share.free("run_1")
    assert await waiting == 1


async def test_a_run_that_waits_outside_leaves_its_slot_and_comes_back_first() -> None:
    (share,) = share_out(1, -1)
    outside = ParkedRuns()
    share.hold("run_1")
    async with SlotLease("run_1", share, outside).released():
        assert await share.room() == 1
        assert len(outside) == 1
        share.hold("run_2")
        taking = asyncio.create_task(share.room())
        back = asyncio.create_task(share.regain("run_3"))
        await asyncio.sleep(0)
        share.free("run_2")
        await back
        await asyncio.sleep(0)
        assert not taking.done(), "a run that comes back goes before new work"
        share.free("run_3")
        assert await taking == 1
    assert share.held == 1
    assert len(outside) == 0


async def test_a_run_that_fails_outside_needs_no_slot() -> None:
    (share,) = share_out(1, -1)
    outside = ParkedRuns()
    share.hold("run_1")

    async def fail() -> None:
        async with SlotLease("run_1", share, outside).released():
            share.hold("run_2")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await fail()
    assert (share.held, len(outside)) == (1, 0)


async def test_a_run_cancelled_as_it_comes_back_gives_its_slot_on() -> None:
    (share,) = share_out(1, -1)
    share.hold("run_1")
    first, second = asyncio.create_task(share.regain("run_2")), asyncio.create_task(share.regain("run_3"))
    await asyncio.sleep(0)
    share.free("run_1")
    first.cancel()
    await asyncio.wait_for(second, PATIENCE)
    assert share.held == 1


async def test_only_so_many_wait_outside() -> None:
    (share,) = share_out(2, 0)
    outside = ParkedRuns(1)
    async with SlotLease("run_1", share, outside).released():
        with pytest.raises(Overloaded):
            async with SlotLease("run_2", share, outside).released():
                pass
