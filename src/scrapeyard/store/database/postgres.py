"""PostgreSQL, by asyncpg.

A connection lost since its last use is noticed by the next statement, which is then retried on another one. Every wait
has a timeout: connecting, queries, and getting a connection from the pool.
"""

import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final

from sqlalchemy import Executable, Row, Table, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from scrapeyard.errors import SettingsInvalid
from scrapeyard.extras import missing
from scrapeyard.store.database.backend import Engines
from scrapeyard.store.database.transaction import BulkInsert, Execute, StatementCache, T, Work
from scrapeyard.store.tables.content import CLEAR, ContentSealer

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 20.0
_DIALECT: Final = asyncpg.dialect()  # type: ignore[no-untyped-call]
_PHRASES: Final = StatementCache(_DIALECT)
_OPTIONS: Final = {"sslmode", "sslrootcert", "sslcert", "sslkey", "application_name", "host", "port"}
_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_MIGRATION_LOCK: Final = 0x5C4A_9E7A_4D00
"""Key of our advisory lock: an arbitrary number that no other program should use."""

_AWAY: Final = ("08", "28", "3D", "53", "57", "58")
"""Classes of SQLSTATE: connection, login, no such database, resources, operator intervention, system."""
_CLASH: Final = ("40001", "40P01")
"""Serialization failure and deadlock."""


class Postgres:
    """A server."""

    insert = staticmethod(postgresql.insert)

    def __init__(self, url: URL, content: ContentSealer = CLEAR) -> None:
        """Raises SettingsInvalid: the driver is an extra."""
        if words := missing("postgres"):
            raise SettingsInvalid(f"database_url: {words}")
        unknown = sorted(set(url.query) - _OPTIONS)
        if unknown:
            raise SettingsInvalid(f"database_url: unknown option {unknown[0]}; known are {', '.join(sorted(_OPTIONS))}")
        self._content = content
        self._settings: dict[str, Any] = {"application_name": url.query.get("application_name", "scrapeyard")}
        query = {name: value for name, value in url.query.items() if name in ("host", "port")}
        self._tls = _tls({name: str(value) for name, value in url.query.items() if name.startswith("ssl")})
        self._url = url.set(drivername="postgresql+asyncpg", query=query)

    def open(self) -> Engines:
        """One pool for all uses. Connections are not tested before use, since that costs a round trip each time."""
        engine = self._engine(pool_size=5, max_overflow=10, pool_timeout=CONNECT_SECONDS)
        single = engine.execution_options(isolation_level="AUTOCOMMIT")
        return Engines(_Reader(single), engine, single)

    async def play(self, engines: Engines, work: Work[T]) -> T:
        """Run it statement by statement."""
        async with engines.writer.begin() as connection:
            script, answer = work(), None
            while True:
                try:
                    step = script.send(answer)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                answer = await self._do(connection, step)

    async def _do(self, connection: AsyncConnection, step: Execute | BulkInsert) -> Any:
        if isinstance(step, BulkInsert):
            return await _put(connection, step.table, self._content.sealed_rows(step.table, step.rows))
        words, values = _PHRASES.phrase(step, self._content)
        result = await connection.exec_driver_sql(words, values)
        return _PHRASES.opened(step, result.all(), self._content) if result.returns_rows else []

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[AsyncConnection]:
        """Hold an advisory lock for the transaction; its end, or the loss of the connection, releases it."""
        async with self._engine(poolclass=NullPool).begin() as connection:
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
            yield connection

    async def compact(self, engines: Engines) -> None:
        """Nothing: autovacuum clears dead rows."""

    def new_schema(self) -> Sequence[str]:
        """None: a server is set up once."""
        return ()

    def unusable(self, error: DBAPIError) -> SettingsInvalid | None:  # noqa: ARG002  the port's signature
        """None: a server that refuses may be starting."""
        return None

    def is_away(self, error: DBAPIError) -> bool:
        """By SQLSTATE; a lost connection has none, or one of class 08."""
        state = getattr(error.orig, "sqlstate", None)
        return error.connection_invalidated or (state or "").startswith(_AWAY)

    def is_clash(self, error: DBAPIError) -> bool:
        """A deadlock or a serialization failure."""
        return getattr(error.orig, "sqlstate", None) in _CLASH

    def _engine(self, **options: Any) -> AsyncEngine:
        arguments = {"timeout": CONNECT_SECONDS, "command_timeout": ANSWER_SECONDS, "server_settings": self._settings}
        if self._tls is not None:
            arguments["ssl"] = self._tls
        engine = create_async_engine(self._url, connect_args=arguments, hide_parameters=True, **options)
        self._content.attach(engine.dialect)
        return engine


def _tls(given: Mapping[str, str]) -> str | ssl.SSLContext | None:
    """What the driver takes as `ssl`, for the options of libpq; None: its default. Raises SettingsInvalid."""
    mode = given.get("sslmode")
    if mode is not None and mode not in _MODES:
        raise SettingsInvalid(f"database_url: sslmode: {mode} is not known; write one of {', '.join(_MODES)}")
    if not given.keys() - {"sslmode"}:
        return mode
    if mode not in ("verify-ca", "verify-full"):
        raise SettingsInvalid("database_url: sslrootcert, sslcert and sslkey need sslmode=verify-full, or verify-ca")
    for name in sorted(given.keys() - {"sslmode"}):
        if not os.access(given[name], os.R_OK):
            raise SettingsInvalid(f"database_url: {name}: {given[name]} cannot be read")
    try:
        context = ssl.create_default_context(cafile=given.get("sslrootcert"))
        context.check_hostname = mode == "verify-full"
        if "sslcert" in given:
            context.load_cert_chain(given["sslcert"], given.get("sslkey"))
    except OSError as error:
        raise SettingsInvalid(f"database_url: sslrootcert, sslcert or sslkey cannot be used: {error}") from None
    return context


class _Reader:
    """Reads through a pool that is shared."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def rows(self, query: Executable, given: Mapping[str, Any]) -> Sequence[Row[Any]]:
        """Waits for a free connection."""
        async with self._engine.connect() as connection:
            return (await connection.execute(query, given)).all()

    async def close(self) -> None:
        """Closes the pool as well."""
        await self._engine.dispose()


async def _put(connection: AsyncConnection, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
    """One statement with an array for each column."""
    if not rows:
        return 0
    arrays = tuple(map(list, zip(*rows, strict=True)))
    return (await connection.exec_driver_sql(_insert_arrays(table), arrays)).rowcount


@cache
def _insert_arrays(table: Table) -> str:
    types = (column.type.compile(_DIALECT).partition(" COLLATE")[0] for column in table.c)
    arrays = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(types, 1))
    names = ", ".join(f'"{column.name}"' for column in table.c)
    return f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"  # noqa: S608
