"""Items of jobs: adding, reading and redriving them."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from scrapeyard.model import ExitReason
from scrapeyard.model.job import Counts, Item, ItemStatus, Job, NewItem
from scrapeyard.store.database.paging import as_cursor, is_id, numbers
from scrapeyard.store.dynamo.items.append import ItemAppend
from scrapeyard.store.dynamo.items.dead import DeadLetters
from scrapeyard.store.dynamo.items.redrive import ItemRedrive
from scrapeyard.store.dynamo.items.search import Found, ItemSearch
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import part_of
from scrapeyard.store.dynamo.table.expressions import begins
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.jobs.rules.whereabouts import newly_ended, told_ends
from scrapeyard.store.ports.jobs import (
    ITEM_BLOCK,
    DeadLetterFilter,
    EndedItems,
    FailureGroup,
    Frontier,
    ItemFilter,
    ItemPage,
)

_MAX_OPEN: Final = 5000
"""Waiting items of one job that are told apart. The ends of more are only counted."""


class DynamoItems(DynamoPart):
    """The ItemStore."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._append = ItemAppend(base, rows)
        self._search = ItemSearch(base, rows)
        self._redrive = ItemRedrive(base, rows, self._search)
        self._dead = DeadLetters(base, rows, self._search)

    async def add(
        self,
        job_id: str,
        items: Sequence[NewItem],
        block: int,
        now: float,  # noqa: ARG002  the port's signature
        *,
        source: str = "",
    ) -> int | None:
        """Append a block; returns how many items were new, also when repeated. None if the job takes no more."""
        if len(items) > ITEM_BLOCK:
            raise ValueError(f"a block has {len(items)} items; add at most {ITEM_BLOCK} at once")
        given: dict[str, NewItem] = {}
        for item in items:
            given.setdefault(item.key, item)
        return await self._append.add(job_id, list(given.values()), block, source) if is_id(job_id) else None

    async def added(self, job_id: str, source: str) -> int:
        """How many items all blocks of a source have added."""
        rows = await self._table.query(part_of(job_id, "blocks"), sort=begins("sk", f"{source} "))
        return sum(row["added"] for row in rows if row["sk"].rpartition(" ")[0] == source)

    async def page(self, job_id: str, where: ItemFilter, cursor: str | None, limit: int) -> ItemPage:
        """A page of at most ITEM_BLOCK items, in list order. It may be short, since items change while they are read.
        Raises BadRequest for an invalid cursor."""
        after = -1 if cursor is None else numbers(cursor, 1)[0]
        found, last = await self._search.after(job_id, where, after=after, limit=limit, data=True)
        return ItemPage(items=tuple(found), next_cursor=None if last is None else as_cursor(str(last)))

    async def get(self, job_id: str, key: str) -> Item | None:
        """One whole item; None if there is none."""
        found, _ = await self._search.after(job_id, ItemFilter(keys=(key,)), after=-1, limit=1, data=True)
        return found[0] if found else None

    async def stream(
        self, job_id: str, where: ItemFilter, *, data: bool = True
    ) -> AsyncGenerator[Sequence[Item], None]:
        """Yield all items in order, in blocks of at most ITEM_BLOCK; without `data`: no input, result, logs.

        The next block is read while the caller processes this one.
        """

        def read(after: int) -> asyncio.Task[Found]:
            return asyncio.create_task(self._search.after(job_id, where, after=after, limit=ITEM_BLOCK, data=data))

        ahead: asyncio.Task[Found] | None = read(-1)
        try:
            while ahead is not None:
                found, after = await ahead
                ahead = None if after is None else read(after)
                if found:
                    yield found
        finally:
            if ahead is not None:
                ahead.cancel()
                await asyncio.gather(ahead, return_exceptions=True)

    async def failures(self, job_id: str, limit: int) -> Sequence[FailureGroup]:
        """Why items of a job failed: the `limit` largest groups, the largest first. Reads a small row of each."""
        standing = await self._search.standing(job_id)
        if standing is None:
            return []
        counts: Counter[tuple[str, int | None, str]] = Counter()
        first: dict[tuple[str, int | None, str], int] = {}
        async for row in self._search.failed(job_id, ItemFilter(), -1):
            alike = row["exit_reason"], row.get("http_status"), row["site"]
            counts[alike] += 1
            first.setdefault(alike, int(row["sk"]))
        largest = sorted(counts, key=lambda alike: (-counts[alike], first[alike]))[:limit]
        examples = await self._search.some(job_id, standing, [first[alike] for alike in largest])
        by_seq = {item.seq: item for item in examples if item.status is ItemStatus.ERROR}
        return [
            FailureGroup(
                exit_reason=ExitReason(alike[0]),
                http_status=alike[1],
                site=alike[2],
                count=counts[alike],
                example=by_seq[first[alike]],
            )
            for alike in largest
            if first[alike] in by_seq
        ]

    async def dead_letters(
        self, where: DeadLetterFilter, cursor: str | None, limit: int
    ) -> tuple[tuple[tuple[str, Item], ...], str | None]:
        """Items that ended as errors across jobs, (job id, item): newest job first, within it the end of its list
        first."""
        return await self._dead.page(where, cursor, limit)

    async def redrive(self, job_id: str, where: ItemFilter, job: Job | None, now: float) -> int | None:
        """Hand out matching final items again, from attempt 1, in pieces in list order: each item once. If the job is
        cancelled meanwhile, the rest stays as it is. Returns how many; None if the job cannot be redriven. Changes
        nothing if nothing matches."""
        if not is_id(job_id):
            return None
        errors = replace(where, statuses=(ItemStatus.ERROR,)) if where.statuses is None else where
        return await self._redrive.run(job_id, errors, job, now)

    async def ended_since(self, job_id: str, seen: Frontier, limit: int) -> EndedItems:
        """Items whose end `seen` does not know, at most `limit`, whole."""
        standing = await self._search.standing(job_id)
        if standing is None:
            return EndedItems(frontier=seen)
        still_open = {seq for held in standing.batches for seq, _ in held.undone()}
        if standing.waiting > 0:
            still_open |= set(await self._search.open_waits(job_id, -1, _MAX_OPEN))
        wanted = list(islice(newly_ended(seen, standing.cursor, still_open), limit))
        found = await self._search.some(job_id, standing, wanted)
        return told_ends(standing.job, seen, still_open, wanted, found)

    async def recount(self, job_id: str) -> Counts:
        """Counts computed from the rows, slowly; zero if there is no such job."""
        standing = await self._search.standing(job_id)
        return Counts() if standing is None else await self._search.recount(standing)
