"""Jobs: creating, steering, listing and deleting them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from msgspec import Raw
from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, literal_column, or_, select, update

from scrapeyard.model import SCRAPER_ID, Priority
from scrapeyard.model.job import FINAL_JOB, BreakerState, Job, JobPolicy, JobStatus
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.store.database.database import Database, SqlPart
from scrapeyard.store.database.paging import as_cursor, is_id, numbers
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.counters import put_back
from scrapeyard.store.jobs.locks import change_job, locked_batch, locked_job
from scrapeyard.store.jobs.redrive import PIECE
from scrapeyard.store.jobs.rules.rows import Fields, job_row, new_sink_row, source_values, to_job
from scrapeyard.store.jobs.rules.states import (
    TAKES_ITEMS,
    cancelled,
    may_move,
    paused_or_resumed,
    reading_ended,
    reopened,
    status_values,
    with_breaker,
    with_policy,
)
from scrapeyard.store.ports.jobs import JobFilter, JobPage
from scrapeyard.store.tables.jobs import BATCHES, BLOCKS, ITEMS, JOB_EVENTS, JOB_SINKS, JOBS, OUTCOMES, WAITING

_RUNNABLE: Final = 1000
_OUT: Final = JOBS.c.queued + JOBS.c.in_progress
_DUE: Final = exists().where(WAITING.c.job == JOBS.c.number, WAITING.c.not_before <= bindparam("now"))
_FILES_PENDING: Final[ColumnElement[bool]] = literal_column("jobs.files_pending")
"""Spelled out, since SQLite uses a partial index only if the query contains exactly its condition."""
_BY_BREAKER: Final = and_(JOBS.c.status == JobStatus.PAUSED.value, JOBS.c.breaker_until.is_not(None))

_ANY_OPEN: Final = (
    select(JOBS.c.number)
    .where(or_(JOBS.c.status.in_([status.value for status in JobStatus if not status.is_final]), _FILES_PENDING))
    .limit(1)
)

BY_ITEM: Final = (OUTCOMES, WAITING, ITEMS)
"""Tables with a row for each item."""


class SqlJobs(SqlPart):
    """The JobStore."""

    async def create(self, job: Job) -> bool:
        """Write the job without items, and a delivery to each of its sinks. False, and nothing is changed, if its id is
        taken."""
        tries = 0

        def work() -> Script[bool]:
            nonlocal tries
            tries += 1
            insert = self._database.insert(JOBS).values(job_row(job)).on_conflict_do_nothing().returning(JOBS.c.number)
            made = yield Execute(insert)
            if made and job.sinks:
                rows = [new_sink_row(job.id, sink, job.created_at) for sink in job.sinks]
                yield BulkInsert(JOB_SINKS, [tuple(row[column.name] for column in JOB_SINKS.c) for row in rows])
            # If the row of the previous try exists, only its response was lost.
            return bool(made) or tries > 1

        return await self._database.play(work)

    async def get(self, job_id: str) -> Job | None:
        """One job with its counters. None if there is none."""
        if not is_id(job_id):
            return None
        rows = await self._database.fetch(select(JOBS).where(JOBS.c.id == job_id))
        return to_job(rows[0]) if rows else None

    async def page(self, where: JobFilter, cursor: str | None, limit: int) -> JobPage:
        """Newest first. Raises BadRequest for an invalid cursor."""
        query = select(JOBS).where(*_conditions(where)).order_by(JOBS.c.number.desc()).limit(limit + 1)
        if cursor is not None:
            query = query.where(JOBS.c.number < numbers(cursor, 1)[0])
        if where.scraper is not None and not SCRAPER_ID.fullmatch(where.scraper):
            return JobPage(jobs=())
        rows = await self._database.fetch(query)
        more = as_cursor(str(rows[limit - 1]["number"])) if len(rows) > limit else None
        return JobPage(jobs=tuple(to_job(row) for row in rows[:limit]), next_cursor=more)

    async def end_reading(self, job_id: str, skipped_rows: int, failed: str, now: float) -> Job | None:
        """The source has ended: CREATING becomes RUNNING, PAUSED stays; with `failed` either becomes FAILED, its
        pending items cancelled and its batches killed. None if there is no such job."""

        return await _changed(self._database, job_id, lambda row: reading_ended(row, skipped_rows, failed, now))

    async def set_source(self, job_id: str, source: dict[str, Any]) -> bool:
        """Store the source and how far it was read. False if there is no such job."""
        statement = update(JOBS).where(JOBS.c.id == job_id).values(source_values(source))
        return is_id(job_id) and bool(await self._database.change(statement.returning(JOBS.c.number)))

    async def set_paused(self, job_id: str, paused: bool, reason: str, now: float) -> Job | None:
        """Pause or resume; a job that is neither being created nor running nor paused stays as it is. Resuming also
        closes its breaker. Pausing a job that its breaker paused makes the caller's reason the pause reason."""

        return await _changed(self._database, job_id, lambda row: paused_or_resumed(row, paused, reason, now))

    async def pause_and_tell(self, job_id: str, reason: str, kind: JobEventKind, data: Raw, now: float) -> bool:
        """Pause a job that is being created or runs, and append an event with it. False, and nothing is changed, if it
        has another status: of several who pause it at once, one tells."""

        def work() -> Script[bool]:
            job = yield from locked_job(job_id)
            if job is None or job["status"] not in (JobStatus.CREATING, JobStatus.RUNNING):
                return False
            number = job["events"] + 1
            yield BulkInsert(JOB_EVENTS, [(job["number"], number, now, str(kind), bytes(data))])
            values = {"pause_reason": reason, "breaker_until": None, "events": number}
            yield from change_job(job, status_values(JobStatus.PAUSED, now) | values)
            return True

        return await self._database.play(work) if is_id(job_id) else False

    async def set_policy(
        self, job_id: str, policy: JobPolicy, *, name: str | None = None, priority: Priority | None = None
    ) -> Job | None:
        """Apply another policy and priority to items handed out from now on, and rename the job; None: no change.
        A final job stays as it is. None if unknown."""
        return await _changed(self._database, job_id, lambda row: with_policy(row, policy, name, priority))

    async def set_breaker(self, job_id: str, state: BreakerState, status: JobStatus | None, reason: str) -> None:
        """Write the breaker's state; with a status, only RUNNING ↔ PAUSED by the breaker: a job paused by a person
        stays paused."""

        await _changed(self._database, job_id, lambda row: with_breaker(row, state, status, reason))

    async def cancel(self, job_id: str, kill: bool, now: float, *, fault: str = "") -> Job | None:
        """Count pending items as cancelled; CANCELLING while batches are out, else CANCELLED with its files pending.
        Final jobs stay. With `kill` or a `fault`, batches not yet taken are put back here; workers learn of a kill from
        `BatchStore.renew`."""
        job = await _changed(self._database, job_id, lambda row: cancelled(row, kill, now, fault))
        if job is None or job.status is not JobStatus.CANCELLING or not (job.kill or fault):
            return job
        await _withdraw(self._database, job_id, now)
        return await _changed(self._database, job_id, lambda row: cancelled(row, kill, now, fault))

    async def reopen(self, job_id: str, now: float) -> Job | None:
        """Undo a cancel: CANCELLED becomes RUNNING. Any other job stays as it is. None if unknown."""
        return await _changed(self._database, job_id, lambda row: reopened(row, now))

    async def move(self, job_id: str, leave: JobStatus, to: JobStatus, now: float) -> bool:
        """One step of the state machine. False if the job has another status or has items to hand out again."""
        tries = 0

        def work() -> Script[bool]:
            nonlocal tries
            tries += 1
            job = yield from locked_job(job_id)
            if job is None or (tries > 1 and job["status"] == to):  # only the response was lost
                return job is not None
            if not may_move(job, leave, to):
                return False
            yield from change_job(job, status_values(to, now) | {"breaker_until": None})
            return True

        return await self._database.play(work) if is_id(job_id) else False

    async def runnable(self, now: float) -> list[Job]:
        """Jobs with items to hand out, or paused by a breaker whose cooldown ended. Oldest first."""
        going = JOBS.c.status.in_((JobStatus.CREATING.value, JobStatus.RUNNING.value))
        cooled = and_(_BY_BREAKER, JOBS.c.breaker_until <= now)
        something = and_(JOBS.c.pending > 0, or_(JOBS.c.cursor < JOBS.c.total, _DUE))
        query = select(JOBS).where(or_(going, cooled), something).order_by(JOBS.c.number).limit(_RUNNABLE)
        return [to_job(row) for row in await self._database.fetch(query.params(now=now))]

    async def overdue(self, now: float, limit: int) -> list[Job]:
        """Jobs whose deadline has passed and that are not ending yet, the oldest first."""
        going = JOBS.c.status.in_([status.value for status in TAKES_ITEMS])
        query = select(JOBS).where(going, JOBS.c.deadline <= now).order_by(JOBS.c.number).limit(limit)
        return [to_job(row) for row in await self._database.fetch(query)]

    async def any_open(self) -> bool:
        """Whether a job has not ended, or is cancelled and its files are not written yet."""
        return bool(await self._database.fetch_tuples(_ANY_OPEN, {}))

    async def settled(self, limit: int) -> list[Job]:
        """Jobs to finish: nothing to hand out, nothing handed out, nothing being read."""
        ended = and_(or_(JOBS.c.status == JobStatus.RUNNING.value, _BY_BREAKER), ~JOBS.c.reading, JOBS.c.pending == 0)
        stopped = JOBS.c.status == JobStatus.CANCELLING.value
        query = select(JOBS).where(or_(ended, stopped), _OUT == 0).order_by(JOBS.c.number).limit(limit)
        return [to_job(row) for row in await self._database.fetch(query)]

    async def files_written(self, job: Job) -> bool:
        """Record that the files of a cancelled job are written. False if the job has changed since it was read; every
        end has its own time."""
        same = (JOBS.c.id == job.id, JOBS.c.files_pending, JOBS.c.finished_at == job.finished_at)
        statement = update(JOBS).where(*same).values(files_pending=False)
        return bool(await self._database.change(statement.returning(JOBS.c.number)))

    async def begin_delete(self, job_id: str) -> bool:
        """Mark a final job as being deleted. False if there is none or it is not final."""
        return await self._marked(job_id) is not None

    async def delete(self, job_id: str) -> bool:
        """Delete a final job with all its rows, in pieces: may be called again after an interruption. False if there is
        none or it is not final."""
        marked = await self._marked(job_id)
        if marked is None:
            return False
        number, total = marked
        await self._database.change(delete(BATCHES).where(BATCHES.c.job == number))
        for first in range(0, total, PIECE):
            await self._database.play(partial(delete_items, number, first))
        await self._database.play(partial(_delete_rest, number))
        return True

    async def _marked(self, job_id: str) -> tuple[int, int] | None:
        """Mark a job as being deleted; returns its number, and how many items it has."""
        final = JOBS.c.status.in_([status.value for status in FINAL_JOB])
        mark = update(JOBS).where(JOBS.c.id == job_id, final).values(deleting=True, files_pending=False, sweep_at=0.0)
        rows = await self._database.change(mark.returning(JOBS.c.number, JOBS.c.total)) if is_id(job_id) else ()
        return (rows[0]["number"], rows[0]["total"]) if rows else None


def _conditions(where: JobFilter) -> Iterator[ColumnElement[bool]]:
    if where.statuses is not None:
        yield JOBS.c.status.in_([status.value for status in where.statuses])
    if where.scraper is not None:
        yield JOBS.c.scraper_id == where.scraper
    if where.schedule_id is not None:
        yield JOBS.c.schedule_id == where.schedule_id
    if where.owner is not None:
        yield JOBS.c.owner == where.owner
    if where.reading is not None:
        yield JOBS.c.reading == where.reading
    if where.domain is not None:
        yield JOBS.c.domain == where.domain
    if where.finished_after is not None:
        yield JOBS.c.finished_at > where.finished_after
    if where.files_pending:
        yield _FILES_PENDING


async def _changed(database: Database, job_id: str, values: Callable[[Fields], dict[str, Any]]) -> Job | None:
    """Write `values` of the locked row; {} writes nothing. Returns the job; None if there is no such job."""

    def work() -> Script[Job | None]:
        job = yield from locked_job(job_id)
        if job is None:
            return None
        written = values(job)
        if written:
            yield from change_job(job, written)
        return to_job(dict(job) | written)

    return await database.play(work) if is_id(job_id) else None


async def _withdraw(database: Database, job_id: str, now: float) -> None:
    query = select(BATCHES.c.id).join(JOBS, JOBS.c.number == BATCHES.c.job)
    query = query.where(JOBS.c.id == job_id, BATCHES.c.state == "queued")
    for row in await database.fetch(query):

        def work(batch_id: str = row["id"]) -> Script[None]:
            held = yield from locked_batch(batch_id)
            if held is not None and held.batch.state == "queued":
                yield from put_back(held, now)

        await database.play(work)


def delete_items(number: int, first: int) -> Script[None]:
    """Delete the rows of PIECE items from `first` on."""
    for table in BY_ITEM:
        some = table.c.seq.between(first, first + PIECE - 1)
        yield Execute(delete(table).where(table.c.job == number, some))


def _delete_rest(number: int) -> Script[None]:
    for table in (BATCHES, BLOCKS, JOB_EVENTS):
        yield Execute(delete(table).where(table.c.job == number))
    yield Execute(delete(JOBS).where(JOBS.c.number == number))
