"""Where the items of a job are that have no outcome: in a batch, waiting, or never handed out."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scrapeyard.model.job import ItemStatus
from scrapeyard.store.jobs.locks import STOPPED, Held
from scrapeyard.store.jobs.rows import Fields

_STATES = {"queued": ItemStatus.QUEUED, "running": ItemStatus.IN_PROGRESS}


class Whereabouts:
    """A job and its batches at one moment. Read before the items: what an item's row then says is not older."""

    def __init__(self, job: Fields, batches: Iterable[Held]) -> None:
        self.number: int = job["number"]
        self.total: int = job["total"]
        self.cursor: int = job["cursor"]
        self.idle = ItemStatus.CANCELLED if job["status"] in STOPPED else ItemStatus.PENDING
        self._ranges: list[_Range] = []
        self._again: dict[int, tuple[ItemStatus, int]] = {}
        for held in batches:
            self._place(held)
        self._ranges.sort()

    def status(self, seq: int) -> tuple[ItemStatus, int] | None:
        """(status, attempts begun) of an item that a batch holds; None when none does."""
        if seq in self._again:
            return self._again[seq]
        place = bisect_right(self._ranges, seq, key=_first) - 1
        if place < 0 or not self._ranges[place].holds(seq):
            return None
        status = self._ranges[place].status
        return status, int(status is ItemStatus.IN_PROGRESS)

    def held(self, statuses: Iterable[ItemStatus], after: int) -> Iterator[int]:
        """Numbers of items that batches hold in these states, in no order."""
        wanted = frozenset(statuses)
        yield from (seq for seq, (status, _) in self._again.items() if status in wanted and seq > after)
        for one in self._ranges:
            if one.status in wanted:
                yield from (seq for seq in range(max(one.first, after + 1), one.last + 1) if one.holds(seq))

    def _place(self, held: Held) -> None:
        status = _STATES[held.batch.state]
        if held.batch.again:
            begun = status is ItemStatus.IN_PROGRESS
            self._again |= {seq: (status, attempt - 1 + begun) for seq, attempt in held.undone()}
        else:
            self._ranges.append(_Range(held.batch.first, held.batch.last, status, bytes(held.marks())))


class _Range(NamedTuple):
    first: int
    last: int
    status: ItemStatus
    done: bytes

    def holds(self, seq: int) -> bool:
        return self.first <= seq <= self.last and not self.done[seq - self.first]


def _first(one: _Range) -> int:
    return one.first
