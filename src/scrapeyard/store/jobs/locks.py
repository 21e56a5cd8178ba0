"""Locking rows of jobs and batches until the end of a transaction; a batch as a row."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from msgspec import json, structs
from sqlalchemy import Update, bindparam, select, update

from scrapeyard.model import Priority
from scrapeyard.model.job import FINAL_JOB, Batch, Counts, JobPolicy, JobStatus
from scrapeyard.store.database.transaction import Execute, Script
from scrapeyard.store.jobs.rows import Fields, to_counts, to_policy
from scrapeyard.store.tables.jobs import BATCHES, JOBS

WHOLE: Final = (*BATCHES.c, JOBS.c.id.label("job_id"))
"""Columns for a Held: batches joined with their job."""
WHOLE_BATCHES: Final = select(*WHOLE).join(JOBS, JOBS.c.number == BATCHES.c.job)

_NAMES: Final = tuple(column.name for column in WHOLE)
_AGAIN: Final = json.Decoder(tuple[tuple[int, int], ...])


class Held:
    """A batch as stored. `done` has a byte per item, 1 once it has a record. Rows of the item cannot tell, since a
    recorded item may already wait or be in another batch."""

    def __init__(self, row: Fields) -> None:
        self.batch = to_batch(row)
        self.job: int = row["job"]
        self._done: bytes = row["done"]
        self._places = {seq: place for place, (seq, _) in enumerate(self.batch.again)}

    def undone(self) -> list[tuple[int, int]]:
        """(seq, attempt) of the items without a record."""
        items = items_of(self.batch)
        if not self._done:
            return items
        return [item for item, done in zip(items, self._done, strict=True) if not done]

    def place(self, seq: int) -> int | None:
        """Position of the item in the batch; None if it is not in it."""
        if self.batch.again:
            return self._places.get(seq)
        return seq - self.batch.first if self.batch.first <= seq <= self.batch.last else None

    def has_begun(self, seq: int) -> bool:
        """Whether the worker of this batch has begun the item, as far as it told. It begins items in their order. Of a
        batch taken by an older version nothing is known, and all count as begun."""
        begun, place = self.batch.begun, self.place(seq)
        return begun is None or (place is not None and place < begun)

    def marks(self) -> bytearray:
        """A mutable copy of `done`."""
        size = len(self.batch.again) or self.batch.last - self.batch.first + 1
        return bytearray(self._done or size)


def as_fields(row: Sequence[Any]) -> Fields:
    """A row of WHOLE as a dict."""
    return dict(zip(_NAMES, row, strict=True))


def batch_row(batch: Batch, job: int) -> tuple[Any, ...]:
    """A new batch of the job with this number, in the order of the columns."""
    row = {
        "id": batch.id,
        "job": job,
        "state": "queued",
        "first": batch.first,
        "last": batch.last,
        "again": json.encode(batch.again) if batch.again else None,
        "left": batch.left,
        "part": 0,
        "done": b"",
        "lane": batch.lane,
        "priority": batch.priority.value,
        "queued_at": batch.queued_at,
        "worker_id": "",
        "lease_until": None,
        "begun": None,
        "lost_before": batch.lost_before,
    }
    return tuple(row[column.name] for column in BATCHES.c)


def to_batch(row: Fields) -> Batch:
    """A batch from the columns WHOLE."""
    return Batch(
        id=row["id"],
        job_id=row["job_id"],
        state=row["state"],
        first=row["first"],
        last=row["last"],
        again=_AGAIN.decode(row["again"]) if row["again"] else (),
        left=row["left"],
        part=row["part"],
        lane=row["lane"],
        priority=Priority(row["priority"]),
        queued_at=row["queued_at"],
        worker_id=row["worker_id"],
        lease_until=row["lease_until"],
        begun=row["begun"],
        lost_before=bool(row["lost_before"]),
    )


def items_of(batch: Batch) -> list[tuple[int, int]]:
    """(seq, attempt) of all its items, in order. Fresh ones are at their first attempt."""
    return list(batch.again) or [(seq, 1) for seq in range(batch.first, batch.last + 1)]


TAKES_ITEMS: Final = frozenset({JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED})
"""Statuses of jobs that take more items."""
STOPPED: Final = frozenset({JobStatus.CANCELLING, JobStatus.CANCELLED, JobStatus.FAILED})
"""In a job with such a status, waiting items are counted as cancelled."""

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


def moved(row: Fields, /, **by: int) -> Counts:
    """The counters of a locked row, each changed by this much. In a stopped job, items that begin to wait are counted
    as cancelled."""
    if row["status"] in STOPPED:
        by["cancelled"] = by.get("cancelled", 0) + by.pop("pending", 0)
    counts = to_counts(row)
    return structs.replace(counts, **{name: getattr(counts, name) + change for name, change in by.items()})


def moved_deadline(row: Fields, policy: JobPolicy) -> float | None:
    """The deadline of a locked row under another policy. None if there is no limit, or no item was handed out under
    one: then it begins with the next item."""
    if policy.max_seconds is None or row["deadline"] is None:
        return None
    before = to_policy(row).max_seconds
    return float(row["deadline"]) + policy.max_seconds - (policy.max_seconds if before is None else before)


def status_values(to: JobStatus, now: float) -> dict[str, Any]:
    """Other columns to write with this status. The files of a cancelled job are written after it."""
    ended = now if to in FINAL_JOB else None
    return {"status": to.value, "finished_at": ended, "files_pending": to is JobStatus.CANCELLED}
