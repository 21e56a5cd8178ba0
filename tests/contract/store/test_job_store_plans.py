"""How PostgreSQL reads the items of a job that its statistics do not know yet: by their numbers, never each against all
of the others."""

import json
from typing import Any

import pytest
from sqlalchemy import Select, create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model.job import ItemStatus
from scrapeyard.store.jobs.batches import BATCH_ITEMS
from scrapeyard.store.jobs.item_queries import ENDED, RANGE, SOME, dead
from scrapeyard.store.ports.jobs import DeadLetterFilter, ItemFilter
from scrapeyard.store.sql import SqlStore
from tests.contract.job_nouns import an_error, successes
from tests.contract.job_steps import a_running_job, taken

COUNT = 2000
BY_NUMBERS: dict[str, tuple[Select[Any], dict[str, Any]]] = {
    "range": (RANGE[True], {"first": 500, "last": 1499}),
    "some": (SOME[True], {"seqs": list(range(500, 1500))}),
    "ended": (ENDED[True].limit(1000), {"first": 500, "last": 1499}),
    "dead": (dead(DeadLetterFilter(), None).limit(1000), {}),
    "taken": (BATCH_ITEMS, {"first": 500, "last": 1499}),
}
_WORDS = create_engine("postgresql+asyncpg://").dialect
on_postgres = pytest.mark.parametrize("migrated_url", ["new postgresql"], indirect=True)


async def _ended(store: SqlStore, job_id: str, count: int = COUNT) -> None:
    job = await a_running_job(store, count, id=job_id)
    for _ in range(0, count, 500):
        batch, items = await taken(store, job)
        ends = [*successes(items[:250]), *(an_error(item) for item in items[250:])]
        assert await store.batches.record(batch, "worker-1", 0, ends, 0.0) is not None


@on_postgres
@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
async def test_an_item_is_not_looked_for_among_all_of_its_job(store: SqlStore, known: bool) -> None:
    await _ended(store, "job_old")
    await _told(store, "ANALYZE")
    await _ended(store, "job_new")
    if known:
        await _told(store, "ANALYZE")
    for name, (query, given) in BY_NUMBERS.items():
        asked = query.params(**given, **({} if name == "dead" else {"job": 2}))
        words = asked.compile(dialect=_WORDS, compile_kwargs={"literal_binds": True})
        plan = json.loads(await _told(store, f"EXPLAIN (ANALYZE, FORMAT JSON) {words}"))
        assert _seen(plan[0]["Plan"]) <= 10 * COUNT, f"{name}: {json.dumps(plan, indent=1)}"


@on_postgres
async def test_a_page_of_a_large_job_is_found_without_reading_all_of_it(store: SqlStore) -> None:
    done = ItemFilter(statuses=(ItemStatus.SUCCESS,))
    for number in range(3):
        await _ended(store, f"job_{number}", 4000)
    before = await _read(store)
    for _ in range(5):
        assert len((await store.items.page("job_1", done, None, 50)).items) == 50
    assert await _read(store) - before <= 5 * 2000


async def _read(store: SqlStore) -> int:
    """Rows of outcomes that this connection, the only one that reads, has read."""
    await store._database.fetch(text("SELECT pg_stat_force_next_flush()"))
    rows = "SELECT seq_tup_read + idx_tup_fetch AS read FROM pg_stat_user_tables WHERE relname = 'outcomes'"
    return int((await store._database.fetch(text(rows)))[0]["read"])


async def _told(store: SqlStore, words: str) -> str:
    """The first word of the database's answer, if it has one."""

    async def ask(connection: AsyncConnection) -> str:
        result = await connection.exec_driver_sql(words)
        answer = result.scalar() if result.returns_rows else ""
        return answer if isinstance(answer, str) else json.dumps(answer)

    return await store._database.write(ask)


def _seen(plan: dict[str, Any]) -> float:
    """Rows that were looked at, in all steps, those that were thrown away among them."""
    removed = sum(count for key, count in plan.items() if key.startswith("Rows Removed"))
    below = sum(_seen(each) for each in plan.get("Plans", ()))
    return float((plan["Actual Rows"] + removed) * plan["Actual Loops"] + below)


@on_postgres
@pytest.mark.parametrize("table", ["outcomes", "items"])
async def test_a_piece_is_removed_without_a_look_at_the_rest(store: SqlStore, table: str) -> None:
    await _ended(store, "job_old")
    await _told(store, "ANALYZE")
    await _ended(store, "job_new")
    words = f"EXPLAIN (ANALYZE, FORMAT JSON) DELETE FROM {table} WHERE job = 2 AND seq BETWEEN 500 AND 999"
    plan = json.loads(await _told(store, words))
    assert _seen(plan[0]["Plan"]) <= 1000, json.dumps(plan, indent=1)
