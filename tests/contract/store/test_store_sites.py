"""Sites that operators want treated in their own way, on SQLite and on PostgreSQL."""

import pytest
from msgspec.structs import replace
from sqlalchemy.exc import IntegrityError

from scrapeyard.errors import StoreUnavailable
from scrapeyard.store.ports.overrides import SiteRules
from scrapeyard.store.ports.store import Store
from scrapeyard.store.sql import SqlStore
from tests.contract.nouns import NOW
from tests.contract.store.conftest import of_sql
from tests.services.postgres import PostgresServer

WHOLE = SiteRules(
    site="shop.example",
    rate=0.5,
    burst=3,
    concurrency=2,
    adapt=False,
    min_rate=0.25,
    breaker_failures=5,
    breaker_ratio=0.75,
    breaker_seconds=60,
    robots="obey",
    note="그들이 부탁했다",
    updated_at=NOW,
)
BARE = SiteRules(site="other.example", updated_at=NOW)


async def test_there_are_none_at_first(store: Store) -> None:
    assert await store.sites.rules() == ()
    assert await store.sites.remove("shop.example") is False


async def test_they_come_back_as_they_were_written(store: Store) -> None:
    await store.sites.put(WHOLE)
    await store.sites.put(BARE)
    assert await store.sites.rules() == (BARE, WHOLE)


async def test_they_are_written_whole_over_what_was_there(store: Store) -> None:
    await store.sites.put(WHOLE)
    new = SiteRules(site="shop.example", rate=0, updated_at=NOW + 1)
    await store.sites.put(new)
    assert await store.sites.rules() == (new,)


async def test_they_can_be_removed(store: Store) -> None:
    await store.sites.put(WHOLE)
    await store.sites.put(BARE)
    assert await store.sites.remove("shop.example") is True
    assert await store.sites.remove("shop.example") is False
    assert await store.sites.rules() == (BARE,)


async def test_the_mark_tells_that_something_changed(store: Store) -> None:
    marks = [await store.sites.mark()]
    for step in (
        store.sites.put(WHOLE),
        store.sites.put(BARE),
        store.sites.put(replace(BARE, rate=1.0, updated_at=NOW + 0.25)),
        store.sites.remove("shop.example"),
    ):
        await step
        marks.append(await store.sites.mark())
    assert len(set(marks)) == len(marks)
    assert await store.sites.mark() == marks[-1]


@of_sql
@pytest.mark.parametrize(
    "wrong",
    [{"rate": -1.0}, {"burst": 0}, {"concurrency": -1}, {"breaker_ratio": 0.0}, {"robots": "maybe"}, {"min_rate": 0.0}],
)
async def test_the_database_refuses_nonsense(store: Store, wrong: dict[str, object]) -> None:
    with pytest.raises(IntegrityError):
        await store.sites.put(replace(BARE, **wrong))
    assert await store.sites.rules() == ()


async def test_a_database_that_is_away_is_unavailable(own_postgres: PostgresServer) -> None:
    store = SqlStore(own_postgres.database_url(own_postgres.create_database()))
    await store.start()
    try:
        own_postgres.stop()
        with pytest.raises(StoreUnavailable):
            await store.sites.rules()
        with pytest.raises(StoreUnavailable):
            await store.sites.put(BARE)
    finally:
        await store.stop()
