"""Time limits: exact whether near or far, and heard apart from a cancellation by somebody else."""

import asyncio

import pytest

from scrapeyard.engines.http.engine import Deadlines


class Clock:
    """The time of the event loop, moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def move(self, seconds: float) -> None:
        """And let everybody do what is due by then."""
        self.now += seconds
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock)
    return clock


async def hang() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("seconds", [0.01, 0.12], ids=["near", "far"])
async def test_what_lasts_longer_is_ended_on_time(clock: Clock, seconds: float) -> None:
    async def limited() -> int:
        with pytest.raises(TimeoutError), Deadlines(every_seconds=0.05).within(seconds):
            await hang()
        return asyncio.current_task().cancelling()  # type: ignore[union-attr]

    task = asyncio.create_task(limited())
    await clock.move(0)
    for _ in range(9):
        await clock.move(seconds / 10)
    assert not task.done()
    await clock.move(seconds / 10 + 0.001)
    assert task.done()
    assert task.result() == 0


async def test_many_end_in_their_order_and_each_by_its_own_limit(clock: Clock) -> None:
    deadlines, ended = Deadlines(every_seconds=0.02), list[float]()

    async def one(seconds: float) -> None:
        with pytest.raises(TimeoutError), deadlines.within(seconds):
            await hang()
        ended.append(seconds)

    limits = [0.09, 0.01, 0.05, 0.13]
    tasks = [asyncio.create_task(one(seconds)) for seconds in limits]
    await clock.move(0)
    for step in range(8):
        assert ended == [limit for limit in sorted(limits) if limit < step * 0.02]
        await clock.move(0.02)
    await asyncio.gather(*tasks)
    assert ended == sorted(limits)


async def test_what_ends_in_time_is_left_alone_afterwards() -> None:
    deadlines = Deadlines(every_seconds=0.02)
    for seconds in (0.01, 0.03, None):
        with deadlines.within(seconds):
            pass
    with pytest.raises(TimeoutError), deadlines.within(0.06):  # all the others would have ended before this one
        await hang()
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_without_seconds_only_another_limit_ends_it() -> None:
    deadlines = Deadlines(every_seconds=0.02)
    with pytest.raises(TimeoutError), deadlines.within(0.05), deadlines.within(None):
        await hang()


@pytest.mark.parametrize("seconds", [0.01, 30.0], ids=["near", "far"])
async def test_a_cancellation_by_somebody_else_stays_one(seconds: float) -> None:
    inside = asyncio.Event()

    async def limited() -> None:
        with Deadlines().within(seconds):
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            inside.set()
            await hang()

    task = asyncio.create_task(limited())
    await inside.wait()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_of_two_limits_the_inner_one_does_not_end_the_outer() -> None:
    deadlines = Deadlines(every_seconds=0.02)
    with deadlines.within(30.0):
        with pytest.raises(TimeoutError), deadlines.within(0.05):
            await hang()
        await asyncio.sleep(0)


async def test_a_failure_inside_is_told_as_it_is() -> None:
    with pytest.raises(LookupError), Deadlines().within(30.0):
        raise LookupError


def test_outside_a_task_nothing_can_be_limited() -> None:
    with pytest.raises(RuntimeError), Deadlines().within(1.0):
        pass
