"""Removing the rows of a job, a thousand items at a time. Whatever is interrupted may be done again."""

from typing import Final

from scrapeyard.store.dynamo.items.chunks import ItemChunks, chunk_key, input_key
from scrapeyard.store.dynamo.items.ends import ItemEnds
from scrapeyard.store.dynamo.jobs.exports import export_keys
from scrapeyard.store.dynamo.rows.keys import (
    ENDS,
    batch_job_key,
    ends_part,
    item_key,
    job_key,
    part_of,
)
from scrapeyard.store.dynamo.table.expressions import begins
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.values import Key, key_of
from scrapeyard.store.jobs.rules.rows import Row

_PARTS: Final = ("blocks", "events", "points")


class JobRemoval(DynamoPart):
    """Removes rows of jobs."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._chunks = ItemChunks(base)
        self._ends = ItemEnds(base)

    async def remove_all(self, job: Row) -> None:
        """Everything but the job's own row and its listings."""
        job_id = job["id"]
        batches = await self._table.query(job_key(job_id)[0], sort=begins("sk", "batch/"))
        exports = await self._table.query(part_of(job_id, "exports"))
        await self._table.delete_many(
            [
                *map(key_of, batches),
                *(batch_job_key(batch["id"]) for batch in batches),
                *(key for export in exports for key in export_keys(export)),
            ]
        )
        await self.remove_items(job_id, job["total"])
        for name in _PARTS:
            await self._remove_part(part_of(job_id, name))
        await self._remove_part(f"sink/{job_id}")

    async def remove_items(self, job_id: str, total: int) -> None:
        """The items, their ends, and what waits."""
        for first in range(0, total, ENDS):
            numbers = range(first, min(first + ENDS, total))
            items = await self._chunks.read(job_id, numbers, data=False)
            ends = await self._table.query(ends_part(job_id, first))
            gone: list[Key] = [key_of(end) for end in ends]
            gone += [item_key(job_id, item.key) for item in items.values()]
            gone += [input_key(job_id, seq) for seq, item in items.items() if item.large]
            await self._table.delete_many(gone)
            await self._ends.drop_parts(job_id, first)
            # Last, since they tell the keys of what is removed before.
            await self._table.delete_many(chunk_key(job_id, seq) for seq in numbers)
        for name in ("failed", "due"):
            await self._remove_part(part_of(job_id, name))

    async def _remove_part(self, pk: str) -> None:
        async for page in self._table.pages(pk):
            await self._table.delete_many(map(key_of, page))
