"""A table of PostgreSQL or SQLite: one row for each item, replaced when the item was redriven.

Rows are upserted by (job_id, item_key), a batch in one transaction, so a repeated batch changes nothing. `input` and
`data` are whole JSON documents: no value has to fit the type of a column.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Column, DateTime, Integer, MetaData, Table, Text, bindparam, cast, inspect
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from scrapeyard.errors import SettingsInvalid, SinkUnavailable
from scrapeyard.results.sinks.port import RefusedRecord, Repeats, SinkBatch, SinkRecord
from scrapeyard.settings import SinkTarget, hide_password
from scrapeyard.store.database.backend import Engines
from scrapeyard.store.database.database import make_backend

_KEY: Final = ("job_id", "item_key")
_DOCUMENTS: Final = ("input", "data")
_DATA_ERRORS: Final = ("22", "54")
"""Classes of SQLSTATE: a value that no column of its type can hold, such as U+0000 in PostgreSQL, or that is over a
limit of the server, such as its depth of nested documents."""


def results_table(name: str) -> Table:
    """The table `name`, or `schema.name`."""
    schema, _, plain = name.rpartition(".")
    document = Text().with_variant(JSONB(), "postgresql")
    return Table(
        plain,
        MetaData(),
        Column("job_id", Text, primary_key=True),
        Column("item_key", Text, primary_key=True),
        Column("scraper", Text, nullable=False),
        Column("version", Text, nullable=False),
        Column("status", Text, nullable=False),
        Column("exit_reason", Text, nullable=False),
        Column("http_status", Integer),
        Column("attempt", Integer, nullable=False),
        Column("finished_at", DateTime(timezone=True), nullable=False),
        Column("error", Text),
        Column("input", document, nullable=False),
        Column("data", document),
        schema=schema or None,
    )


class SqlSink:
    """A ResultSink. The table is created before the first batch, unless it exists."""

    repeats: Repeats = "once"

    def __init__(self, target: SinkTarget) -> None:
        """Raises SettingsInvalid."""
        self.name = target.name
        self._url = target.url.get_secret_value()
        try:
            self._backend = make_backend(self._url)
        except SettingsInvalid as error:
            words = error.message.removeprefix("database_url: ")
            raise SettingsInvalid(f"sinks.targets: {target.name}: url: {words}") from None
        self._table = results_table(target.table)
        self._upsert = self._made_upsert()
        self._engines: Engines | None = None
        self._is_ready = False
        self._creating = asyncio.Lock()

    async def start(self) -> None:
        """Make the pool, which connects when it is first used. May be called twice."""
        self._engines = self._engines or self._backend.open()

    async def stop(self) -> None:
        """Close the pool. May be called twice."""
        engines, self._engines = self._engines, None
        if engines is not None:
            await engines.reader.close()
            await engines.writer.dispose()

    async def check(self) -> str:
        """Whether the table exists with all columns, or can be made. Raises SinkUnavailable."""
        with self._translated():
            await self._prepare()
            async with self._open().writer.begin() as connection:
                found = await connection.run_sync(self._columns)
        missing = [column.name for column in self._table.c if column.name not in found]
        if missing:
            raise SinkUnavailable(f"the table {self._table.fullname} has no column {', '.join(missing)}; add them")
        return f"table {self._table.fullname} in {hide_password(self._url)}"

    async def deliver(self, batch: SinkBatch) -> Sequence[RefusedRecord]:
        """Upsert the batch in one transaction. A record with a value that the database cannot hold is refused alone."""
        with self._translated():
            await self._prepare()
            try:
                async with self._open().writer.begin() as connection:
                    await connection.execute(self._upsert, [_row(record) for record in batch.records])
            except DBAPIError as error:
                if not _is_data_error(error):
                    raise
                return await self._deliver_each(batch)
        return ()

    async def _deliver_each(self, batch: SinkBatch) -> list[RefusedRecord]:
        refused = []
        async with self._open().writer.begin() as connection:
            for record in batch.records:
                try:
                    async with connection.begin_nested():
                        await connection.execute(self._upsert, _row(record))
                except DBAPIError as error:
                    if not _is_data_error(error):
                        raise
                    refused.append(RefusedRecord(item_key=record.item_key, why=_words(error)))
        return refused

    async def _prepare(self) -> None:
        async with self._creating:
            if not self._is_ready:
                try:
                    await self._create()
                except DBAPIError:  # another process created it at the same moment, or it is truly impossible
                    await self._create()
                self._is_ready = True

    async def _create(self) -> None:
        async with self._open().writer.begin() as connection:
            await connection.run_sync(self._table.metadata.create_all)

    def _columns(self, connection: Any) -> set[str]:
        return {each["name"] for each in inspect(connection).get_columns(self._table.name, self._table.schema)}

    def _made_upsert(self) -> Any:
        """An older outcome never replaces a newer one: a process that was stopped for long may deliver late."""
        values: dict[str, Any] = {column.name: bindparam(column.name, type_=column.type) for column in self._table.c}
        values |= {name: cast(bindparam(name, type_=Text()), self._table.c[name].type) for name in _DOCUMENTS}
        insert = self._backend.insert(self._table).values(values)
        new = insert.excluded
        return insert.on_conflict_do_update(
            index_elements=list(_KEY),
            set_={column.name: new[column.name] for column in self._table.c if column.name not in _KEY},
            where=self._table.c.finished_at <= new.finished_at,
        )

    def _open(self) -> Engines:
        if self._engines is None:
            raise SinkUnavailable("the sink is stopped")
        return self._engines

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            self._is_ready = False  # the table may be gone
            raise SinkUnavailable(_words(error)) from None
        except (SQLAlchemyError, OSError) as error:
            raise SinkUnavailable(f"the database does not answer: {error}"[:500]) from None


def _row(record: SinkRecord) -> dict[str, Any]:
    return {
        "job_id": record.job_id,
        "item_key": record.item_key,
        "scraper": record.scraper,
        "version": record.version,
        "status": record.status,
        "exit_reason": record.exit_reason,
        "http_status": record.http_status,
        "attempt": record.attempt,
        "finished_at": datetime.fromtimestamp(record.finished_at, UTC),
        "error": record.error or None,
        "input": bytes(record.input).decode(),
        "data": bytes(record.data).decode(),
    }


def _is_data_error(error: DBAPIError) -> bool:
    return str(getattr(error.orig, "sqlstate", None) or "").startswith(_DATA_ERRORS)


def _words(error: DBAPIError) -> str:
    return str(error.orig).partition("\n")[0].rpartition(">: ")[2][:500]
