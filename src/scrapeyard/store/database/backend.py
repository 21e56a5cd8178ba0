"""What differs between the databases, declared. Everything else in this folder is common to both."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Executable, Row
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from scrapeyard.store.database.transaction import T, Work


class DatabaseReader(Protocol):
    """Connections that only read."""

    async def rows(self, query: Executable, given: Mapping[str, Any]) -> Sequence[Row[Any]]:
        """All rows of one query, outside of any transaction."""

    async def close(self) -> None:
        """Close every connection. No query may be under way."""


class Engines(NamedTuple):
    """`reader` runs each query by itself; `writer` opens a transaction that may write."""

    reader: DatabaseReader
    writer: AsyncEngine
    single: AsyncEngine | None = None
    """Writes one statement, with all its rows or none, without a transaction around it; None where only a transaction
    makes many rows one step."""


class Backend(Protocol):
    """One kind of database."""

    insert: Callable[..., Any]
    """Makes an INSERT that knows ON CONFLICT."""

    def open(self) -> Engines:
        """Engines that connect when first used."""

    async def play(self, engines: Engines, work: Work[T]) -> T:
        """Do a script in one transaction that may write."""

    def alone(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A connection in a transaction of its own, while every other process that asks the same is held off. For
        migrations; commits at the end."""

    def is_away(self, error: DBAPIError) -> bool:
        """Whether the database, rather than the statement or its data, is at fault."""

    def is_clash(self, error: DBAPIError) -> bool:
        """Whether two transactions stood in each other's way: the same work may succeed at once."""
