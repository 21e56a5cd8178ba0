"""Secrets at rest, on every kind of database: nothing in clear, nothing that can be moved, one master key for all."""

import json
import os
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import LargeBinary, insert, select, update

from scrapeyard.errors import SettingsInvalid
from scrapeyard.sealing.masters import LocalMasters
from scrapeyard.sealing.port import WrappedKey
from scrapeyard.store.dynamo.store import DynamoStore
from scrapeyard.store.dynamo.table.expressions import Update
from scrapeyard.store.dynamo.table.values import key_of
from scrapeyard.store.operations import SESSIONS
from scrapeyard.store.ports.keys import StoredSecret
from scrapeyard.store.ports.overrides import KeptPool
from scrapeyard.store.ports.store import Store
from scrapeyard.store.sealed import ClearValues
from scrapeyard.store.sql import SqlStore
from scrapeyard.store.tables.keys import SCRAPER_SECRETS
from scrapeyard.store.tables.runs import METADATA, PROXY_POOLS
from scrapeyard.store.tables.schedules import DELIVERIES, RUN_WATCHES
from scrapeyard.wiring.backends import store_at
from tests.contract.nouns import NOW
from tests.contract.store.conftest import of_sql

OLD, NEW = os.urandom(32), os.urandom(32)
TOKEN = "t0ken-that-nobody-may-see"
POOL = KeptPool(name="home", definition=json.dumps({"password": TOKEN}).encode(), changed_at=NOW)


@asynccontextmanager
async def opened(url: str, *keys: bytes) -> AsyncIterator[Any]:
    store = store_at(url, masters=LocalMasters(keys) if keys else None)
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


async def raw(store: SqlStore, *columns: Any) -> Sequence[Any]:
    return await store._database.fetch_tuples(select(*columns), {})


async def values(store: SqlStore | DynamoStore) -> list[bytes]:
    """What the database has of the secrets."""
    if isinstance(store, DynamoStore):
        rows = [row for pk in ("session/shop/a", "proxy_pool", "scraper_secret") for row in await store.table.query(pk)]
        return [value for row in rows for value in row.values() if isinstance(value, bytes)]
    columns = (SESSIONS.c.cookies, PROXY_POOLS.c.definition, SCRAPER_SECRETS.c.value)
    return [bytes(row[0]) for column in columns for row in await raw(store, column)]


async def write_all(store: Store) -> None:
    await store.sessions.change("shop/a", "login", lambda _: TOKEN.encode(), NOW)
    await store.proxies.put_pool(POOL)
    for name in ("one", "two"):
        secret = StoredSecret(scrapers="shop/a", name=name, value=TOKEN + name, changed_at=NOW)
        await store.scraper_secrets.put(secret)


async def check_all(store: Store) -> None:
    assert await store.sessions.read("shop/a", "login", 0) == TOKEN.encode()
    assert await store.proxies.pools() == (POOL,)
    assert [secret.value for secret in await store.scraper_secrets.all()] == [TOKEN + "one", TOKEN + "two"]


async def test_nothing_is_in_clear_and_another_process_reads_it(migrated_url: str) -> None:
    async with opened(migrated_url, OLD) as store:
        await write_all(store)
        found = await values(store)
        assert len(found) == 4
        assert not any(TOKEN.encode() in value or b64encode(TOKEN.encode()) in value for value in found)
        async with opened(migrated_url, OLD) as other:
            await check_all(other)


async def test_another_master_key_or_none_is_refused_at_the_start(migrated_url: str) -> None:
    async with opened(migrated_url, OLD) as store:
        await write_all(store)
    with pytest.raises(SettingsInvalid, match=r"sealed under master key [0-9a-f]{16}, and the keys here are"):
        async with opened(migrated_url, NEW):
            pass


@of_sql
async def test_a_value_in_another_row_is_not_opened(migrated_url: str) -> None:
    async with opened(migrated_url, OLD) as store:
        await write_all(store)
        one, two = await raw(store, SCRAPER_SECRETS.c.value)
        moved = update(SCRAPER_SECRETS).where(SCRAPER_SECRETS.c.name == "two").values(value=one[0])
        await store._database.change(moved)
        assert [secret.name for secret in await store.scraper_secrets.all()] == ["one"]
        await store._database.change(update(SESSIONS).values(cookies=two[0]))
        assert await store.sessions.read("shop/a", "login", 0) == b""


async def test_rewrapped_keys_open_what_the_old_master_sealed(migrated_url: str) -> None:
    async with opened(migrated_url, OLD) as running:
        await write_all(running)
        both, kept = LocalMasters([NEW, OLD]), await running.data_keys.all()
        changed = [
            WrappedKey(number=key.number, wrapped=both.wrap(both.unwrap(key)), master=both.current, created_at=0)
            for key in kept
        ]
        await running.data_keys.rewrap(changed)
        await check_all(running)
        async with opened(migrated_url, NEW) as fresh:
            await check_all(fresh)
            await fresh.sessions.change("shop/a", "login", lambda had: had + b"!", NOW)
        assert await running.sessions.read("shop/a", "login", 0) == TOKEN.encode() + b"!"


@pytest.mark.parametrize("migrated_url", ["dynamodb"], indirect=True)
async def test_a_value_in_another_row_of_a_table_is_not_opened(migrated_url: str) -> None:
    async with opened(migrated_url, OLD) as store:
        await write_all(store)
        one, two = await store.table.query("scraper_secret")
        await store.table.write(Update(key_of(two), {"value": one["value"]}))
        assert [secret.name for secret in await store.scraper_secrets.all()] == ["one"]
        (session,) = await store.table.query("session/shop/a")
        await store.table.write(Update(key_of(session), {"cookies": two["value"]}))
        assert await store.sessions.read("shop/a", "login", 0) == b""


@of_sql
async def test_what_was_stored_in_clear_is_sealed_at_the_next_start(migrated_url: str) -> None:
    webhook = {"url": "https://r.example/", "events": ["run.failed"], "secret": TOKEN}
    async with opened(migrated_url) as older:
        await older.proxies.put_pool(POOL)
        for number in range(3):
            await older.sessions.change("shop/a", f"{number}", lambda _: TOKEN.encode(), NOW)
        watch = {"run_id": "run_1", "webhook": json.dumps(webhook).encode(), "created_at": NOW}
        await older._database.change(insert(RUN_WATCHES).values(watch))
        await older._database.change(insert(DELIVERIES).values(_delivery(webhook)))
    async with opened(migrated_url, OLD) as store:
        found = [
            *await raw(store, SESSIONS.c.cookies),
            *await raw(store, PROXY_POOLS.c.definition),
            *await raw(store, RUN_WATCHES.c.webhook),
        ]
        assert len(found) == 5
        assert not any(TOKEN.encode() in bytes(row[0]) for row in found)
        (delivery,) = await raw(store, DELIVERIES.c.secret)
        assert store.sealer.open_text(delivery[0], "webhook https://r.example/") == TOKEN
        assert await store.sessions.read("shop/a", "2", 0) == TOKEN.encode()
        assert await ClearValues(store._database).seal() == 0
        assert [key.swept for key in await store.data_keys.all()] == [True]


def _delivery(webhook: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "delivery_1", "subject": "run_1", "event": "run.failed", "url": webhook["url"], "host": "r.example",
        "secret": webhook["secret"], "body": b"{}", "state": "delivered", "attempts": 1, "created_at": NOW,
        "next_at": None, "give_up_at": NOW, "finished_at": NOW, "log": b"[]", "holder": "", "lease_until": None,
    }  # fmt: skip


CLEAR_COLUMNS = {
    "api_keys": "limits scrapers",
    "audit": "after before",
    "batches": "again done",
    "data_keys": "wrapped",
    "exports": "notes wish",
    "idempotency_keys": "run_ids",
    "job_points": "use",
    "job_sinks": "progress",
    "jobs": "breaker exports http_statuses policy sinks swept use webhook",
    "load_samples": "sample",
    "outcomes": "usage",
    "patterns": "health",
    "proxy_pools": "definition",
    "proxy_standings": "pools",
    "run_watches": "webhook",
    "runs": "fetching resolved swept",
    "scraper_secrets": "value",
    "sessions": "cookies",
    "workers": "info",
}
"""Bytes that are no content, or are sealed by themselves."""


def test_a_new_column_of_bytes_is_content_unless_it_is_named_here() -> None:
    clear = {
        table.name: " ".join(sorted(column.name for column in table.c if isinstance(column.type, LargeBinary)))
        for table in METADATA.tables.values()
    }
    assert {name: columns for name, columns in clear.items() if columns} == CLEAR_COLUMNS
