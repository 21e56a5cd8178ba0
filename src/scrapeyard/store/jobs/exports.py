"""Exports in the store."""

from typing import Any, Final

from msgspec import json
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    RowMapping,
    Table,
    Text,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import ExportWish
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.jobs.rules.rows import to_swept
from scrapeyard.store.tables.jobs import JOBS
from scrapeyard.store.tables.runs import ID, METADATA

EXPORTS = Table(
    "exports",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("job_id", ID, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("wish", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("progress", Double, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("holder", Text, nullable=False),
    Column("lease_until", Double),
    Column("notes", LargeBinary),
    CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", name="exports_state"),
    CheckConstraint("(state = 'running') = (lease_until IS NOT NULL)", name="exports_lease"),
    CheckConstraint("(state IN ('done', 'failed')) = (finished_at IS NOT NULL)", name="exports_finished_at"),
    CheckConstraint("(state = 'done') = (key <> '')", name="exports_key"),
    CheckConstraint("(state = 'failed') = (error <> '')", name="exports_error"),
    Index("exports_by_job", "job_id", "created_at"),
    Index("exports_by_state", "state", "created_at"),
)

_WISH: Final = json.Decoder(ExportWish)
_NOTES: Final = json.Decoder(tuple[str, ...])
_NAMES: Final = tuple(column.name for column in EXPORTS.c if column.name not in ("wish", "state", "notes"))


class SqlExports(SqlPart):
    """The ExportStore."""

    async def add(self, export: Export) -> bool:
        """Write it as QUEUED. Replaces a final one of the same id, else leaves it. False if there is no such job, or
        its results were swept."""
        row = _row(export)

        async def work(connection: AsyncConnection) -> bool:
            # The row is locked until the end, so that the job is not deleted meanwhile.
            query = select(JOBS.c.id, JOBS.c.swept).where(JOBS.c.id == export.job_id).with_for_update()
            job = (await connection.execute(query)).mappings().first()
            if job is None or "results" in to_swept(job):
                return False
            insert = self._database.insert(EXPORTS).values(row)
            over = {name: insert.excluded[name] for name in row if name != "id"}
            await connection.execute(
                insert.on_conflict_do_update(
                    index_elements=["id"], set_=over, where=EXPORTS.c.state.in_(("done", "failed"))
                )
            )
            return True

        return await self._database.write(work)

    async def get(self, export_id: str) -> Export | None:
        """One export; None if there is none."""
        rows = await self._database.fetch(select(EXPORTS).where(EXPORTS.c.id == export_id))
        return _export(rows[0]) if rows else None

    async def of_job(self, job_id: str) -> list[Export]:
        """The exports of one job, the oldest first."""
        query = select(EXPORTS).where(EXPORTS.c.job_id == job_id).order_by(EXPORTS.c.created_at, EXPORTS.c.id)
        return [_export(row) for row in await self._database.fetch(query)]

    async def claim(self, export_id: str | None, holder: str, now: float, lease_until: float) -> Export | None:
        """Claim a free export: this one, or the oldest if None is given. None if there is nothing to claim."""
        free = or_(
            EXPORTS.c.state == ExportState.QUEUED.value,
            (EXPORTS.c.state == ExportState.RUNNING.value) & (EXPORTS.c.lease_until <= now),
        )
        query = select(EXPORTS.c.id).where(free).order_by(EXPORTS.c.created_at, EXPORTS.c.id).limit(1)
        found = await self._database.fetch(query if export_id is None else query.where(EXPORTS.c.id == export_id))
        if not found:
            return None
        taken = {
            "state": ExportState.RUNNING.value,
            "holder": holder,
            "lease_until": lease_until,
            "started_at": now,
            "attempt": EXPORTS.c.attempt + 1,
            "progress": 0.0,
            "rows": 0,
        }
        statement = update(EXPORTS).where(EXPORTS.c.id == found[0]["id"], free).values(taken).returning(*EXPORTS.c)
        rows = await self._database.change(statement)
        return _export(rows[0]) if rows else None

    async def renew(self, export: Export) -> bool:
        """Write progress, rows and lease. False if it is no longer this holder's."""
        values = {"progress": export.progress, "rows": export.rows, "lease_until": export.lease_until}
        return await self._change(export, values)

    async def end(self, export: Export) -> bool:
        """Write a final state, or QUEUED to give it back. False if it is no longer this holder's."""
        row = _row(export) | {"lease_until": None}
        if export.state is ExportState.QUEUED:
            row["attempt"] = export.attempt - 1
        return await self._change(export, {name: row[name] for name in row if name not in ("id", "job_id", "wish")})

    async def _change(self, export: Export, values: dict[str, Any]) -> bool:
        statement = update(EXPORTS).where(_held(export)).values(values).returning(EXPORTS.c.id)
        return bool(await self._database.change(statement))


def _held(export: Export) -> ColumnElement[bool]:
    return (
        (EXPORTS.c.id == export.id)
        & (EXPORTS.c.state == ExportState.RUNNING.value)
        & (EXPORTS.c.holder == export.holder)
        & (EXPORTS.c.attempt == export.attempt)
    )


def _row(export: Export) -> dict[str, Any]:
    row = {name: getattr(export, name) for name in _NAMES}
    notes = json.encode(export.notes) if export.notes else None
    return row | {"wish": json.encode(export.wish), "state": export.state.value, "notes": notes}


def _export(row: RowMapping) -> Export:
    plain = {name: row[name] for name in _NAMES}
    notes = _NOTES.decode(row["notes"]) if row["notes"] else ()
    return Export(wish=_WISH.decode(row["wish"]), state=ExportState(row["state"]), notes=notes, **plain)
