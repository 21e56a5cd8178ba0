"""Refreshes that are shared, and channels that follow the store."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.errors import QueueUnavailable, StoreUnavailable, Unavailable
from scrapeyard.gateway.scrapers.refresh import Refreshing
from scrapeyard.model import Refresh
from scrapeyard.queues import messages
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.repository.catalogue import channels
from scrapeyard.repository.catalogue.channels import ChannelOverrides
from scrapeyard.store.sql import SqlStore
from scrapeyard.telemetry.metrics import Metrics
from tests.leaks import PATIENCE
from tests.services.sqlite import migrated

ID = "shop/product"


class SlowCatalogue:
    """A catalogue whose looks end when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.breaks = False
        self.moves: list[Mapping[str, Mapping[str, str]]] = []
        self.changed = asyncio.Event()

    async def refresh(self) -> None:
        self.begun += 1
        self.changed.set()
        await self.may_end.wait()
        if self.breaks:
            raise RuntimeError("a fault")

    def move_channels(self, moved: Mapping[str, Mapping[str, str]]) -> None:
        self.moves.append(moved)
        self.changed.set()

    async def until(self, what: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not what():
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture
def catalogue() -> SlowCatalogue:
    return SlowCatalogue()


@pytest.fixture
async def queue() -> AsyncIterator[MemoryQueue]:
    queue = MemoryQueue()
    await queue.start()
    yield queue
    await queue.stop()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore(migrated(tmp_path / "channels.db"))
    await store.start()
    yield store
    await store.stop()


def moved_of(store: SqlStore, queue: MemoryQueue, catalogue: Any, name: str = "gw1") -> ChannelOverrides:
    return ChannelOverrides(store.channels, queue, catalogue, name, lambda: 1000.0)


def refreshing_of(moved: ChannelOverrides, queue: MemoryQueue, catalogue: Any, name: str = "gw1") -> Refreshing:
    return Refreshing(catalogue, queue, moved, Metrics(), name)


async def test_a_storm_is_one_look_under_way_and_one_that_waits(
    store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue
) -> None:
    refreshing = refreshing_of(moved_of(store, queue, catalogue), queue, catalogue)
    catalogue.may_end.clear()
    async with queue.listen(messages.SIGNALS) as signals:
        first = asyncio.create_task(refreshing.refresh())
        await catalogue.until(lambda: catalogue.begun == 1)
        rest = [asyncio.create_task(refreshing.refresh()) for _ in range(100)]
        catalogue.may_end.set()
        await asyncio.gather(first, *rest)
        assert catalogue.begun == 2
        told = [messages.decode_signal(await anext(signals)) for _ in range(2)]
        assert told == [Refresh(sender="gw1")] * 2
    await refreshing.stop()


async def test_who_asks_while_a_look_is_under_way_gets_a_later_one(
    store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue
) -> None:
    refreshing = refreshing_of(moved_of(store, queue, catalogue), queue, catalogue)
    catalogue.may_end.clear()
    first = asyncio.create_task(refreshing.refresh())
    await catalogue.until(lambda: catalogue.begun == 1)
    second = asyncio.create_task(refreshing.refresh())
    catalogue.may_end.set()
    await second
    assert (catalogue.begun, first.done()) == (2, True)
    await refreshing.stop()


async def test_a_caller_that_leaves_does_not_break_the_look_off(
    store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue
) -> None:
    refreshing = refreshing_of(moved_of(store, queue, catalogue), queue, catalogue)
    catalogue.may_end.clear()
    leaves = asyncio.create_task(refreshing.refresh())
    await catalogue.until(lambda: catalogue.begun == 1)
    stays = asyncio.create_task(refreshing.refresh())
    leaves.cancel()
    catalogue.may_end.set()
    await stays
    assert catalogue.begun == 2
    await refreshing.stop()


async def test_who_waits_for_a_look_is_answered_when_the_gateway_stops(
    store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue
) -> None:
    refreshing = refreshing_of(moved_of(store, queue, catalogue), queue, catalogue)
    catalogue.may_end.clear()
    callers = [asyncio.create_task(refreshing.refresh())]
    await catalogue.until(lambda: catalogue.begun == 1)
    callers.append(asyncio.create_task(refreshing.refresh()))
    await asyncio.sleep(0)
    refreshing.close()
    async with asyncio.timeout(PATIENCE):
        told = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(error) for error in told] == [Unavailable, Unavailable]
    with pytest.raises(Unavailable):
        await refreshing.refresh()
    await refreshing.stop()
    catalogue.may_end.set()
    await refreshing.start()
    await refreshing.refresh()
    await refreshing.stop()


async def test_a_look_that_breaks_is_told_and_counted_and_the_next_is_made(
    store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue
) -> None:
    metrics = Metrics()
    refreshing = Refreshing(catalogue, queue, moved_of(store, queue, catalogue), metrics, "gw1")  # type: ignore[arg-type]
    catalogue.breaks = True
    with pytest.raises(RuntimeError, match="a fault"):
        await refreshing.refresh()
    catalogue.breaks = False
    await refreshing.refresh()
    assert b'refreshes_total{outcome="failed"} 1.0' in metrics.text()
    assert b'refreshes_total{outcome="done"} 1.0' in metrics.text()
    await refreshing.stop()


async def test_what_others_say_is_heard_and_not_said_again(
    store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue
) -> None:
    refreshing = refreshing_of(moved_of(store, queue, catalogue), queue, catalogue)
    await refreshing.start()
    async with queue.listen(messages.SIGNALS) as signals:
        for message in (b"nonsense", messages.encode(Refresh(sender="gw1")), messages.encode(Refresh(sender="gw2"))):
            await queue.send(messages.SIGNALS, message)
        await catalogue.until(lambda: catalogue.begun == 1)
        await queue.send(messages.SIGNALS, b"last")
        assert [await anext(signals) for _ in range(4)][-1] == b"last"
    assert catalogue.begun == 1
    await refreshing.stop()
    await refreshing.stop()


async def test_a_queue_that_is_away_is_told_after_the_look_here(
    store: SqlStore, catalogue: SlowCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = MemoryQueue()

    async def away(*_: Any) -> None:
        raise QueueUnavailable("away")

    monkeypatch.setattr(queue, "send", away)
    refreshing = refreshing_of(moved_of(store, queue, catalogue), queue, catalogue)
    with pytest.raises(QueueUnavailable):
        await refreshing.refresh()
    assert catalogue.begun == 1
    await refreshing.stop()


async def test_moves_are_in_force_at_the_start_and_at_once(
    store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue
) -> None:
    await store.channels.move(ID, "stable", "1.4.1", 1.0)
    moved = moved_of(store, queue, catalogue)
    await moved.start()
    assert catalogue.moves == [{ID: {"stable": "1.4.1"}}]
    await moved.move(ID, "beta", "2.0.0")
    assert catalogue.moves[-1] == {ID: {"stable": "1.4.1", "beta": "2.0.0"}}
    await moved.take_back(ID, "stable")
    assert catalogue.moves[-1] == {ID: {"stable": "", "beta": "2.0.0"}}
    assert moved.of(ID) == {"beta": "2.0.0"}
    await moved.stop()
    await moved.stop()


async def test_a_move_reaches_the_other_gateways(store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue) -> None:
    other = SlowCatalogue()
    here, there = moved_of(store, queue, catalogue), moved_of(store, queue, other, "gw2")
    ear = refreshing_of(there, queue, other, "gw2")
    for part in (here, there, ear):
        await part.start()
    await here.move(ID, "stable", "1.4.1")
    await other.until(lambda: other.moves == [{ID: {"stable": "1.4.1"}}])
    await here.take_back(ID, "stable")
    await other.until(lambda: other.moves[-1] == {ID: {"stable": ""}})
    for part in (ear, here, there):
        await part.stop()


async def test_a_move_whose_signal_was_lost_is_found_by_looking(
    store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "EVERY_SECONDS", 0.05)
    moved = moved_of(store, queue, catalogue)
    await moved.start()
    await store.channels.move(ID, "stable", "1.4.1", 1.0)
    await catalogue.until(lambda: catalogue.moves == [{ID: {"stable": "1.4.1"}}])
    await moved.stop()


async def test_a_store_that_is_away_at_the_start_is_asked_again(
    store: SqlStore, queue: MemoryQueue, catalogue: SlowCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "EVERY_SECONDS", 0.05)
    await store.channels.move(ID, "stable", "1.4.1", 1.0)
    await store.stop()
    moved = moved_of(store, queue, catalogue)
    await moved.start()
    assert catalogue.moves == []
    with pytest.raises(StoreUnavailable):
        await moved.move(ID, "stable", "1.4.2")
    assert moved.of(ID) == {}
    await store.start()
    await catalogue.until(lambda: catalogue.moves == [{ID: {"stable": "1.4.1"}}])
    await moved.stop()
