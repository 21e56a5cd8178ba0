"""A batch as it is stored: its items, which of them have a record, and what becomes of the others."""

from typing import Final

from msgspec import json

from scrapeyard.model import Priority
from scrapeyard.model.job import Batch
from scrapeyard.store.jobs.rules.rows import Fields, Row

_AGAIN: Final = json.Decoder(tuple[tuple[int, int], ...])


class Held:
    """A batch as stored. `done` has a byte per item, 1 once it has a record. Rows of the item cannot tell, since a
    recorded item may already wait or be in another batch."""

    def __init__(self, row: Fields) -> None:
        self.batch = to_batch(row)
        self.job: int = row.get("job", 0)
        """The number of its job's row, where jobs have one."""
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


def batch_values(batch: Batch) -> Row:
    """A new batch as columns."""
    return {
        "id": batch.id,
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


def to_batch(row: Fields) -> Batch:
    """A batch from its columns, and its job's id."""
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


def begun_at_first(batch: Batch) -> int:
    """The first item of a batch that was lost before counts as begun at once, so that every further loss costs an
    attempt, even if the worker dies while it prepares the scraper."""
    return int(batch.lost_before)


def lost_items(held: Held, most: int, kill: bool) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What becomes of the items of a lost worker, as (seq, attempt): those that end, having no attempt left, and those
    that wait. Only an item that had begun is charged an attempt."""
    ends, waits = [], []
    for seq, attempt in held.undone():
        charged = not kill and held.has_begun(seq)
        if charged and attempt >= most:
            ends.append((seq, attempt))
        else:
            waits.append((seq, attempt + charged))
    return ends, waits
