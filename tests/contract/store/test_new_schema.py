"""An empty SQLite file gets at once what all migrations would make of it, one by one."""

import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import make_url

from scrapeyard.store.database.migrate import HEAD, migrate
from scrapeyard.store.database.sqlite import NEW_SCHEMA, Sqlite


class _Migrated(Sqlite):
    def new_schema(self) -> Sequence[str]:
        """None: the migrations make it."""
        return ()


def dumped(kind: type[Sqlite], folder: Path) -> list[str]:
    """The statements that make the same database, with its rows."""
    path = folder / f"{kind.__name__}.db"
    migrate(kind(make_url(f"sqlite:///{path}")))
    with closing(sqlite3.connect(path)) as connection:
        lines = (line.rstrip("; \n") + ";" for line in connection.iterdump())
        return [line for line in lines if line not in ("BEGIN TRANSACTION;", "COMMIT;")]


def test_a_new_file_has_what_the_migrations_make(tmp_path: Path) -> None:
    made = dumped(Sqlite, tmp_path)
    assert made == dumped(_Migrated, tmp_path)
    assert f"""INSERT INTO "alembic_version" VALUES('{HEAD}');""" in made


def test_a_file_that_was_begun_by_migrations_is_left_to_them(tmp_path: Path) -> None:
    url = make_url(f"sqlite:///{tmp_path}/_Migrated.db")
    expected = dumped(_Migrated, tmp_path)
    migrate(Sqlite(url))
    assert dumped(_Migrated, tmp_path) == expected


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        lines = dumped(_Migrated, Path(name))
    NEW_SCHEMA.write_text("\n\n".join(line for line in lines if '"sqlite_sequence"' not in line) + "\n")
