"""The one place that opens connections and translates database errors into ours."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from sqlalchemy import Executable, RowMapping
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.errors import SettingsInvalid, StoreUnavailable, StoreUncertain, refuses_certificate
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.store.database.backend import Backend, Engines
from scrapeyard.store.database.migrate import migrate
from scrapeyard.store.database.transaction import Work
from scrapeyard.store.tables.content import CLEAR, ContentSealer
from scrapeyard.telemetry.metrics import Metrics

T = TypeVar("T")

_TRIES: Final = 5
UNTRUSTED: Final = (
    "name the authority that signed it in DATABASE_URL: ?sslmode=verify-full&sslrootcert=/path/to/ca.pem. "
    "The host must be one that the certificate names"
)
_REMEDY: Final = "check DATABASE_URL and the server or file behind it"


class Database:
    """Connections for reading and writing. Raises StoreUnavailable for every failure of the database: StoreUncertain if
    it went away after it was asked to write. Errors of the data (a constraint, a value that cannot be stored)
    propagate."""

    def __init__(
        self, url: str, *, temporary: bool = False, encrypts: bool = False, metrics: Metrics | None = None
    ) -> None:
        self.sealer = Sealer()
        """Seals secrets before they are written; it gets its keys after the start."""
        self.backend = make_backend(url, ContentSealer(self.sealer, encrypts=encrypts), temporary=temporary)
        self._metrics = metrics or Metrics()
        self._engines: Engines | None = None
        self._busy: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Migrate the schema and open. Does nothing if already open."""
        if self._engines is None:
            with self._translated():
                try:
                    await asyncio.to_thread(migrate, self.backend)
                except DBAPIError as error:
                    raise self.backend.unusable(error) or error from None
            self._engines = self.backend.open()

    async def stop(self) -> None:
        """Close every connection once work under way has ended. May be called twice."""
        engines, self._engines = self._engines, None
        if engines is not None:
            await asyncio.gather(*self._busy, return_exceptions=True)
            await engines.reader.close()
            await engines.writer.dispose()

    async def fetch(self, query: Executable) -> Sequence[RowMapping]:
        """Rows of one query, outside any transaction."""
        return [row._mapping for row in await self.fetch_tuples(query, {})]

    async def fetch_tuples(self, query: Executable, given: Mapping[str, Any]) -> Sequence[Any]:
        """The same for a query with parameters; rows without column names, which is faster for thousands."""
        return await self._whole(self._again(lambda: self._open().reader.rows(query, given)), "read")

    async def change(self, statement: Executable) -> Sequence[RowMapping]:
        """Run one statement that writes; returns its rows if it has RETURNING."""

        async def work(connection: AsyncConnection) -> Sequence[RowMapping]:
            result = await connection.execute(statement)
            return result.mappings().all() if result.returns_rows else ()

        return await self.write(work)

    async def write(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in one transaction, again if it conflicted with another transaction. If the caller is cancelled,
        the work still completes."""
        return await self._whole(self._transaction(work))

    async def play(self, work: Work[T]) -> T:
        """Run a script in one transaction: as `write`, and faster the more statements it has."""
        return await self._whole(self._again(lambda: self.backend.play(self._open(), work)))

    async def write_rows(self, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        """Run one INSERT for all rows or none; returns the first column of its rows if it has RETURNING. At most 500
        rows: more would not fit into one statement."""

        async def work(connection: AsyncConnection) -> Sequence[Any]:
            result = await connection.execute(statement, rows)
            return result.scalars().all() if result.returns_rows else ()

        return await self._whole(self._transaction(work, single=True))

    async def compact(self) -> None:
        """Overwrite what was deleted, where the database does not do that by itself. Writers wait meanwhile."""
        await self._whole(self.backend.compact(self._open()))

    def insert(self, *arguments: Any) -> Any:
        """An INSERT that supports ON CONFLICT."""
        return self.backend.insert(*arguments)

    async def _whole(self, work: Coroutine[Any, Any, T], operation: str = "write") -> T:
        # A statement cancelled half-way would leave SQLite's connection open, with its lock.
        task = asyncio.create_task(work)
        self._busy.add(task)
        task.add_done_callback(self._done)
        began, well = time.perf_counter(), True
        try:
            with self._translated():
                return await asyncio.shield(task)
        except StoreUnavailable:
            well = False
            raise
        finally:
            self._metrics.stored(operation, time.perf_counter() - began, well=well)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._busy.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved here, since a cancelled caller does not

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]], *, single: bool = False) -> T:
        sent = False

        async def once() -> T:
            nonlocal sent
            engines = self._open()
            alone = engines.single if single else None
            async with engines.writer.begin() if alone is None else alone.connect() as connection:
                sent = True
                return await work(connection)

        try:
            with self._translated():
                return await self._again(once)
        except StoreUnavailable as error:
            if sent and _unanswered(error.__cause__):
                raise StoreUncertain(error.message) from error.__cause__
            raise

    async def _again(self, work: Callable[[], Awaitable[T]]) -> T:
        """Retry after a conflict, and once after a connection that was lost since its last use. The lost work may have
        been done; all our statements may be repeated."""
        lost = False
        for _ in range(_TRIES - 1):
            try:
                return await work()
            except DBAPIError as error:
                if not self.backend.is_clash(error) and (lost or not error.connection_invalidated):
                    raise
                lost = lost or error.connection_invalidated
        return await work()

    def _open(self) -> Engines:
        if self._engines is None:
            raise StoreUnavailable("the store is not started; start it before its first use")
        return self._engines

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if self.backend.is_away(error) or self.backend.is_clash(error):
                raise StoreUnavailable(f"the database does not answer ({error.orig}); {_REMEDY}") from error
            raise
        except (OSError, PoolTimeout) as error:
            remedy = UNTRUSTED if refuses_certificate(error) else _REMEDY
            raise StoreUnavailable(
                f"the database does not answer ({str(error) or 'no answer in time'}); {remedy}"
            ) from error


def _unanswered(error: BaseException | None) -> bool:
    """Whether the database said nothing, rather than no."""
    return isinstance(error, OSError | PoolTimeout) or getattr(error, "connection_invalidated", False)


class SqlPart:
    """One noun of the store, on the database that all of them share."""

    def __init__(self, database: Database) -> None:
        self._database = database


def make_backend(url: str, content: ContentSealer = CLEAR, *, temporary: bool = False) -> Backend:
    """The kind of database that a URL names. Raises SettingsInvalid."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise SettingsInvalid("database_url: not a URL; write sqlite:///path or postgresql://user@host/name") from None
    if parsed.drivername == "sqlite":
        from scrapeyard.store.database.sqlite import Sqlite  # noqa: PLC0415 - either dialect loads slowly

        return Sqlite(parsed, content, temporary=temporary)
    if parsed.drivername in ("postgresql", "postgres"):
        from scrapeyard.store.database.postgres import Postgres  # noqa: PLC0415 - the same

        return Postgres(parsed, content)
    raise SettingsInvalid(f"database_url: {parsed.drivername} is not known; take sqlite, postgresql or dynamodb")
