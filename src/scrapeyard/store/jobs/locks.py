"""Holding rows of jobs and batches until the end of a transaction.

Whoever needs both takes the batch first and the job after it, and never a second of either kind; every change of items
ends in the job's row, for its counters. So no two transactions wait for each other in a ring, and whoever holds a job's
row sees its items at rest. SQLite has one writer at a time and needs none of this.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from msgspec import structs
from sqlalchemy import Update, bindparam, select, update

from scrapeyard.model.job import FINAL_JOB, Counts, JobStatus
from scrapeyard.store.jobs import batch_rows
from scrapeyard.store.jobs.batch_rows import Held, as_fields
from scrapeyard.store.jobs.rows import Fields, to_counts
from scrapeyard.store.tables.jobs import BATCHES, JOBS
from scrapeyard.store.transaction import Ask, Script

STOPPED: Final = frozenset({JobStatus.CANCELLING, JobStatus.CANCELLED, JobStatus.FAILED})
"""Items that wait in such a job are counted as cancelled."""

_JOB_COLUMNS: Final = tuple(JOBS.c.keys())

# Not FOR UPDATE: that would wait for everyone who adds a row that refers to the job.
_BY_ID: Final = select(JOBS).where(JOBS.c.id == bindparam("id")).with_for_update(key_share=True)
_BY_NUMBER: Final = select(JOBS).where(JOBS.c.number == bindparam("number")).with_for_update(key_share=True)
_BATCH: Final = (
    select(*batch_rows.WHOLE)
    .join(JOBS, JOBS.c.number == BATCHES.c.job)
    .where(BATCHES.c.id == bindparam("id"))
    .with_for_update(of=BATCHES)
)


def locked_job(job_id: str) -> Script[Fields | None]:
    """The row of a job, held. None means no such job."""
    rows = yield Ask(_BY_ID, {"id": job_id})
    return dict(zip(_JOB_COLUMNS, rows[0], strict=True)) if rows else None


def locked_number(number: int) -> Script[Fields]:
    """The same by its number: of a batch, whose job is always there."""
    rows = yield Ask(_BY_NUMBER, {"number": number})
    return dict(zip(_JOB_COLUMNS, rows[0], strict=True))


def locked_batch(batch_id: str) -> Script[Held | None]:
    """A batch, held. None means that it is gone."""
    rows = yield Ask(_BATCH, {"id": batch_id})
    return Held(as_fields(rows[0])) if rows else None


def change_job(job: Fields, values: Mapping[str, Any]) -> Script[None]:
    """Write to a job's row that is held."""
    yield Ask(_change(frozenset(values)), {"number_is": job["number"], **values})


@cache
def _change(names: frozenset[str]) -> Update:
    values: dict[str, Any] = {name: bindparam(name) for name in sorted(names)}
    return update(JOBS).where(JOBS.c.number == bindparam("number_is")).values(values)


def moved(row: Fields, /, **by: int) -> Counts:
    """The counters of a held row, changed by so much each. Items that begin to wait are counted as cancelled when the
    job is stopped."""
    if row["status"] in STOPPED:
        by["cancelled"] = by.get("cancelled", 0) + by.pop("pending", 0)
    counts = to_counts(row)
    return structs.replace(counts, **{name: getattr(counts, name) + change for name, change in by.items()})


def status_values(to: JobStatus, now: float) -> dict[str, Any]:
    """What a step to this status writes besides. The files of a cancelled job are written after it."""
    ended = now if to in FINAL_JOB else None
    return {"status": to.value, "finished_at": ended, "files_pending": to is JobStatus.CANCELLED}
