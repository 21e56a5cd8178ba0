"""SQLite: one file, shared by the processes of one machine.

Readers never wait (WAL). A query is one call to a thread, since switching threads takes longer than the query. Writers
of one process queue for its single writing connection; those of several processes wait for the file up to BUSY_SECONDS.
Writing transactions take the lock at their start, since a lock taken later may be refused at once.
"""

import asyncio
import fcntl
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import Connection, Executable, Row, Table, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from scrapeyard.errors import SettingsInvalid
from scrapeyard.store.database.backend import Engines
from scrapeyard.store.database.transaction import Execute, Script, StatementCache, T, Work
from scrapeyard.store.tables.content import CLEAR, ContentSealer

NEW_SCHEMA: Final = Path(__file__).parent.parent / "migrations" / "sqlite.sql"
BUSY_SECONDS: Final = 10.0
_READERS: Final = 4
_CACHE_KB: Final = 16 * 1024
"""Memory for pages, of the writer; the readers share as much. The system caches the file as well."""
_ROWS: Final = (64, 8, 1)
"""Rows that one statement inserts."""
_PHRASES: Final = StatementCache(sqlite.dialect(paramstyle="qmark"))
_PRAGMAS: Final = ("foreign_keys=ON", "temp_store=MEMORY")
# The driver looks for an adapter of every value that is bytes or None, and tries two protocols if there is none.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(type(None), cast("Any", {}.get))


class Sqlite:
    """A database file. Its folder is created if missing. Nothing waits until the disk has written a `temporary` one."""

    insert = staticmethod(sqlite.insert)

    def __init__(self, url: URL, content: ContentSealer = CLEAR, *, temporary: bool = False) -> None:
        if not url.database or url.database == ":memory:" or url.query:
            raise SettingsInvalid("database_url: name a file without options, as in sqlite:///scrapeyard.db")
        self._path = Path(url.database)
        self._synchronous = "OFF" if temporary else "NORMAL"
        self._content = content
        self._url = url.set(drivername="sqlite+aiosqlite")

    def open(self) -> Engines:
        """A few readers and one writer."""
        writer = self._engine(pool_size=1, max_overflow=0, pool_timeout=BUSY_SECONDS)
        event.listen(writer.sync_engine, "begin", _begin_immediate)
        return Engines(_Reader(self._url, self._content), writer)

    async def play(self, engines: Engines, work: Work[T]) -> T:
        """Run it in one call to the writing connection's thread: switching threads takes longer than a statement."""
        async with engines.writer.connect() as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            played: T = await driver._execute(self._play, driver._conn, work)
            return played

    def _play(self, connection: sqlite3.Connection, work: Work[T]) -> T:
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                played = self._follow(connection, work())
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
            return played
        except sqlite3.Error as error:
            raise DBAPIError.instance("a script", (), error, sqlite3.Error) from error

    def _follow(self, connection: sqlite3.Connection, script: Script[T]) -> T:
        answer: Any = None
        while True:
            try:
                step = script.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(step, Execute):
                rows = connection.execute(*_PHRASES.phrase(step, self._content)).fetchall()
                answer = _PHRASES.opened(step, rows, self._content)
            else:
                answer = _put(connection, step.table, self._content.sealed_rows(step.table, step.rows))

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

    async def compact(self, engines: Engines) -> None:
        """VACUUM, and empty the log: both hold remains of deleted rows otherwise."""
        async with engines.writer.connect() as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            await driver._execute(_vacuum, driver._conn)

    def new_schema(self) -> Sequence[str]:
        """From the file beside the migrations, one statement after each blank line."""
        return NEW_SCHEMA.read_text().strip().split("\n\n")

    def unusable(self, error: DBAPIError) -> SettingsInvalid | None:
        """The file is no database, is damaged, or cannot be written: waiting does not help."""
        name = getattr(error.orig, "sqlite_errorname", "")
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            remedy = "restore it from a backup, or move it away to start with an empty one"
        elif name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            remedy = "make it and its folder writable for this user, or choose another"
        else:
            return None
        return SettingsInvalid(f"database_url: {self._path} cannot be used: {error.orig}; {remedy}")

    def is_away(self, error: DBAPIError) -> bool:
        """Locked for too long, full or unreadable: the message says which."""
        return isinstance(error, OperationalError)

    def is_clash(self, error: DBAPIError) -> bool:  # noqa: ARG002  the port's signature
        """Never: a writing transaction takes the lock at its start."""
        return False

    def _engine(self, **options: Any) -> AsyncEngine:
        engine = create_async_engine(self._url, connect_args={"timeout": BUSY_SECONDS}, hide_parameters=True, **options)
        self._content.attach(engine.dialect)
        event.listen(engine.sync_engine, "connect", _preparing(_CACHE_KB, self._synchronous))
        return engine


class _Reader:
    """A few connections, each used by one thread at a time."""

    def __init__(self, url: URL, content: ContentSealer) -> None:
        self._engine = create_engine(
            url.set(drivername="sqlite+pysqlite"),
            connect_args={"timeout": BUSY_SECONDS},
            hide_parameters=True,
            pool_size=_READERS,
            max_overflow=0,
            isolation_level="AUTOCOMMIT",
            skip_autocommit_rollback=True,
        )
        content.attach(self._engine.dialect)
        event.listen(self._engine, "connect", _preparing(_CACHE_KB // _READERS, "NORMAL"))
        self._threads = ThreadPoolExecutor(_READERS, "sqlite-reader")

    async def rows(self, query: Executable, given: Mapping[str, Any]) -> Sequence[Row[Any]]:
        """Waits for a free thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._rows, query, given)

    async def close(self) -> None:
        """Ends the threads as well."""
        self._threads.shutdown()
        self._engine.dispose()

    def _rows(self, query: Executable, given: Mapping[str, Any]) -> Sequence[Row[Any]]:
        with self._engine.connect() as connection:
            return connection.execute(query, given).all()


def _preparing(cache_kb: int, synchronous: str) -> Callable[[Any, object], None]:
    def prepare(connection: Any, _record: object) -> None:
        # The driver must not begin transactions by its own rules: reads run alone, writes begin explicitly.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in (*_PRAGMAS, f"cache_size=-{cache_kb}", f"synchronous={synchronous}"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    return prepare


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _vacuum(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        raise DBAPIError.instance("VACUUM", (), error, sqlite3.Error) from error


def _put(connection: sqlite3.Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
    """Insert many rows with each statement: every statement hands the interpreter to another thread and waits for it.
    Of few sizes, so that the driver keeps them prepared."""
    new = at = 0
    for size in _ROWS:
        while len(rows) - at >= size:
            values = list(chain.from_iterable(rows[at : at + size]))
            new += connection.execute(_insertion(table.name, len(table.c), size), values).rowcount
            at += size
    return new


@lru_cache(256)
def _insertion(table: str, columns: int, rows: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"INSERT INTO {table} VALUES {', '.join([row] * rows)} ON CONFLICT DO NOTHING"  # noqa: S608  our own names
