"""Reading jobs."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import ColumnElement, and_, bindparam, exists, literal_column, or_, select

from scrapeyard.model import SCRAPER_ID
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.store.database.database import Database
from scrapeyard.store.database.transaction import Script
from scrapeyard.store.jobs.locks import change_job, locked_job, status_values
from scrapeyard.store.jobs.rows import as_cursor, from_cursor, to_job
from scrapeyard.store.ports.jobs import JobFilter, JobPage
from scrapeyard.store.runs.writes import is_id
from scrapeyard.store.tables.jobs import JOBS, WAITING

_RUNNABLE: Final = 1000
_OUT: Final = JOBS.c.queued + JOBS.c.in_progress
_DUE: Final = exists().where(WAITING.c.job == JOBS.c.number, WAITING.c.not_before <= bindparam("now"))
_FILES_PENDING: Final[ColumnElement[bool]] = literal_column("jobs.files_pending")
"""Spelled out, since SQLite uses a partial index only if the query contains exactly its condition."""
_BY_BREAKER: Final = and_(JOBS.c.status == JobStatus.PAUSED.value, JOBS.c.breaker_until.is_not(None))


class SqlJobReads:
    """Queries of JobStore and BatchStore on jobs, and the last steps of one."""

    _database: Database

    async def job(self, job_id: str) -> Job | None:
        """One job with its counters. None if there is none."""
        if not is_id(job_id):
            return None
        rows = await self._database.fetch(select(JOBS).where(JOBS.c.id == job_id))
        return to_job(rows[0]) if rows else None

    async def jobs(self, where: JobFilter, cursor: str | None, limit: int) -> JobPage:
        """Newest first. Raises BadRequest for an invalid cursor."""
        query = select(JOBS).where(*_conditions(where)).order_by(JOBS.c.id.desc()).limit(limit + 1)
        if cursor is not None:
            query = query.where(JOBS.c.id < from_cursor(cursor))
        if where.scraper is not None and not SCRAPER_ID.fullmatch(where.scraper):
            return JobPage(jobs=())
        jobs = tuple(to_job(row) for row in await self._database.fetch(query))
        return JobPage(jobs=jobs[:limit], next_cursor=as_cursor(jobs[limit - 1].id) if len(jobs) > limit else None)

    async def finished_before(self, finished_before: float, limit: int) -> list[str]:
        """Ids of final jobs past the retention, the oldest first, and of those whose deletion was interrupted."""
        old = or_(JOBS.c.finished_at < finished_before, JOBS.c.deleting)
        rows = await self._database.fetch(select(JOBS.c.id).where(old).order_by(JOBS.c.finished_at).limit(limit))
        return [row["id"] for row in rows]

    async def runnable(self, now: float) -> list[Job]:
        """Jobs with items to hand out, or paused by a breaker whose cooldown ended. Oldest first."""
        going = JOBS.c.status.in_((JobStatus.CREATING.value, JobStatus.RUNNING.value))
        cooled = and_(_BY_BREAKER, JOBS.c.breaker_until <= now)
        something = and_(JOBS.c.pending > 0, or_(JOBS.c.cursor < JOBS.c.total, _DUE))
        query = select(JOBS).where(or_(going, cooled), something).order_by(JOBS.c.number).limit(_RUNNABLE)
        return [to_job(row) for row in await self._database.fetch(query.params(now=now))]

    async def settled(self, limit: int) -> list[Job]:
        """Jobs to finish: nothing to hand out, nothing handed out, nothing being read."""
        ended = and_(or_(JOBS.c.status == JobStatus.RUNNING.value, _BY_BREAKER), ~JOBS.c.reading, JOBS.c.pending == 0)
        stopped = JOBS.c.status == JobStatus.CANCELLING.value
        query = select(JOBS).where(or_(ended, stopped), _OUT == 0).order_by(JOBS.c.number).limit(limit)
        return [to_job(row) for row in await self._database.fetch(query)]

    async def move_job(self, job_id: str, leave: JobStatus, to: JobStatus, now: float) -> bool:
        """One step of the state machine. False if the job has another status or has items to hand out again."""
        tries = 0

        def work() -> Script[bool]:
            nonlocal tries
            tries += 1
            job = yield from locked_job(job_id)
            if job is None or (tries > 1 and job["status"] == to):  # only the response was lost
                return job is not None
            busy = job["pending"] + job["queued"] + job["in_progress"] or job["reading"]
            if job["status"] != leave or (to in _REST and busy):
                return False
            yield from change_job(job, status_values(to, now) | {"breaker_until": None})
            return True

        return await self._database.play(work) if is_id(job_id) else False


_REST: Final = frozenset({JobStatus.FINISHING, JobStatus.COMPLETED, JobStatus.CANCELLED})


def _conditions(where: JobFilter) -> Iterator[ColumnElement[bool]]:
    if where.statuses is not None:
        yield JOBS.c.status.in_([status.value for status in where.statuses])
    if where.scraper is not None:
        yield JOBS.c.scraper_id == where.scraper
    if where.schedule_id is not None:
        yield JOBS.c.schedule_id == where.schedule_id
    if where.reading is not None:
        yield JOBS.c.reading == where.reading
    if where.files_pending:
        yield _FILES_PENDING
