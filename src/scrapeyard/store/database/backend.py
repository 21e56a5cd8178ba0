"""The differences between the databases. Everything else in this folder is common to both."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Executable, Row
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from scrapeyard.errors import SettingsInvalid
from scrapeyard.store.database.transaction import T, Work


class DatabaseReader(Protocol):
    """Connections that only read."""

    async def rows(self, query: Executable, given: Mapping[str, Any]) -> Sequence[Row[Any]]:
        """All rows of one query, outside any transaction."""

    async def close(self) -> None:
        """Close every connection. No query may be under way."""


class Engines(NamedTuple):
    """`reader` runs each query on its own; `writer` opens a transaction that may write."""

    reader: DatabaseReader
    writer: AsyncEngine
    single: AsyncEngine | None = None
    """Runs one INSERT atomically with all its rows, without a transaction around it; None if only a transaction makes
    many rows atomic."""


class Backend(Protocol):
    """One kind of database."""

    insert: Callable[..., Any]
    """Builds an INSERT that supports ON CONFLICT."""

    def open(self) -> Engines:
        """Engines that connect when first used."""

    async def play(self, engines: Engines, work: Work[T]) -> T:
        """Run a script in one transaction that may write."""

    def alone(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A connection in its own transaction, with every other process that asks for the same locked out. For
        migrations; commits at the end."""

    async def compact(self, engines: Engines) -> None:
        """Rewrite the database without remains of deleted rows, if it does not clear them by itself."""

    def new_schema(self) -> Sequence[str]:
        """Statements that make the newest schema in an empty database; none if the migrations must make it."""

    def unusable(self, error: DBAPIError) -> SettingsInvalid | None:
        """What to raise at the start if the database cannot be used as it is; None if waiting may help."""

    def is_away(self, error: DBAPIError) -> bool:
        """Whether the database is unavailable, rather than the statement or its data wrong."""

    def is_clash(self, error: DBAPIError) -> bool:
        """Whether two transactions conflicted: the same work may succeed if repeated at once."""
