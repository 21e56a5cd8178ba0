"""The audit: a chain of rows that are never changed.

A second table has one row: where the chain ends, and up to where retention has removed it. It is locked while rows are
appended, so that writers of all processes form one chain. Triggers refuse to change a row, and to remove one that
retention has not released.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from msgspec.structs import asdict
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    RowMapping,
    Select,
    Table,
    Text,
    delete,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model.audit import AuditChain, AuditCheck, AuditEntry, AuditRow
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import as_cursor, numbers
from scrapeyard.store.ports.audit import AuditFilter, AuditPage, audit_columns, to_audit_row
from scrapeyard.store.tables.runs import METADATA

AUDIT: Final = Table(
    "audit",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("client", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("code", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("count", Integer, nullable=False),
    Column("before", LargeBinary),
    Column("after", LargeBinary),
    Column("hash", Text, nullable=False),
    Index("audit_by_at", "at"),
    Index("audit_by_client", "client", "number"),
)
CHAIN: Final = Table(
    "audit_chain",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("last_number", BigInteger, nullable=False),
    Column("last_hash", Text, nullable=False),
    Column("removed_number", BigInteger, nullable=False),
    Column("removed_hash", Text, nullable=False),
    CheckConstraint("id = 1", name="audit_chain_has_one_row"),
)
_EMPTY: Final = {"id": 1, **asdict(AuditChain())}
_PAGE: Final = 1000


class SqlAudit(SqlPart):
    """The AuditStore."""

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Add rows to the end of the chain, in order."""

        async def work(connection: AsyncConnection) -> None:
            chain = await self._lock(connection)
            rows = _to_chain(chain).following(entries)
            await connection.execute(AUDIT.insert(), [audit_columns(row) for row in rows])
            await connection.execute(update(CHAIN).values(last_number=rows[-1].number, last_hash=rows[-1].hash))

        if entries:
            await self._database.write(work)

    async def page(self, where: AuditFilter, cursor: str | None, limit: int) -> AuditPage:
        """Rows, newest first."""
        query = _filtered(select(AUDIT), where).order_by(AUDIT.c.number.desc()).limit(limit + 1)
        if cursor is not None:
            query = query.where(AUDIT.c.number < numbers(cursor, 1)[0])
        rows = [to_audit_row(row) for row in await self._database.fetch(query)]
        more = len(rows) > limit
        return AuditPage(rows=tuple(rows[:limit]), next_cursor=as_cursor(str(rows[limit - 1].number)) if more else None)

    async def verify(self) -> AuditCheck:
        """Read every row and compute its hash again."""
        chain = await self._chain()
        return await chain.verify(self._rows(chain.removed_number, chain.last_number))

    async def hash_of(self, number: int) -> str | None:
        """The hash that a row has; None if there is no such row."""
        rows = await self._database.fetch(select(AUDIT.c.hash).where(AUDIT.c.number == number))
        return rows[0]["hash"] if rows else None

    async def remove_before(self, at: float, most: int) -> int:
        """Remove the oldest rows if they were written before that time."""

        async def work(connection: AsyncConnection) -> int:
            chain = await self._lock(connection)
            first = select(AUDIT.c.number, AUDIT.c.hash, AUDIT.c.at).where(AUDIT.c.number > chain["removed_number"])
            rows = (await connection.execute(first.order_by(AUDIT.c.number).limit(most))).mappings().all()
            old = list(_while_before(rows, at))
            if old:
                released = {"removed_number": old[-1]["number"], "removed_hash": old[-1]["hash"]}
                await connection.execute(update(CHAIN).values(released))
                await connection.execute(delete(AUDIT).where(AUDIT.c.number <= old[-1]["number"]))
            return len(old)

        return await self._database.write(work)

    async def _lock(self, connection: AsyncConnection) -> RowMapping:
        """The chain's row; other writers wait until the transaction ends. SQLite has locked its file already."""
        await connection.execute(self._database.insert(CHAIN).values(_EMPTY).on_conflict_do_nothing())
        return (await connection.execute(select(CHAIN).with_for_update())).mappings().one()

    async def _chain(self) -> AuditChain:
        rows = await self._database.fetch(select(CHAIN))
        return _to_chain(rows[0]) if rows else AuditChain()

    async def _rows(self, after: int, until: int) -> AsyncIterator[AuditRow]:
        while True:
            query = select(AUDIT).where(AUDIT.c.number > after, AUDIT.c.number <= until)
            rows = await self._database.fetch(query.order_by(AUDIT.c.number).limit(_PAGE))
            for row in rows:
                yield to_audit_row(row)
            if len(rows) < _PAGE:
                return
            after = rows[-1]["number"]


def _to_chain(row: RowMapping) -> AuditChain:
    return AuditChain(**{name: row[name] for name in AuditChain.__struct_fields__})


def _while_before(rows: Sequence[RowMapping], at: float) -> Sequence[RowMapping]:
    """Rows up to the first that must stay. Clocks of gateways differ a little, so times are not quite in order."""
    stays = next((place for place, row in enumerate(rows) if row["at"] >= at), len(rows))
    return rows[:stays]


def _filtered(query: Select[Any], where: AuditFilter) -> Select[Any]:
    if where.client is not None:
        query = query.where(AUDIT.c.client == where.client)
    if where.action is not None:
        query = query.where(AUDIT.c.action == where.action)
    if where.resource is not None:
        query = query.where(AUDIT.c.resource.startswith(where.resource, autoescape=True))
    if where.refused is not None:
        query = query.where(AUDIT.c.code != "" if where.refused else AUDIT.c.code == "")
    if where.since is not None:
        query = query.where(AUDIT.c.at >= where.since)
    if where.until is not None:
        query = query.where(AUDIT.c.at < where.until)
    return query
