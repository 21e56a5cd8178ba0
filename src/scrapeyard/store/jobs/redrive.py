"""Handing out final items of a job again."""

from functools import partial
from typing import Final

from sqlalchemy import ColumnElement, delete, select

from scrapeyard.model.job import Job
from scrapeyard.store.database.database import Database
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.item_queries import keyed, of_outcomes
from scrapeyard.store.jobs.locks import change_job, locked_job
from scrapeyard.store.jobs.rules.rows import Fields, counted_statuses
from scrapeyard.store.jobs.rules.states import may_redrive, redriven
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.tables.jobs import OUTCOMES, WAITING

PIECE: Final = 5000
"""Items per transaction, so that others can write in between."""


class Redrive:
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
        if job is None or not may_redrive(job):
            return None
        gone, last = yield from self._reopen(job, after)
        again = len(gone) + job["cancelled"]
        if again:
            good = sum(ok for ok, _ in gone)
            values = redriven(job, good, len(gone) - good, self._changes, self._now)
            yield from change_job(job, values | counted_statuses(job, (status for _, status in gone), -1))
        return again, last

    def _reopen(self, job: Fields, after: int) -> Script[tuple[list[tuple[bool, int | None]], int | None]]:
        """Turn outcomes into waiting rows. Returns whether each was good and its HTTP status, and the last number if
        more may follow."""
        number = job["number"]
        matching = [OUTCOMES.c.job == number, *(yield from self._conditions(number))]
        rest = select(OUTCOMES.c.seq).where(*matching, OUTCOMES.c.seq > after).order_by(OUTCOMES.c.seq).limit(PIECE)
        seqs = [row[0] for row in (yield Execute(rest))]
        if not seqs:
            return [], None
        piece = delete(OUTCOMES).where(*matching, OUTCOMES.c.seq.between(seqs[0], seqs[-1]))
        gone = yield Execute(piece.returning(OUTCOMES.c.seq, OUTCOMES.c.ok, OUTCOMES.c.http_status))
        yield BulkInsert(WAITING, [(number, seq, 1, self._now, False) for seq, _, _ in gone])
        return [(ok, status) for _, ok, status in gone], seqs[-1] if len(seqs) == PIECE else None

    def _conditions(self, number: int) -> Script[list[ColumnElement[bool]]]:
        conditions = of_outcomes(self._where)
        if self._where.keys is not None:
            seqs = [row[0] for row in (yield Execute(keyed(number, self._where.keys)))]
            conditions.append(OUTCOMES.c.seq.in_(seqs))
        return conditions
