"""The memory that bodies share: who waits, who goes on, and that nothing is lost."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.engines.http.shares import SMALL, BodyMemory, BodyShare

MB = 1024 * 1024


async def turns(count: int = 3) -> None:
    """The event loop goes round."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_one_that_finds_no_room_waits_for_it() -> None:
    memory = BodyMemory(10 * MB)
    first, second = BodyShare(memory), BodyShare(memory)
    await first.need(8 * MB)
    waiting = asyncio.create_task(second.need(8 * MB))
    await turns()
    assert not waiting.done()
    first.close()
    await waiting
    assert memory.used == 8 * MB


async def test_one_goes_on_however_large_it_is_and_small_ones_never_wait() -> None:
    memory = BodyMemory(MB)
    large, small = BodyShare(memory), BodyShare(memory)
    await large.need(100 * MB)
    await small.need(SMALL)
    await large.need(200 * MB)  # it has its share
    assert memory.used == 100 * MB


async def test_one_that_leaves_while_it_waits_lets_others_through() -> None:
    memory = BodyMemory(10 * MB)
    shares = [BodyShare(memory) for _ in range(3)]
    await shares[0].need(6 * MB)
    blocked = asyncio.create_task(shares[1].need(9 * MB))
    behind = asyncio.create_task(shares[2].need(4 * MB))
    await turns()
    assert not behind.done()
    blocked.cancel()
    await behind
    assert memory.used == 10 * MB


@given(
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=20),
    leave=st.sets(st.integers(0, 19)),
    together=st.booleans(),
)
def test_everybody_gets_through_and_nothing_is_left(sizes: list[int], leave: set[int], together: bool) -> None:
    async def scenario() -> None:
        memory, most = BodyMemory(10 * MB), 0

        async def fetch(size: int) -> None:
            nonlocal most
            share = BodyShare(memory)
            try:
                await share.need(size * MB + 1)
                most = max(most, memory.used)
                await turns()
            finally:
                share.close()

        tasks = [asyncio.create_task(fetch(size)) for size in sizes]
        await turns(1)
        for index in leave:
            if index < len(tasks):
                tasks[index].cancel()
                await turns(0 if together else 2)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert memory.used == 0
        assert most <= max(10, *sizes) * MB + 1

    asyncio.run(scenario())
