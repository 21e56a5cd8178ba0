"""After a job's end: redriving its items, and deleting it."""

from functools import partial
from typing import Any, Final

from msgspec import json
from msgspec.structs import replace
from sqlalchemy import ColumnElement, delete, select, update

from scrapeyard.model.job import FINAL_JOB, ItemStatus, Job, JobStatus
from scrapeyard.store.database.database import Database
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.item_queries import keyed, of_outcomes
from scrapeyard.store.jobs.locks import change_job, locked_job, status_values
from scrapeyard.store.jobs.rows import Fields
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.runs.writes import is_id
from scrapeyard.store.tables.jobs import BATCHES, BLOCKS, ITEMS, JOB_EVENTS, JOBS, OUTCOMES, WAITING

_PIECE: Final = 5000
"""Items per transaction, so that others can write in between."""
_REDRIVEN: Final = frozenset(JobStatus) - {JobStatus.CREATING, JobStatus.CANCELLING, JobStatus.FINISHING}
"""Statuses that allow a redrive. Not FINISHING: its files would be outdated."""
_STAYS: Final = frozenset({JobStatus.RUNNING, JobStatus.PAUSED})


class SqlJobEnds:
    """The part of JobStore for jobs that ended."""

    _database: Database

    async def redrive(self, job_id: str, where: ItemFilter, job: Job | None, now: float) -> int | None:
        """Hand out matching final items again, from attempt 1, in pieces in list order: each item once. If the job is
        cancelled meanwhile, the rest stays as it is. Returns how many; None if the job cannot be redriven. Changes
        nothing if nothing matches."""
        if not is_id(job_id):
            return None
        errors = replace(where, statuses=(ItemStatus.ERROR,)) if where.statuses is None else where
        return await _Redrive(self._database, job_id, errors, job, now=now).run()

    async def files_written(self, job: Job) -> bool:
        """Record that the files of a cancelled job are written. False if the job has changed since it was read; every
        end has its own time."""
        same = (JOBS.c.id == job.id, JOBS.c.files_pending, JOBS.c.finished_at == job.finished_at)
        statement = update(JOBS).where(*same).values(files_pending=False)
        return bool(await self._database.change(statement.returning(JOBS.c.number)))

    async def begin_delete(self, job_id: str) -> bool:
        """Mark a final job as being deleted. False if there is none or it is not final."""
        return await self._marked(job_id) is not None

    async def delete_job(self, job_id: str) -> bool:
        """Delete a final job with all its rows, in pieces: may be called again after an interruption. False if there is
        none or it is not final."""
        marked = await self._marked(job_id)
        if marked is None:
            return False
        number, total = marked
        await self._database.change(delete(BATCHES).where(BATCHES.c.job == number))
        for first in range(0, total, _PIECE):
            await self._database.play(partial(_delete_piece, number, first))
        await self._database.play(partial(_delete_rest, number))
        return True

    async def _marked(self, job_id: str) -> tuple[int, int] | None:
        """Mark a job as being deleted; returns its number, and how many items it has."""
        final = JOBS.c.status.in_([status.value for status in FINAL_JOB])
        mark = update(JOBS).where(JOBS.c.id == job_id, final).values(deleting=True, files_pending=False)
        rows = await self._database.change(mark.returning(JOBS.c.number, JOBS.c.total)) if is_id(job_id) else ()
        return (rows[0]["number"], rows[0]["total"]) if rows else None


class _Redrive:
    """One redrive. Each piece is its own transaction, since millions of rows in one would block others."""

    def __init__(self, database: Database, job_id: str, where: ItemFilter, changes: Job | None, *, now: float) -> None:
        self._database = database
        self._job_id = job_id
        self._where = where
        self._changes = changes
        self._now = now

    async def run(self) -> int | None:
        """How many items; None if the job cannot be redriven."""
        count: int | None = None
        after = self._where.first - 1
        while (piece := await self._database.play(partial(self._piece, after))) is not None:
            redriven, last = piece
            count = (count or 0) + redriven
            if last is None:
                break
            after = last
        return count

    def _piece(self, after: int) -> Script[tuple[int, int | None] | None]:
        """How many, and the number to continue after; None if that was all."""
        job = yield from locked_job(self._job_id)
        if job is None or job["status"] not in _REDRIVEN or job["deleting"]:
            return None
        back = job["cancelled"]
        good, bad, last = yield from self._reopen(job, after)
        if good + bad + back:
            counts = {"success": job["success"] - good, "error": job["error"] - bad, "cancelled": 0}
            counts["pending"] = job["pending"] + good + bad + back
            yield from change_job(job, counts | _runs_again(job, self._changes, self._now))
        return good + bad + back, last

    def _reopen(self, job: Fields, after: int) -> Script[tuple[int, int, int | None]]:
        """Turn outcomes into waiting rows. Returns how many were good and bad, and the last if more may follow."""
        number = job["number"]
        matching = [OUTCOMES.c.job == number, *(yield from self._conditions(number))]
        rest = select(OUTCOMES.c.seq).where(*matching, OUTCOMES.c.seq > after).order_by(OUTCOMES.c.seq).limit(_PIECE)
        seqs = [row[0] for row in (yield Execute(rest))]
        if not seqs:
            return 0, 0, None
        piece = delete(OUTCOMES).where(*matching, OUTCOMES.c.seq.between(seqs[0], seqs[-1]))
        gone = yield Execute(piece.returning(OUTCOMES.c.seq, OUTCOMES.c.ok))
        yield BulkInsert(WAITING, [(number, seq, 1, self._now) for seq, _ in gone])
        good = sum(ok for _, ok in gone)
        return good, len(gone) - good, seqs[-1] if len(seqs) == _PIECE else None

    def _conditions(self, number: int) -> Script[list[ColumnElement[bool]]]:
        conditions = of_outcomes(self._where)
        if self._where.keys is not None:
            seqs = [row[0] for row in (yield Execute(keyed(number, self._where.keys)))]
            conditions.append(OUTCOMES.c.seq.in_(seqs))
        return conditions


def _delete_piece(number: int, first: int) -> Script[None]:
    for table in (OUTCOMES, WAITING, ITEMS):
        some = table.c.seq.between(first, first + _PIECE - 1)
        yield Execute(delete(table).where(table.c.job == number, some))


def _runs_again(job: Fields, changes: Job | None, now: float) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if job["status"] not in _STAYS:
        values |= status_values(JobStatus.RUNNING, now) | {"kill": False, "fault": None}
    if changes is not None:
        values |= {"scraper": changes.scraper, "scraper_id": changes.scraper.partition("@")[0]}
        values |= {"pinned": changes.pinned, "policy": json.encode(changes.policy)}
    return values


def _delete_rest(number: int) -> Script[None]:
    for table in (BATCHES, BLOCKS, JOB_EVENTS):
        yield Execute(delete(table).where(table.c.job == number))
    yield Execute(delete(JOBS).where(JOBS.c.number == number))
