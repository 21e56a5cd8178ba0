"""The audit: one chain whatever number of processes write, rows that nobody changes, and tampering found at its row."""

import asyncio

import pytest
from msgspec import Raw
from msgspec.structs import replace
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.errors import BadRequest, StoreUnavailable
from scrapeyard.model.audit import AuditEntry, AuditFault
from scrapeyard.store.dynamo.store import DynamoStore
from scrapeyard.store.dynamo.table.expressions import Delete, Update
from scrapeyard.store.ports.audit import AuditFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.backends import store_at
from tests.contract.nouns import NOW
from tests.contract.store.conftest import of_sql

ENTRY = AuditEntry(
    at=NOW,
    client="ops",
    role="operator",
    key_id="k1",
    address="10.0.0.7",
    action="put_site",
    resource="/api/sites/shop.example",
    status=200,
    code="",
    request_id="r1",
    before=Raw(b'{"rate":1}'),
    after=Raw(b'{"rate":2}'),
)
EVERY = AuditFilter()


async def written(store: Store, count: int) -> None:
    await store.audit.append([replace(ENTRY, at=NOW + n, request_id=f"r{n + 1}") for n in range(count)])


async def tamper(store: SqlStore, *statements: str) -> None:
    """Change the tables as somebody who owns the database can: without the triggers."""
    postgres = "Postgres" in type(store._database.backend).__name__
    off = ["ALTER TABLE audit DISABLE TRIGGER USER"] if postgres else ["DROP TRIGGER audit_no_update"]
    on = ["ALTER TABLE audit ENABLE TRIGGER USER"] if postgres else []
    off += [] if postgres else ["DROP TRIGGER audit_no_delete"]

    async def work(connection: AsyncConnection) -> None:
        for statement in (*off, *statements, *on):
            await connection.execute(text(statement))

    await store._database.write(work)


async def test_rows_come_back_newest_first_with_filters_and_pages(store: SqlStore) -> None:
    await written(store, 3)
    refused = replace(ENTRY, client="", at=NOW + 9, action="list_jobs", status=401, code="unauthorized", before=None)
    await store.audit.append([refused])
    page = await store.audit.page(EVERY, None, 3)
    assert [row.number for row in page.rows] == [4, 3, 2]
    assert page.rows[0].entry == refused
    rest = await store.audit.page(EVERY, page.next_cursor, 3)
    assert ([row.entry for row in rest.rows], rest.next_cursor) == ([replace(ENTRY, at=NOW)], None)
    found = {
        name: [row.number for row in (await store.audit.page(where, None, 10)).rows]
        for name, where in {
            "client": AuditFilter(client="ops"),
            "action": AuditFilter(action="list_jobs"),
            "resource": AuditFilter(resource="/api/sites/"),
            "no such": AuditFilter(resource="/api/%"),
            "refused": AuditFilter(refused=True),
            "done": AuditFilter(refused=False),
            "time": AuditFilter(since=NOW + 1, until=NOW + 2),
        }.items()
    }
    assert found == {
        "client": [3, 2, 1],
        "action": [4],
        "resource": [4, 3, 2, 1],
        "no such": [],
        "refused": [4],
        "done": [3, 2, 1],
        "time": [2],
    }
    with pytest.raises(BadRequest):
        await store.audit.page(EVERY, "nonsense", 3)


async def test_writers_of_several_processes_form_one_chain(store: SqlStore, migrated_url: str) -> None:
    other = store_at(migrated_url)
    await other.start()
    try:
        await asyncio.gather(*(written(each, 2) for each in (store, other) * 10))
    finally:
        await other.stop()
    check = await store.audit.verify()
    assert (check.rows, check.first, check.last, check.fault) == (40, 1, 40, None)


async def test_an_empty_audit_is_whole(store: SqlStore) -> None:
    check = await store.audit.verify()
    assert (check.rows, check.first, check.last, check.hash, check.fault) == (0, 0, 0, "", None)


@of_sql
@pytest.mark.parametrize(
    ("statements", "number", "reason"),
    [
        (["UPDATE audit SET client = 'nobody' WHERE number = 3"], 3, "changed"),
        (["UPDATE audit SET after = NULL WHERE number = 5"], 5, "changed"),
        (["UPDATE audit SET hash = 'x' WHERE number = 2"], 2, "changed"),
        (["DELETE FROM audit WHERE number = 4"], 4, "missing"),
        (["DELETE FROM audit WHERE number = 1"], 1, "missing"),
        (["DELETE FROM audit WHERE number >= 5"], 5, "missing"),
        (["DELETE FROM audit WHERE number = 4", "UPDATE audit SET number = 4 WHERE number = 5"], 4, "changed"),
        (["UPDATE audit_chain SET last_hash = 'x'"], 6, "ends with"),
        (["UPDATE audit_chain SET removed_number = 2"], 3, "changed"),
    ],
)
async def test_tampering_is_found_at_its_row(store: SqlStore, statements: list[str], number: int, reason: str) -> None:
    await written(store, 6)
    await tamper(store, *statements)
    fault = (await store.audit.verify()).fault
    assert isinstance(fault, AuditFault)
    assert (fault.number, reason in fault.reason) == (number, True), fault


@of_sql
@pytest.mark.parametrize(
    "statement", ["UPDATE audit SET client = 'x'", "DELETE FROM audit", "DELETE FROM audit WHERE number = 2"]
)
async def test_the_database_refuses_to_change_or_remove_rows(store: SqlStore, statement: str) -> None:
    await written(store, 2)
    with pytest.raises((DBAPIError, StoreUnavailable), match="audit rows"):
        await store._database.change(text(statement))
    assert (await store.audit.verify()).fault is None


async def test_retention_removes_the_oldest_and_the_rest_can_be_verified(store: SqlStore) -> None:
    await written(store, 6)
    assert await store.audit.remove_before(NOW + 4, 3) == 3
    assert await store.audit.remove_before(NOW + 4, 3) == 1
    assert await store.audit.remove_before(NOW + 4, 3) == 0
    check = await store.audit.verify()
    assert (check.rows, check.first, check.last, check.fault) == (2, 5, 6, None)
    assert await store.audit.remove_before(NOW + 99, 9) == 2
    await written(store, 1)
    check = await store.audit.verify()
    assert (check.rows, check.first, check.last, check.fault) == (1, 7, 7, None)


@pytest.mark.parametrize("migrated_url", ["dynamodb"], indirect=True)
@pytest.mark.parametrize(
    ("change", "number", "reason"),
    [
        (Update(("audit", f"{3:015}"), {"client": "nobody"}), 3, "changed"),
        (Update(("audit", f"{5:015}"), {"after": None}), 5, "changed"),
        (Delete(("audit", f"{4:015}")), 4, "missing"),
        (Update(("audit_chain", "chain"), {"last_hash": "x"}), 6, "ends with"),
        (Update(("audit_chain", "chain"), {"removed_number": 2}), 3, "changed"),
    ],
)
async def test_tampering_with_a_table_is_found_at_its_row(
    store: DynamoStore, change: Update | Delete, number: int, reason: str
) -> None:
    await written(store, 6)
    await store.table.write(change)
    fault = (await store.audit.verify()).fault
    assert isinstance(fault, AuditFault)
    assert (fault.number, reason in fault.reason) == (number, True), fault
