"""`audit verify`: reads the database itself, names a changed row, and compares with what it printed before."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scrapeyard.cli.operations.audit import group
from scrapeyard.model.audit import AuditEntry
from scrapeyard.store.sql import SqlStore
from tests.services.sqlite import migrated

ENTRY = AuditEntry(
    at=1.0,
    client="ops",
    role="admin",
    key_id="",
    address="",
    action="put_site",
    resource="/api/sites/a.example",
    status=200,
    code="",
    request_id="r",
)


async def write(url: str, count: int) -> None:
    store = SqlStore(url)
    await store.start()
    await store.audit.append([ENTRY] * count)
    await store.stop()


def test_a_changed_row_is_named_also_when_the_chain_was_computed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = migrated(tmp_path / "yard.db")
    monkeypatch.setenv("SCRAPEYARD_DATABASE_URL", url)
    monkeypatch.chdir(tmp_path)

    def verify(*words: str) -> Result:
        return CliRunner().invoke(group, ["verify", *words])

    asyncio.run(write(url, 3))
    whole = verify()
    assert (whole.exit_code, whole.output.split(";")[0]) == (0, "3 rows are whole")
    known = whole.output.split()[-1]
    asyncio.run(write(url, 2))
    assert verify("--expect", known).exit_code == 0
    assert verify("--expect", f"3:{'0' * 64}").exit_code == 1
    assert verify("--expect", "9:00").output.strip() == "row 9: the row is missing"
    with closing(sqlite3.connect(tmp_path / "yard.db")) as database, database:
        database.execute("DROP TRIGGER audit_no_update")
        database.execute("UPDATE audit SET client = 'somebody' WHERE number = 4")
    tampered = verify("--expect", known)
    assert (tampered.exit_code, tampered.output.strip()) == (1, "row 4: the row was changed after it was written")
