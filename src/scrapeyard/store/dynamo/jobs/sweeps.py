"""What retention asks of jobs and snapshots."""

from collections.abc import Sequence
from typing import Final

from msgspec import json

from scrapeyard.model.job import FINAL_JOB, ArchiveState, ExportWish, Job
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.items.ends import ItemEnds
from scrapeyard.store.dynamo.jobs.exports import DynamoExports
from scrapeyard.store.dynamo.jobs.snapshots import DynamoSnapshots
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import ENDS, JOBS, OPEN_JOBS, job_key
from scrapeyard.store.dynamo.table.expressions import all_of, at_most, exists
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import each
from scrapeyard.store.jobs.rules.rows import Row, to_job

_WISHES: Final = json.Decoder(tuple[ExportWish, ...])


class JobSweeps(DynamoPart):
    """Finds jobs that are past their time, and removes parts of them."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._rows = rows = DynamoJobRows(base)
        self._exports = DynamoExports(base, rows)
        self._ends = ItemEnds(base)
        self._snapshots = DynamoSnapshots(base)

    async def known_jobs(self, ids: Sequence[str]) -> set[str]:
        """Which of these ids are jobs that there are."""
        found = await self._table.get_many(job_key(job_id) for job_id in ids if is_id(job_id))
        return {row["id"] for row in found.values()}

    async def jobs_due(self, now: float, limit: int) -> list[Job]:
        """Final jobs that are to be looked at now: the longest waiting first. Reads the listing of all jobs."""
        listed = await self._table.query(JOBS, where=all_of(exists("finished_at"), at_most("sweep_at", now)))
        ids = [row["id"] for row in sorted(listed, key=lambda row: row["sweep_at"])[:limit]]
        return [to_job(row) for row in await self._rows.get_many(ids) if row["finished_at"] is not None]

    async def put_off(self, job_ids: Sequence[str], until: float) -> None:
        """Look at these jobs no sooner."""
        await each(job_ids, lambda job_id: self._rows.changed(job_id, lambda _: {"sweep_at": until}))

    async def begin_job(self, job_id: str, swept: dict[str, float]) -> Job | None:
        """Mark a final job as being swept, with what it loses."""

        async def work() -> Job | None:
            job = await self._rows.get(job_id)
            if job is None or job["status"] not in FINAL_JOB or job["deleting"] or job["files_pending"]:
                return None
            if await self._exports.unfinished(job_id):
                return None
            values: Row = {"sweeping": True, "sweep_at": 0.0, "swept": json.encode(swept)}
            if job["archive"] == ArchiveState.ARCHIVED:  # its rows must be there to be cleared
                values["archive"] = ArchiveState.RESTORING.value
            await self._table.transact(await self._rows.change(job, values))
            return to_job(job | values)

        return await self._rows.apply(job_id, work) if is_id(job_id) else None

    async def clear_items(self, job: Job, first: int, last: int, *, results: bool, logs: bool) -> None:
        """Clear results or logs of some items. Nobody else writes them: a job that is swept does not run."""
        row = await self._rows.get(job.id)
        if row is None or not row["sweeping"]:
            return
        gone = (("result",) if results else ()) + (("logs",) if logs else ())
        for start in range(first, last + 1, ENDS):
            ends = await self._ends.between(job.id, start, min(last, start + ENDS - 1))
            await self._ends.replace(
                [
                    {name: value for name, value in end.items() if name not in gone}
                    | ({"result_key": ""} if results else {})
                    for end in ends.values()
                    if "ok" in end
                ]
            )

    async def end_job(self, job_id: str, sweep_at: float) -> None:
        """The sweep is done."""
        await self._rows.changed(job_id, lambda _: {"sweeping": False, "sweep_at": sweep_at})

    async def compared(self) -> set[str]:
        """Jobs that unfinished exports and unfinished jobs compare with."""
        ids = [row["id"] for row in await self._table.query(OPEN_JOBS)]
        open_jobs = [row for row in await self._rows.get_many(ids) if row["status"] not in FINAL_JOB]
        named = {export.wish.against for export in await self._exports.open_exports()}
        named |= {wish.against for row in open_jobs for wish in _WISHES.decode(row["exports"])}
        return named - {""}

    async def old_scopes(self, job_before: str) -> list[str]:
        """Scopes of snapshots that were last written by a job with a smaller id."""
        return await self._snapshots.old_scopes(job_before)

    async def drop_scope(self, scope: str, job_before: str, limit: int) -> int:
        """Delete snapshots of a scope that jobs before wrote; returns how many."""
        return await self._snapshots.drop_scope(scope, job_before, limit)
