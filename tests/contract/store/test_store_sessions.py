"""Named sessions on SQLite and on PostgreSQL."""

import asyncio

import pytest

from scrapeyard.store import operations
from scrapeyard.store.dynamo import sessions
from scrapeyard.store.ports.store import Store
from tests.contract.nouns import NOW

ID = "shop/product"


async def test_there_is_none_at_first(store: Store) -> None:
    assert await store.sessions.read(ID, "login", 0.0) == b""


async def test_what_was_kept_is_read_by_its_scraper_and_name(store: Store) -> None:
    await store.sessions.change(ID, "login", lambda kept: kept + b"a\0", NOW)
    await store.sessions.change(ID, "login", lambda kept: kept + b"b", NOW + 1)
    assert await store.sessions.read(ID, "login", 0.0) == b"a\0b"
    assert await store.sessions.read(ID, "other", 0.0) == b""
    assert await store.sessions.read("shop/list", "login", 0.0) == b""


async def test_what_is_too_old_is_not_read_and_then_goes(store: Store) -> None:
    await store.sessions.change(ID, "old", lambda _: b"x", NOW)
    await store.sessions.change(ID, "new", lambda _: b"y", NOW + 10)
    assert await store.sessions.read(ID, "old", NOW + 1) == b""
    await store.sessions.forget_before(NOW + 5)
    assert await store.sessions.read(ID, "old", 0.0) == b""
    assert await store.sessions.read(ID, "new", 0.0) == b"y"


async def test_changes_at_once_lose_nothing(store: Store) -> None:
    async def add(piece: bytes) -> None:
        await store.sessions.change(ID, "login", lambda kept: kept + piece, NOW)

    await asyncio.gather(*(add(bytes([number])) for number in range(20)))
    assert sorted(await store.sessions.read(ID, "login", 0.0)) == list(range(20))


async def test_a_scraper_has_so_many_sessions_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (operations, sessions):
        monkeypatch.setattr(module, "MAX_SESSIONS", 10)
    for number in range(10):
        await store.sessions.change(ID, f"s{number}", lambda _: b"x", NOW + number)
    await store.sessions.change("shop/list", "s0", lambda _: b"x", NOW)
    await store.sessions.change(ID, "s0", lambda _: b"again", NOW + 10)
    await store.sessions.change(ID, "one more", lambda _: b"x", NOW + 11)
    assert await store.sessions.read(ID, "s1", 0.0) == b""
    assert await store.sessions.read(ID, "s0", 0.0) == b"again"
    assert await store.sessions.read(ID, "s2", 0.0) == b"x"
    assert await store.sessions.read("shop/list", "s0", 0.0) == b"x"
