"""What is past its time, in the store."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json
from sqlalchemy import and_, bindparam, delete, func, or_, select, update

from scrapeyard.model import FINAL, Run, RunStatus
from scrapeyard.model.job import FINAL_JOB, ArchiveState, ExportWish, Job, JobStatus
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.database.transaction import Execute, Script
from scrapeyard.store.jobs.exports import EXPORTS
from scrapeyard.store.jobs.locks import change_job, locked_job
from scrapeyard.store.jobs.rules.rows import Row, to_job
from scrapeyard.store.jobs.snapshots import SNAPSHOTS
from scrapeyard.store.ports.retention import RunSweep, compared
from scrapeyard.store.runs.rows import to_run
from scrapeyard.store.runs.statements import LISTED
from scrapeyard.store.tables.jobs import JOBS, OUTCOMES
from scrapeyard.store.tables.runs import RUNS
from scrapeyard.store.tables.schedules import SCHEDULES

_EXPORTING: Final = select(EXPORTS.c.id).where(EXPORTS.c.job_id == bindparam("of"), EXPORTS.c.finished_at.is_(None))
_WISHES: Final = json.Decoder(tuple[ExportWish, ...])
_WISH: Final = json.Decoder(ExportWish)
_OPEN_JOB: Final = [status.value for status in JobStatus if status not in FINAL_JOB]
_ENDED: Final = RUNS.c.status.in_([status.value for status in FINAL])


class SqlSweeps(SqlPart):
    """The SweepStore."""

    async def old_runs(self, finished_before: float, limit: int, *, failed_before: float | None = None) -> list[str]:
        """Final runs without a retention of their own, the oldest first."""
        old = RUNS.c.finished_at < finished_before
        if failed_before is not None:
            failed = RUNS.c.status == RunStatus.FAILED.value
            old = or_(and_(old, ~failed), and_(RUNS.c.finished_at < failed_before, failed))
        query = select(RUNS.c.id).where(old, RUNS.c.sweep_at.is_(None)).order_by(RUNS.c.finished_at).limit(limit)
        return [row["id"] for row in await self._database.fetch(query)]

    async def runs_due(self, now: float, limit: int) -> list[Run]:
        """Final runs that are to be looked at now."""
        due = (RUNS.c.sweep_at <= now, RUNS.c.sweep_at.is_not(None), RUNS.c.finished_at.is_not(None))
        query = select(*LISTED).where(*due).order_by(RUNS.c.sweep_at).limit(limit)
        return [to_run(row) for row in await self._database.fetch(query)]

    async def unswept_runs(self, finished_after: float, finished_before: float, limit: int) -> list[Run]:
        """Final runs of which nothing was removed and that nobody looks at, the oldest first."""
        some = (RUNS.c.finished_at >= finished_after, RUNS.c.finished_at < finished_before)
        untouched = (RUNS.c.swept.is_(None), RUNS.c.sweep_at.is_(None))
        query = select(*LISTED).where(*some, *untouched).order_by(RUNS.c.finished_at).limit(limit)
        return [to_run(row) for row in await self._database.fetch(query)]

    async def sweep_runs(self, sweeps: Sequence[RunSweep]) -> None:
        """Clear the columns of what was removed."""
        for sweep in sweeps:
            values: Row = {"swept": json.encode(sweep.swept) if sweep.swept else None, "sweep_at": sweep.sweep_at}
            if "results" in sweep.swept:
                values |= {"result": None, "result_key": ""}
            if "logs" in sweep.swept:
                values["logs"] = None
            await self._database.change(update(RUNS).where(RUNS.c.id == sweep.id, _ENDED).values(values))

    async def delete_runs(self, run_ids: Sequence[str]) -> None:
        """Delete these runs."""
        await self._database.change(delete(RUNS).where(RUNS.c.id.in_(run_ids), _ENDED))

    async def known(self, ids: Sequence[str]) -> set[str]:
        """Which of these ids are runs or jobs that there are."""
        found = [await self._database.fetch(select(table.c.id).where(table.c.id.in_(ids))) for table in (RUNS, JOBS)]
        return {row["id"] for rows in found for row in rows}

    async def jobs_due(self, now: float, limit: int) -> list[Job]:
        """Final jobs that are to be looked at now."""
        query = select(JOBS).where(JOBS.c.finished_at.is_not(None), JOBS.c.sweep_at <= now)
        return [to_job(row) for row in await self._database.fetch(query.order_by(JOBS.c.sweep_at).limit(limit))]

    async def put_off(self, job_ids: Sequence[str], until: float) -> None:
        """Look at these jobs no sooner."""
        if job_ids:
            await self._database.change(update(JOBS).where(JOBS.c.id.in_(job_ids)).values(sweep_at=until))

    async def begin_job(self, job_id: str, swept: dict[str, float]) -> Job | None:
        """Mark a final job as being swept, with what it loses."""

        def work() -> Script[Job | None]:
            job = yield from locked_job(job_id)
            if job is None or job["status"] not in FINAL_JOB or job["deleting"] or job["files_pending"]:
                return None
            if (yield Execute(_EXPORTING, {"of": job_id})):
                return None
            values = {"sweeping": True, "sweep_at": 0.0, "swept": json.encode(swept)}
            if job["archive"] == ArchiveState.ARCHIVED:  # its rows must be there to be cleared
                values["archive"] = ArchiveState.RESTORING.value
            yield from change_job(job, values)
            return to_job({**job, **values})

        return await self._database.play(work) if is_id(job_id) else None

    async def clear_items(self, job: Job, first: int, last: int, *, results: bool, logs: bool) -> None:
        """Clear results or logs of some items."""
        values: dict[str, Any] = ({"result": None, "result_key": ""} if results else {}) | (
            {"logs": None} if logs else {}
        )
        number = select(JOBS.c.number).where(JOBS.c.id == job.id, JOBS.c.sweeping).scalar_subquery()
        if values:
            some = (OUTCOMES.c.job == number, OUTCOMES.c.seq.between(first, last))
            await self._database.change(update(OUTCOMES).where(*some).values(values))

    async def end_job(self, job_id: str, sweep_at: float) -> None:
        """The sweep is done."""
        await self._database.change(update(JOBS).where(JOBS.c.id == job_id).values(sweeping=False, sweep_at=sweep_at))

    async def baselines(self) -> frozenset[str]:
        """Jobs that exports to come compare with."""
        making = await self._database.fetch(select(EXPORTS.c.wish).where(EXPORTS.c.finished_at.is_(None)))
        open_jobs = await self._database.fetch(select(JOBS.c.exports).where(JOBS.c.status.in_(_OPEN_JOB)))
        schedules = await self._database.fetch(select(SCHEDULES.c.template))
        named = {_WISH.decode(row["wish"]).against for row in making}
        named |= {wish.against for row in open_jobs for wish in _WISHES.decode(row["exports"])}
        named |= {name for row in schedules for name in compared(row["template"])}
        return frozenset(named - {""})

    async def old_scopes(self, job_before: str) -> list[str]:
        """Scopes of snapshots that were last written by a job with a smaller id."""
        last = func.max(SNAPSHOTS.c.job_id)
        query = select(SNAPSHOTS.c.scope).group_by(SNAPSHOTS.c.scope).having(last < job_before)
        return [row["scope"] for row in await self._database.fetch(query)]

    async def drop_scope(self, scope: str, job_before: str, limit: int) -> int:
        """Delete snapshots of a scope that jobs before wrote; returns how many."""
        some = select(SNAPSHOTS.c.page).where(SNAPSHOTS.c.scope == scope, SNAPSHOTS.c.job_id < job_before).limit(limit)
        statement = delete(SNAPSHOTS).where(SNAPSHOTS.c.scope == scope, SNAPSHOTS.c.page.in_(some))
        return len(await self._database.change(statement.returning(SNAPSHOTS.c.page)))
