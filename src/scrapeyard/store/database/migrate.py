"""Brings the schema up to date. Safe to run twice, and from many processes at once.

An empty SQLite file gets the newest schema at once, from `migrations/sqlite.sql`: that takes a tenth of the time of all
migrations, and each job without a server begins with such a file. A test compares both ways, and

    python -m tests.contract.store.test_new_schema

writes the file anew after a new migration. Everything else goes through Alembic.

Alembic has its state in module globals and is synchronous, so it runs in its own thread with its own event loop, one
migration at a time in this process; the database locks out other processes.
"""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from scrapeyard.errors import SettingsInvalid
from scrapeyard.store.database.backend import Backend

FOLDER: Final = Path(__file__).parent.parent / "migrations"
HEAD: Final = "0032"
"""The newest revision in FOLDER; a database at this revision is left alone."""

_TABLE: Final = "alembic_version"
_STANDS_AT: Final = text(f"SELECT version_num FROM {_TABLE}")  # noqa: S608  our own name
_ONE_AT_A_TIME: Final = threading.Lock()


def migrate(backend: Backend) -> None:
    """Upgrade to HEAD. Blocks; call it from a thread without an event loop. Raises SettingsInvalid if it is newer."""
    with _ONE_AT_A_TIME:
        asyncio.run(_migrate(backend))


async def _migrate(backend: Backend) -> None:
    async with backend.alone() as connection:
        stands_at = await connection.run_sync(_stands_at)
        if stands_at is not None and stands_at > HEAD:
            raise SettingsInvalid(
                f"database_url: the database has schema {stands_at}, and this version of scrapeyard knows {HEAD} at "
                "most; start the newer version again, or restore a backup from before the upgrade"
            )
        if stands_at is None and (statements := backend.new_schema()):
            await connection.run_sync(_create, statements)
        elif stands_at != HEAD:
            await connection.run_sync(_upgrade)


async def revision(backend: Backend) -> str | None:
    """The schema's revision; None if there is no schema. Changes nothing."""
    engines = backend.open()
    try:
        return (await engines.reader.rows(_STANDS_AT, {}))[0][0]  # type: ignore[no-any-return]
    except DBAPIError as error:
        if _TABLE not in str(error.orig):
            raise
        return None
    finally:
        await engines.reader.close()
        await engines.writer.dispose()


def _stands_at(connection: Connection) -> str | None:
    return connection.scalar(_STANDS_AT) if inspect(connection).has_table(_TABLE) else None


def _create(connection: Connection, statements: Sequence[str]) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)


def _upgrade(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415  a start that finds all up to date need not load it
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "head")
