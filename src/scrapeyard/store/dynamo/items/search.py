"""Pages of items by filter.

Failed items are found by rows of their own, and items with given keys by these. Other filters on ended items read the
ends of the list from the page's beginning on, so a page of rare ones may read many.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from heapq import nsmallest
from re import compile as pattern
from typing import Any, Final

from scrapeyard.model.job import ITEM_KEY, Counts, Item, ItemStatus
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.items.append import ItemAppend
from scrapeyard.store.dynamo.items.chunks import ItemChunks, StoredItem
from scrapeyard.store.dynamo.items.due import DueItems
from scrapeyard.store.dynamo.items.ends import ItemEnds, matches, of_outcomes
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows, batch_fields
from scrapeyard.store.dynamo.rows.keys import ENDS, job_key
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.values import Item as StoredRow
from scrapeyard.store.jobs.rules import whereabouts
from scrapeyard.store.jobs.rules.held import Held
from scrapeyard.store.jobs.rules.rows import Row
from scrapeyard.store.jobs.rules.whereabouts import FINAL_ITEM, HELD, Whereabouts, to_item, wanted_statuses
from scrapeyard.store.ports.jobs import ITEM_BLOCK, ItemFilter

Found = tuple[list[Item], int | None]
"""Items, and the number of the last one examined; None if there are no more."""
_MOST_KEYS: Final = 1000
_KEY: Final = pattern(ITEM_KEY)


class ItemStanding(Whereabouts):
    """A job and its batches as they were read together."""

    def __init__(self, job: Row, batches: Sequence[Held]) -> None:
        super().__init__(job, batches)
        self.job = job
        self.batches = batches

    @property
    def waiting(self) -> int:
        """Items that were handed out before and wait."""
        return int(self.job["pending"] + self.job["cancelled"] - (self.total - self.cursor))


class ItemSearch(DynamoPart):
    """Finds items of jobs."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._rows = rows
        self._append = ItemAppend(base, rows)
        self._chunks = ItemChunks(base)
        self._ends = ItemEnds(base)
        self._due = DueItems(base)

    async def standing(self, job_id: str) -> ItemStanding | None:
        """A job with its batches; None if there is none. Read it before the items, so that they are never older."""
        found = await self._table.query(job_key(job_id)[0]) if is_id(job_id) else []
        jobs = [item for item in found if item["sk"] == "job"]
        if not jobs:
            return None
        batches = [Held(batch_fields(item)) for item in found if item["sk"].startswith("batch/")]
        return ItemStanding((await self._rows.opened(jobs))[0], batches)

    async def after(self, job_id: str, where: ItemFilter, *, after: int, limit: int, data: bool) -> Found:
        """At most `limit`, and ITEM_BLOCK, matching items after that number. Empty if there is no such job."""
        standing = await self.standing(job_id)
        if standing is None or limit <= 0:
            return [], None
        after, limit = max(after, where.first - 1), min(limit, ITEM_BLOCK)
        wanted = wanted_statuses(where)
        if where.keys is None and wanted == frozenset(ItemStatus):
            last = min(after + limit, standing.total - 1)
            found = await self._range(job_id, standing, after + 1, last, data) if last > after else []
            return found, last if after < last < standing.total - 1 else None
        seqs = await self._candidates(job_id, standing, where, after, limit + 1)
        items = await self.some(job_id, standing, seqs[:limit], data=data)
        kept = [item for item in items if item.status in wanted and whereabouts.matches(item, where)]
        return kept, seqs[limit - 1] if len(seqs) > limit else None

    async def some(self, job_id: str, standing: ItemStanding, seqs: Sequence[int], *, data: bool = True) -> list[Item]:
        """These items, in this order."""
        ends = await self._ends.some(job_id, seqs, data=data)
        return await self._joined(job_id, standing, seqs, ends, data)

    async def failed(self, job_id: str, where: ItemFilter, after: int) -> AsyncIterator[StoredRow]:
        """Rows of the failed items that match, after that number."""
        async for page in self._ends.failed(job_id, after, where):
            for row in page:
                yield row

    async def ended(self, standing: ItemStanding, where: ItemFilter, after: int) -> AsyncIterator[int]:
        """Numbers of the final items that match, apart from keys, after that number, in order."""
        job_id, wanted = standing.job["id"], wanted_statuses(where) & FINAL_ITEM
        if wanted == {ItemStatus.ERROR}:
            async for row in self.failed(job_id, where, after):
                yield int(row["sk"])
        elif wanted:
            first = after + 1
            while first < standing.cursor:
                last = min(first + ENDS - first % ENDS, standing.cursor) - 1
                found = await self._ends.between(job_id, first, last, of_outcomes(where), data=False)
                for seq, row in found.items():
                    if matches(row, where):
                        yield seq
                first = last + 1

    async def keyed(self, job_id: str, keys: Iterable[str]) -> list[int]:
        """Numbers of the items with these keys, in order. Invalid keys are left out."""
        names = [key for key in list(keys)[:_MOST_KEYS] if _KEY.fullmatch(key)]
        return await self._append.numbers(job_id, names)

    async def open_waits(self, job_id: str, after: int, limit: int) -> list[int]:
        """The lowest numbers of waiting items after that number."""
        lowest: list[int] = []
        async for block in self._due.stream(job_id):
            lowest = nsmallest(limit, [*lowest, *(item.seq for item in block if item.seq > after)])
        return lowest

    async def recount(self, standing: ItemStanding) -> Counts:
        """Counts computed from the rows, slowly."""
        job_id, total = standing.job["id"], 0
        ends: Counter[bool] = Counter()
        for first in range(0, standing.total, ENDS):
            total += len(await self._chunks.read(job_id, range(first, first + ENDS), data=False))
            rows = await self._ends.between(job_id, first, first + ENDS - 1, data=False)
            ends.update(bool(row["ok"]) for row in rows.values() if "ok" in row)
        out = Counter(held.batch.state for held in standing.batches for _ in held.undone())
        idle = max(0, total - standing.cursor) + len([seq async for block in self._due.stream(job_id) for seq in block])
        stopped = standing.idle is ItemStatus.CANCELLED
        return Counts(
            total=total,
            pending=0 if stopped else idle,
            queued=out["queued"],
            in_progress=out["running"],
            success=ends[True],
            error=ends[False],
            cancelled=idle if stopped else 0,
        )

    async def _candidates(
        self, job_id: str, standing: ItemStanding, where: ItemFilter, after: int, limit: int
    ) -> list[int]:
        """The first numbers of items that may match, from every place where such may be."""
        if where.keys is not None:
            return [seq for seq in await self.keyed(job_id, where.keys) if after < seq < standing.total][:limit]
        wanted = wanted_statuses(where)
        found: set[int] = set(nsmallest(limit, standing.held(wanted & HELD, after)))
        if standing.idle in wanted:
            if standing.waiting > 0:
                found.update(await self.open_waits(job_id, after, limit))
            first = max(after + 1, standing.cursor)
            found.update(range(first, min(first + limit, standing.total)))
        if wanted & FINAL_ITEM:
            ends = 0
            async for seq in self.ended(standing, where, after):
                found.add(seq)
                ends += 1
                if ends >= limit:
                    break
        return sorted(found)[:limit]

    async def _range(self, job_id: str, standing: ItemStanding, first: int, last: int, data: bool) -> list[Item]:
        ends = await self._ends.between(job_id, first, min(last, standing.cursor - 1), data=data)
        return await self._joined(job_id, standing, range(first, last + 1), ends, data)

    async def _joined(
        self, job_id: str, standing: ItemStanding, seqs: Sequence[int], ends: dict[int, StoredRow], data: bool
    ) -> list[Item]:
        given = await self._chunks.read(job_id, seqs, data=data)
        return [_item(seq, given[seq], ends.get(seq, {}), standing, data) for seq in seqs if seq in given]


def _item(seq: int, given: StoredItem, end: StoredRow, standing: ItemStanding, data: bool) -> Item:
    has_ended = "ok" in end
    waits = not has_ended and standing.status(seq) is None
    values: list[Any] = [seq, given.key, given.input if data else None, end.get("result"), end.get("logs")]
    values += [end.get("attempt") if has_ended else None, end.get("exit_reason")]
    values += [end.get(name) for name in ("result_key", "result_bytes", "error", "site", "usage", "artifacts")]
    values += [end.get(name) for name in ("started_at", "finished_at", "http_status")]
    values += [given.depth, given.referrer]
    values += [end.get("attempt") if waits else None, end.get("not_before") if waits else None]
    return to_item(values, standing)
