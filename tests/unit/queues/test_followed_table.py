"""A small table of the store, followed in memory."""

import asyncio

from scrapeyard.errors import StoreUnavailable
from scrapeyard.store.ports.followed import FollowedTable
from tests.leaks import PATIENCE


class Table:
    """One value in a store that may be away, and what its follower did."""

    def __init__(self, every_seconds: float = 3600.0) -> None:
        self.value: int | None = 1
        """None: the store is away."""
        self.did: list[str] = []
        self.read_again = asyncio.Event()
        self.followed = FollowedTable[int](
            "test",
            every_seconds,
            read=self.read,
            adopt=lambda value: self.did.append(f"adopt {value}"),
            on_away=lambda error: self.did.append(error.message),
            after_read=self.after_read,
        )

    async def read(self) -> int:
        assert self.followed.lock.locked()
        if self.value is None:
            raise StoreUnavailable("away")
        return self.value

    async def after_read(self) -> None:
        assert not self.followed.lock.locked()
        self.did.append("after")
        self.read_again.set()

    async def until_read(self) -> None:
        self.read_again.clear()
        await asyncio.wait_for(self.read_again.wait(), PATIENCE)


async def test_it_is_read_at_the_start_and_when_asked() -> None:
    table = Table()
    await table.followed.start()
    await table.followed.start()
    assert table.did == ["adopt 1", "after"]
    table.value = 2
    table.followed.refresh_soon()
    await table.until_read()
    assert table.did[2:] == ["adopt 2", "after"]
    await table.followed.stop()
    await table.followed.stop()


async def test_it_is_read_again_and_again() -> None:
    table = Table(every_seconds=0.001)
    await table.followed.start()
    await table.until_read()
    await table.until_read()
    await table.followed.stop()


async def test_a_store_that_goes_away_is_told_once_each_time() -> None:
    table = Table()
    for value in (None, None, 1, None):
        table.value = value
        await table.followed.refresh()
    assert table.did == ["away", "after", "after", "adopt 1", "after", "away", "after"]


async def test_a_read_waits_for_who_writes() -> None:
    table = Table()
    async with table.followed.lock:
        reading = asyncio.create_task(table.followed.refresh())
        await asyncio.sleep(0)
        table.value = 2
    await asyncio.wait_for(reading, PATIENCE)
    assert table.did == ["adopt 2", "after"]
