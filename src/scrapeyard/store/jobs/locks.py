"""Locking rows of jobs and batches until the end of a transaction."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Update, bindparam, select, update

from scrapeyard.model.job import Batch
from scrapeyard.store.database.transaction import Execute, Script
from scrapeyard.store.jobs.rules.held import Held, batch_values
from scrapeyard.store.jobs.rules.rows import Fields
from scrapeyard.store.tables.jobs import BATCHES, JOBS

WHOLE: Final = (*BATCHES.c, JOBS.c.id.label("job_id"))
"""Columns for a Held: batches joined with their job."""
WHOLE_BATCHES: Final = select(*WHOLE).join(JOBS, JOBS.c.number == BATCHES.c.job)

_NAMES: Final = tuple(column.name for column in WHOLE)


def as_fields(row: Sequence[Any]) -> Fields:
    """A row of WHOLE as a dict."""
    return dict(zip(_NAMES, row, strict=True))


def batch_row(batch: Batch, job: int) -> tuple[Any, ...]:
    """A new batch of the job with this number, in the order of the columns."""
    row = {"job": job, **batch_values(batch)}
    return tuple(row[column.name] for column in BATCHES.c)


_JOB_COLUMNS: Final = tuple(JOBS.c.keys())

# Not FOR UPDATE: that would block everyone who adds a row that refers to the job.
_BY_ID: Final = select(JOBS).where(JOBS.c.id == bindparam("id")).with_for_update(key_share=True)
_BY_NUMBER: Final = select(JOBS).where(JOBS.c.number == bindparam("number")).with_for_update(key_share=True)
_BATCH: Final = WHOLE_BATCHES.where(BATCHES.c.id == bindparam("id")).with_for_update(of=BATCHES)


def locked_job(job_id: str) -> Script[Fields | None]:
    """The row of a job, locked. None if there is no such job."""
    rows = yield Execute(_BY_ID, {"id": job_id})
    return dict(zip(_JOB_COLUMNS, rows[0], strict=True)) if rows else None


def locked_number(number: int) -> Script[Fields]:
    """The same by number: for a batch, whose job always exists."""
    rows = yield Execute(_BY_NUMBER, {"number": number})
    return dict(zip(_JOB_COLUMNS, rows[0], strict=True))


def locked_batch(batch_id: str) -> Script[Held | None]:
    """A batch, locked. None if it is gone."""
    rows = yield Execute(_BATCH, {"id": batch_id})
    return Held(as_fields(rows[0])) if rows else None


def change_job(job: Fields, values: Mapping[str, Any]) -> Script[None]:
    """Update the row of a locked job."""
    yield Execute(_change(frozenset(values)), {"number_is": job["number"], **values})


@cache
def _change(names: frozenset[str]) -> Update:
    values: dict[str, Any] = {name: bindparam(name) for name in sorted(names)}
    return update(JOBS).where(JOBS.c.number == bindparam("number_is")).values(values)
