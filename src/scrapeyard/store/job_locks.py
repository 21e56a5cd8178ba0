"""Holding rows of jobs and batches until the end of a transaction.

Whoever needs both takes the batch first and the job after it, and never a second of either kind; every change of items
ends in the job's row, for its counters. So no two transactions wait for each other in a ring, and whoever holds a job's
row sees its items at rest. SQLite has one writer at a time and needs none of this.
"""

from typing import Any, Final

from msgspec import structs
from sqlalchemy import RowMapping, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model.job import FINAL_JOB, Counts, JobStatus
from scrapeyard.store import job_batch_rows
from scrapeyard.store.job_batch_rows import Held
from scrapeyard.store.job_rows import Fields, to_counts
from scrapeyard.store.job_tables import BATCHES, JOBS

STOPPED: Final = frozenset({JobStatus.CANCELLING, JobStatus.CANCELLED, JobStatus.FAILED})
"""Items that wait in such a job are counted as cancelled."""

# Not FOR UPDATE: that would wait for everyone who adds a row that refers to the job.
_BY_ID: Final = select(JOBS).where(JOBS.c.id == bindparam("id")).with_for_update(key_share=True)
_BY_NUMBER: Final = select(JOBS).where(JOBS.c.number == bindparam("number")).with_for_update(key_share=True)
_BATCH: Final = (
    select(*job_batch_rows.WHOLE)
    .join(JOBS, JOBS.c.number == BATCHES.c.job)
    .where(BATCHES.c.id == bindparam("id"))
    .with_for_update(of=BATCHES)
)


async def locked_job(connection: AsyncConnection, job_id: str) -> RowMapping | None:
    """The row of a job, held. None means no such job."""
    return (await connection.execute(_BY_ID, {"id": job_id})).mappings().one_or_none()


async def locked_number(connection: AsyncConnection, number: int) -> RowMapping:
    """The same by its number: of a batch, whose job is always there."""
    return (await connection.execute(_BY_NUMBER, {"number": number})).mappings().one()


async def locked_batch(connection: AsyncConnection, batch_id: str) -> Held | None:
    """A batch, held. None means that it is gone."""
    row = (await connection.execute(_BATCH, {"id": batch_id})).mappings().one_or_none()
    return None if row is None else Held(row)


async def change_job(connection: AsyncConnection, row: Fields, values: dict[str, Any]) -> None:
    """Write to a job's row that is held."""
    await connection.execute(update(JOBS).where(JOBS.c.number == row["number"]).values(values))


def moved(row: Fields, /, **by: int) -> Counts:
    """The counters of a held row, changed by so much each. Items that begin to wait are counted as cancelled when the
    job is stopped."""
    if row["status"] in STOPPED:
        by["cancelled"] = by.get("cancelled", 0) + by.pop("pending", 0)
    counts = to_counts(row)
    return structs.replace(counts, **{name: getattr(counts, name) + change for name, change in by.items()})


def status_values(to: JobStatus, now: float) -> dict[str, Any]:
    """What a step to this status writes besides."""
    return {"status": to.value, "finished_at": now if to in FINAL_JOB else None}
