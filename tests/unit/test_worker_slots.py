"""A worker's slots: one share for all, one kept for urgent work, each with a taker of its own."""

import asyncio

import pytest

from scrapeyard.model import Priority
from scrapeyard.worker.slots import share_out


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
