"""A batch as a row, and which of its items have no record yet."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json

from scrapeyard.model import Priority
from scrapeyard.model.job import Batch
from scrapeyard.store.jobs.rows import Fields
from scrapeyard.store.tables.jobs import BATCHES, JOBS

WHOLE: Final = (*BATCHES.c, JOBS.c.id.label("job_id"))
"""What makes a Held: batches joined with their job."""

_NAMES: Final = tuple(column.name for column in WHOLE)
_AGAIN: Final = json.Decoder(tuple[tuple[int, int], ...])


class Held:
    """A batch as it stands in the store. `done` has a byte for each of its items, 1 once there is a record of it: an
    item that was recorded may wait or travel again already, so that its rows do not tell whose it is."""

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
        """Where the item stands in the batch; None when it is none of its items."""
        if self.batch.again:
            return self._places.get(seq)
        return seq - self.batch.first if self.batch.first <= seq <= self.batch.last else None

    def marks(self) -> bytearray:
        """A copy of `done`, to be changed."""
        size = len(self.batch.again) or self.batch.last - self.batch.first + 1
        return bytearray(self._done or size)


def as_fields(row: Sequence[Any]) -> Fields:
    """A row of WHOLE with its names."""
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
    )


def items_of(batch: Batch) -> list[tuple[int, int]]:
    """(seq, attempt) of all its items, in order. Fresh ones stand at their first attempt."""
    return list(batch.again) or [(seq, 1) for seq in range(batch.first, batch.last + 1)]
