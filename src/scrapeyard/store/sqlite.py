"""SQLite: one file, shared by the processes of one machine.

Readers never wait (WAL). Writers of one process queue for its single writing connection; those of several processes
wait for the file up to BUSY_SECONDS. Transactions that write take the lock at their start, since a lock taken later may
be refused at once.
"""

import fcntl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Table, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from scrapeyard.errors import SettingsInvalid
from scrapeyard.store.backend import Engines

BUSY_SECONDS: Final = 10.0
_READERS: Final = 4
_PRAGMAS: Final = ("synchronous=NORMAL", "foreign_keys=ON", "temp_store=MEMORY", "cache_size=-16384")


class Sqlite:
    """A file. Its folder is made when it is not there."""

    insert = staticmethod(sqlite.insert)

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:" or url.query:
            raise SettingsInvalid("database_url: name a file without options, as in sqlite:///scrapeyard.db")
        self._path = Path(url.database)
        self._url = url.set(drivername="sqlite+aiosqlite")

    def open(self) -> Engines:
        """A few readers and one writer."""
        reader = self._engine(pool_size=_READERS, max_overflow=_READERS, pool_timeout=BUSY_SECONDS)
        writer = self._engine(pool_size=1, max_overflow=0, pool_timeout=BUSY_SECONDS)
        event.listen(writer.sync_engine, "begin", _begin_immediate)
        return Engines(reader, writer)

    async def insert_all(self, connection: AsyncConnection, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
        """One prepared statement, once for each row, within the driver."""
        if not rows:
            return 0
        marks = ", ".join("?" * len(table.c))
        statement = f"INSERT INTO {table.name} VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608  our own names
        return (await connection.exec_driver_sql(statement, list(rows))).rowcount

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[AsyncConnection]:
        """Hold a lock file; switch to WAL, which two processes must not do at once; then write."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        plain, writer = self._engine(poolclass=NullPool), self._engine(poolclass=NullPool)
        event.listen(writer.sync_engine, "begin", _begin_immediate)
        with self._path.with_name(self._path.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            async with plain.connect() as connection:
                await connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            async with writer.begin() as connection:
                yield connection

    def is_away(self, error: DBAPIError) -> bool:
        """Locked for too long, full, not readable: the message says which."""
        return isinstance(error, OperationalError)

    def is_clash(self, error: DBAPIError) -> bool:  # noqa: ARG002  the port's signature
        """Never: a transaction that writes takes the lock at its start."""
        return False

    def _engine(self, **options: Any) -> AsyncEngine:
        engine = create_async_engine(self._url, connect_args={"timeout": BUSY_SECONDS}, **options)
        event.listen(engine.sync_engine, "connect", _prepare)
        return engine


def _prepare(connection: Any, _record: object) -> None:
    # The driver must not begin transactions by its own rules: reads stand alone, writes begin as we say.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
