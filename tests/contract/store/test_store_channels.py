"""Channels that operators moved, on SQLite and on PostgreSQL."""

import asyncio

import pytest

from scrapeyard.errors import StoreUnavailable
from scrapeyard.store.ports.overrides import ChannelMove
from scrapeyard.store.ports.store import Store
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.backends import store_at
from tests.contract.nouns import NOW
from tests.services.postgres import PostgresServer

ID = "shop/product"


def moved(before: str, after: str, at: float = NOW, channel: str = "stable") -> ChannelMove:
    return ChannelMove(scraper_id=ID, channel=channel, before=before, after=after, moved_at=at)


async def test_there_are_none_at_first(store: Store) -> None:
    assert await store.channels.current() == {}
    assert await store.channels.moves(ID, 10) == ()


async def test_a_channel_points_where_it_was_last_moved(store: Store) -> None:
    assert await store.channels.move(ID, "stable", "1.4.1", NOW) == moved("", "1.4.1")
    assert await store.channels.move(ID, "stable", "1.4.2", NOW + 1) == moved("1.4.1", "1.4.2", NOW + 1)
    await store.channels.move(ID, "beta", "2.0.0-rc.1", NOW)
    await store.channels.move("shop/list", "stable", "0.1.0", NOW)
    assert await store.channels.current() == {
        "shop/list": {"stable": "0.1.0"},
        ID: {"beta": "2.0.0-rc.1", "stable": "1.4.2"},
    }


async def test_moving_it_to_where_it_points_is_no_move(store: Store) -> None:
    await store.channels.move(ID, "stable", "1.4.1", NOW)
    assert await store.channels.move(ID, "stable", "1.4.1", NOW + 1) is None
    assert await store.channels.moves(ID, 10) == (moved("", "1.4.1"),)


async def test_a_move_is_taken_back_once(store: Store) -> None:
    await store.channels.move(ID, "stable", "1.4.1", NOW)
    await store.channels.move(ID, "beta", "2.0.0", NOW)
    assert await store.channels.clear(ID, "stable", NOW + 1) == moved("1.4.1", "", NOW + 1)
    assert await store.channels.clear(ID, "stable", NOW + 2) is None
    assert await store.channels.current() == {ID: {"beta": "2.0.0"}}


async def test_every_move_is_kept_newest_first(store: Store) -> None:
    await store.channels.move(ID, "stable", "1.4.1", NOW)
    await store.channels.move(ID, "stable", "1.4.2", NOW + 1)
    await store.channels.clear(ID, "stable", NOW + 2)
    await store.channels.move("shop/list", "stable", "0.1.0", NOW)
    assert await store.channels.moves(ID, 10) == (
        moved("1.4.2", "", NOW + 2),
        moved("1.4.1", "1.4.2", NOW + 1),
        moved("", "1.4.1", NOW),
    )
    assert len(await store.channels.moves(ID, 2)) == 2


async def test_of_those_who_move_at_once_each_sees_the_one_before(store: Store, migrated_url: str) -> None:
    other = store_at(migrated_url)
    await other.start()
    versions = [f"1.0.{number}" for number in range(20)]
    await asyncio.gather(
        *(
            (store, other)[number % 2].channels.move(ID, "stable", version, NOW)
            for number, version in enumerate(versions)
        )
    )
    moves = await store.channels.moves(ID, 100)
    assert sorted(move.after for move in moves) == sorted(versions)
    befores = {move.before for move in moves}
    (last,) = {move.after for move in moves} - befores
    assert len(befores) == len(versions)
    assert await other.channels.current() == {ID: {"stable": last}}
    await other.stop()


async def test_a_database_that_is_away_is_told(own_postgres: PostgresServer) -> None:
    store = SqlStore(own_postgres.url)
    await store.start()
    own_postgres.stop()
    for call in (
        store.channels.current(),
        store.channels.move(ID, "stable", "1.0.0", NOW),
        store.channels.moves(ID, 1),
    ):
        with pytest.raises(StoreUnavailable):
            await call
    await store.stop()
