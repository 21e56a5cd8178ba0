"""Snapshots of pages between crawls."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json
from sqlalchemy import BigInteger, Column, RowMapping, Table, delete, or_, select

from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.ports.exports import PageState, Snapshot
from scrapeyard.store.tables.content import Sealed, SealedText
from scrapeyard.store.tables.runs import ID, METADATA

SNAPSHOTS = Table(
    "snapshots",
    METADATA,
    Column("scope", ID, primary_key=True),
    Column("page", ID, primary_key=True),
    Column("url", SealedText("snapshots.url"), nullable=False),
    Column("job_id", ID, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("state", Sealed("snapshots.state"), nullable=False),
    Column("before", Sealed("snapshots.before")),
)

_STATE: Final = json.Decoder(PageState)
_ROWS: Final = 500
"""Maximum rows of one INSERT."""


class SqlSnapshots(SqlPart):
    """The SnapshotStore."""

    async def get(self, scope: str, pages: Sequence[str]) -> dict[str, Snapshot]:
        """The known snapshots of these pages."""
        query = select(SNAPSHOTS).where(SNAPSHOTS.c.scope == scope, SNAPSHOTS.c.page.in_(pages))
        return {row["page"]: _snapshot(row) for row in await self._database.fetch(query)}

    async def put(self, scope: str, snapshots: Sequence[Snapshot]) -> None:
        """Write them, replacing existing ones."""
        insert = self._database.insert(SNAPSHOTS)
        over = {name: insert.excluded[name] for name in ("url", "job_id", "seq", "state", "before")}
        statement = insert.on_conflict_do_update(index_elements=["scope", "page"], set_=over)
        for start in range(0, len(snapshots), _ROWS):
            rows = [_row(scope, snapshot) for snapshot in snapshots[start : start + _ROWS]]
            await self._database.write_rows(statement, rows)

    async def missing(self, scope: str, job_id: str, after: str, limit: int) -> list[Snapshot]:
        """Pages that are not on this crawl's list, in the order of `page`."""
        missing = or_(SNAPSHOTS.c.job_id != job_id, SNAPSHOTS.c.seq < 0)
        query = (
            select(SNAPSHOTS)
            .where(SNAPSHOTS.c.scope == scope, SNAPSHOTS.c.page > after, missing)
            .order_by(SNAPSHOTS.c.page)
            .limit(limit)
        )
        return [_snapshot(row) for row in await self._database.fetch(query)]

    async def drop(self, scope: str, pages: Sequence[str]) -> None:
        """Delete the snapshots of these pages."""
        await self._database.change(delete(SNAPSHOTS).where(SNAPSHOTS.c.scope == scope, SNAPSHOTS.c.page.in_(pages)))


def _row(scope: str, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "scope": scope,
        "page": snapshot.page,
        "url": snapshot.url,
        "job_id": snapshot.job_id,
        "seq": snapshot.seq,
        "state": json.encode(snapshot.state),
        "before": None if snapshot.before is None else json.encode(snapshot.before),
    }


def _snapshot(row: RowMapping) -> Snapshot:
    return Snapshot(
        page=row["page"],
        url=row["url"],
        job_id=row["job_id"],
        seq=row["seq"],
        state=_STATE.decode(row["state"]),
        before=None if row["before"] is None else _STATE.decode(row["before"]),
    )
