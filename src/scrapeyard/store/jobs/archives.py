"""The rows of archived jobs, out of the tables and back."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import Table, bindparam, select

from scrapeyard.model.job import FINAL_JOB, ArchiveState, Job
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.exports import EXPORTS
from scrapeyard.store.jobs.jobs import BY_ITEM, delete_items
from scrapeyard.store.jobs.locks import change_job, locked_job
from scrapeyard.store.jobs.redrive import PIECE
from scrapeyard.store.jobs.rules.rows import Fields, to_job
from scrapeyard.store.ports.archives import RowBlock
from scrapeyard.store.tables.jobs import JOBS

_TABLES: Final = {table.name: table for table in BY_ITEM}
_BLOCK: Final = 500
_EXPORTING: Final = select(EXPORTS.c.id).where(EXPORTS.c.job_id == bindparam("of"), EXPORTS.c.finished_at.is_(None))
_UNDER_WAY: Final = (ArchiveState.ARCHIVING.value, ArchiveState.REMOVING.value, ArchiveState.RESTORING.value)


class SqlArchives(SqlPart):
    """The ArchiveStore."""

    async def begin(self, job_id: str) -> Job | None:
        """Mark a final job whose files are written."""
        return await self._marked(job_id, _is_ready, ArchiveState.ARCHIVING)

    async def begin_restore(self, job_id: str) -> Job | None:
        """Mark an archived job."""
        return await self._marked(job_id, lambda job: job["archive"] == ArchiveState.ARCHIVED, ArchiveState.RESTORING)

    async def due(self, limit: int) -> list[Job]:
        """Marked jobs, the oldest first."""
        query = select(JOBS).where(JOBS.c.archive.in_(_UNDER_WAY), ~JOBS.c.deleting)
        return [to_job(row) for row in await self._database.fetch(query.order_by(JOBS.c.number).limit(limit))]

    async def older(self, finished_before: float, limit: int) -> list[str]:
        """Jobs that could be archived."""
        ready = (JOBS.c.finished_at < finished_before, JOBS.c.archive == "")
        free = (~JOBS.c.deleting, ~JOBS.c.files_pending, ~JOBS.c.sweeping)
        rows = await self._database.fetch(
            select(JOBS.c.id).where(*ready, *free).order_by(JOBS.c.finished_at).limit(limit)
        )
        return [row["id"] for row in rows]

    async def rows(self, job: Job) -> AsyncIterator[RowBlock]:
        """Block by block, the items of one range after another."""
        number = await self._number(job.id)
        for first in range(0, job.counts.total, _BLOCK):
            for table in BY_ITEM:
                some = table.c.seq.between(first, first + _BLOCK - 1)
                found = await self._database.fetch_tuples(select(table).where(table.c.job == number, some), {})
                if found:
                    yield _block(table, found)

    async def written(self, job: Job, key: str) -> Job | None:
        """Record the archive, so that rows may be removed."""
        if not await self._moved(job.id, ArchiveState.ARCHIVING, ArchiveState.REMOVING, key):
            return None
        return replace(job, archive=ArchiveState.REMOVING, archive_key=key)

    async def remove_rows(self, job: Job) -> bool:
        """Piece by piece, and the mark last."""
        number = await self._number(job.id)
        for first in range(0, job.counts.total, PIECE):
            await self._database.play(partial(delete_items, number, first))
        return await self._moved(job.id, ArchiveState.REMOVING, ArchiveState.ARCHIVED)

    async def add_rows(self, job: Job, block: RowBlock) -> None:
        """With nothing in columns that the archive does not know. Another dispatcher may have ended the restore: then
        the rows are no longer as they were archived, and stay."""
        table = _TABLES.get(block.table)
        if table is None or not set(block.columns) <= {column.name for column in table.c} or "job" not in block.columns:
            raise ValueError(f"an archive of another version: table {block.table!r} with columns {block.columns}")
        names = [column.name for column in table.c]

        def work() -> Script[None]:
            held = yield from locked_job(job.id)
            if held is None or held["archive"] != ArchiveState.RESTORING:
                return
            known = ({**dict(zip(block.columns, row, strict=True)), "job": held["number"]} for row in block.rows)
            yield BulkInsert(table, [tuple(row.get(name) for name in names) for row in known])

        await self._database.play(work)

    async def end_restore(self, job: Job, is_restored: bool) -> bool:
        """Clear the mark, or set it back."""
        if is_restored:
            return await self._moved(job.id, ArchiveState.RESTORING, ArchiveState.NONE, "")
        return await self._moved(job.id, ArchiveState.RESTORING, ArchiveState.ARCHIVED)

    async def _number(self, job_id: str) -> int:
        rows = await self._database.fetch(select(JOBS.c.number).where(JOBS.c.id == job_id))
        return int(rows[0]["number"]) if rows else -1

    async def _marked(self, job_id: str, may: Callable[[Fields], bool], to: ArchiveState) -> Job | None:
        def work() -> Script[Job | None]:
            job = yield from locked_job(job_id)
            if job is None:
                return None
            busy = yield Execute(_EXPORTING, {"of": job_id})
            values = {"archive": to.value} if may(job) and not job["deleting"] and not busy else {}
            if values:
                yield from change_job(job, values)
            return to_job({**job, **values})

        return await self._database.play(work) if is_id(job_id) else None

    async def _moved(self, job_id: str, leave: ArchiveState, to: ArchiveState, key: str | None = None) -> bool:
        def work() -> Script[bool]:
            job = yield from locked_job(job_id)
            if job is None or job["archive"] != leave or job["deleting"]:
                return False
            yield from change_job(job, {"archive": to.value} | ({} if key is None else {"archive_key": key}))
            return True

        return await self._database.play(work) if is_id(job_id) else False


def _is_ready(job: Fields) -> bool:
    is_free = job["archive"] == ArchiveState.NONE and not job["sweeping"]
    return job["status"] in FINAL_JOB and is_free and not job["files_pending"]


def _block(table: Table, found: Any) -> RowBlock:
    columns = tuple(str(column.name) for column in table.c)
    return RowBlock(table=str(table.name), columns=columns, rows=[tuple(row) for row in found])
