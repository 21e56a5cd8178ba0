"""Items that wait, in the order in which they may be handed out again.

A row holds all items that began to wait together for the same time, under that time and the lowest of their numbers. So
a batch that comes back is one row, however many items it has. An item is in at most one such row.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import msgpack

from scrapeyard.store.dynamo.rows.keys import moment, number, part_of
from scrapeyard.store.dynamo.table.expressions import Delete, Put, Update, Where, Write, below
from scrapeyard.store.dynamo.table.part import DynamoPart
from scrapeyard.store.dynamo.table.table import unchanged
from scrapeyard.store.dynamo.table.values import Item, Key, key_of

_ROW: Final = 1000
"""Maximum items of one row."""
_PAGE: Final = 100
_ACTIONS: Final = 80
"""Maximum writes that taking items adds to a transaction."""
_DECODER: Final = msgpack.Decoder(list[tuple[int, int, bool]])
_ENCODER: Final = msgpack.Encoder()


class Waiting(NamedTuple):
    """An item that waits. In the order in which items are handed out."""

    at: float
    seq: int
    attempt: int
    lost_before: bool = False


class DueItems(DynamoPart):
    """The waiting items of jobs."""

    async def any(self, job_id: str, now: float) -> bool:
        """Whether an item may be handed out."""
        return bool(await self._table.query(part_of(job_id, "due"), sort=_until(now), limit=1))

    def rows(self, job_id: str, items: Iterable[Waiting]) -> list[Put]:
        """Writes for items that begin to wait."""
        by_time: dict[float, list[Waiting]] = {}
        for item in sorted(items):
            by_time.setdefault(item.at, []).append(item)
        return [
            Put(_row(job_id, some[start : start + _ROW]))
            for some in by_time.values()
            for start in range(0, len(some), _ROW)
        ]

    async def choose(self, job_id: str, now: float, most: int) -> tuple[list[Waiting], list[Write]]:
        """The first items that may be handed out, in order, and the writes that take them. Fewer than there are if
        these would be too many for a transaction."""
        rows: list[tuple[Item, list[Waiting]]] = []
        chosen: list[Waiting] = []
        pages = self._table.pages(part_of(job_id, "due"), sort=_until(now), limit=_PAGE)
        async for page in pages:
            for row in page:
                items = _items(row)
                enough = len(chosen) >= most and sorted(chosen)[most - 1] < items[0]
                if enough or len(rows) >= _ACTIONS // 2:
                    return _taken(job_id, rows, chosen, most)
                rows.append((row, items))
                chosen += items
        return _taken(job_id, rows, chosen, most)

    async def stream(self, job_id: str) -> AsyncIterator[list[Waiting]]:
        """All of them, in blocks."""
        async for page in self._table.pages(part_of(job_id, "due")):
            yield [item for row in page for item in _items(row)]

    async def keys(self, job_id: str) -> list[Key]:
        """Where all of them stand."""
        return [key_of(row) for row in await self._table.query(part_of(job_id, "due"))]


def _taken(
    job_id: str, rows: Sequence[tuple[Item, list[Waiting]]], chosen: list[Waiting], most: int
) -> tuple[list[Waiting], list[Write]]:
    chosen = sorted(chosen)[:most]
    gone, writes = set(chosen), list[Write]()
    for row, items in rows:
        rest = [item for item in items if item not in gone]
        if len(rest) == len(items):
            continue
        if rest and rest[0] == items[0]:
            writes.append(Update(key_of(row), {"items": _packed(rest)}, when=unchanged(row)))
            continue
        writes.append(Delete(key_of(row), unchanged(row)))
        if rest:
            writes.append(Put(_row(job_id, rest)))
    return chosen, writes


def _until(now: float) -> Where:
    return below("sk", moment(now) + "!")  # the mark after the space that follows the time


def _row(job_id: str, items: Sequence[Waiting]) -> Item:
    at, first = items[0].at, items[0].seq
    return {
        "pk": part_of(job_id, "due"),
        "sk": f"{moment(at)} {number(first)}",
        "not_before": at,
        "items": _packed(items),
    }


def _packed(items: Sequence[Waiting]) -> bytes:
    return _ENCODER.encode([item[1:] for item in items])


def _items(row: Item) -> list[Waiting]:
    return [Waiting(row["not_before"], *item) for item in _DECODER.decode(row["items"])]
