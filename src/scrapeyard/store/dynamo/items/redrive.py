"""Handing out final items of a job again, a few in each transaction."""

from functools import partial
from typing import Final

from scrapeyard.model.job import Job
from scrapeyard.store.dynamo.items.due import DueItems, Waiting
from scrapeyard.store.dynamo.items.ends import ItemEnds, matches
from scrapeyard.store.dynamo.items.search import ItemSearch, ItemStanding
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.values import Item
from scrapeyard.store.jobs.rules.rows import counted_statuses
from scrapeyard.store.jobs.rules.states import may_redrive, redriven
from scrapeyard.store.jobs.rules.whereabouts import FINAL_ITEM, wanted_statuses
from scrapeyard.store.ports.jobs import ItemFilter

_PIECE: Final = 45
"""Items of one transaction: each takes two writes."""


class ItemRedrive(DynamoPart):
    """Redrives jobs. Each piece is a transaction of its own; what a crash leaves is redriven by the next call."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows, search: ItemSearch) -> None:
        super().__init__(base)
        self._rows = rows
        self._search = search
        self._ends = ItemEnds(base)
        self._due = DueItems(base)

    async def run(self, job_id: str, where: ItemFilter, changes: Job | None, now: float) -> int | None:
        """How many items; None if the job cannot be redriven."""
        count: int | None = None
        after = where.first - 1
        while True:
            work = partial(self._piece, job_id, where, changes, after=after, now=now)
            piece = await self._rows.apply(job_id, work)
            if piece is None:
                return count
            again, last = piece
            count = (count or 0) + again
            if last is None:
                return count
            after = last

    async def _piece(
        self, job_id: str, where: ItemFilter, changes: Job | None, *, after: int, now: float
    ) -> tuple[int, int | None] | None:
        """How many, and the number to continue after; None if that was all."""
        standing = await self._search.standing(job_id)
        if standing is None or not may_redrive(standing.job):
            return None
        job = standing.job
        gone, last = await self._ended(standing, where, after)
        if not gone and not job["cancelled"]:
            return 0, last
        good = sum(bool(end["ok"]) for end in gone)
        values = redriven(job, good, len(gone) - good, changes, now)
        values |= counted_statuses(job, (end.get("http_status") for end in gone), -1)
        writes = [write for end in gone for write in self._ends.reopen(job_id, end, now)]
        due = self._due.rows(job_id, [Waiting(now, int(end["sk"]), 1) for end in gone])
        await self._table.transact([*writes, *due, *await self._rows.change(job, values)])
        return len(gone) + job["cancelled"], last

    async def _ended(self, standing: ItemStanding, where: ItemFilter, after: int) -> tuple[list[Item], int | None]:
        """Ends that match, and the last number if more may follow."""
        job_id, wanted = standing.job["id"], wanted_statuses(where) & FINAL_ITEM
        seqs: list[int] = []
        if where.keys is not None:
            seqs = [seq for seq in await self._search.keyed(job_id, where.keys) if seq > after][:_PIECE]
        else:
            async for seq in self._search.ended(standing, where, after):
                seqs.append(seq)
                if len(seqs) == _PIECE:
                    break
        found = await self._ends.some(job_id, seqs, data=False)
        ends = [found[seq] for seq in seqs if seq in found and "ok" in found[seq]]
        good = {status.value == "success" for status in wanted}
        kept = [end for end in ends if bool(end["ok"]) in good and matches(end, where)]
        return kept, seqs[-1] if len(seqs) == _PIECE else None
