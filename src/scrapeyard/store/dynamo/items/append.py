"""Adding items to a job: those of its list, and those that scripts find while they run.

A transaction takes a hundred writes, and each key is one, so a block is added in steps. Each step is whole: its items
count as pending, and their keys are taken. After a crash the block is added again, and what is there adds nothing.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import json

from scrapeyard.model.job import NewItem
from scrapeyard.store.dynamo.items.chunks import CHUNK, ItemChunks, StoredItem, as_stored
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import item_key, number, part_of
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import ConditionCheck, Put, Write, absent
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import unchanged
from scrapeyard.store.dynamo.table.values import key_of
from scrapeyard.store.jobs.rules.gaps import TOO_MANY, near_enough, with_gaps
from scrapeyard.store.jobs.rules.rows import Row, source_values
from scrapeyard.store.jobs.rules.states import TAKES_ITEMS

_ACTIONS: Final = 90
"""Writes of one step; the rest of a transaction is for the job, its listings and the block."""
_BYTES: Final = 700_000
"""Of one step: a request of less than 1 MB does not hold up others of the process. DynamoDB takes 4 MB."""


class _Step(NamedTuple):
    items: list[NewItem]
    keys: list[Put]
    rows: list[Put]


class ItemAppend(DynamoPart):
    """Adds items to jobs."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._rows = rows
        self._chunks = ItemChunks(base)

    async def add(self, job_id: str, given: Sequence[NewItem], block: int, source: str) -> int | None:
        """A block of a source; each key once. Returns how many were new, also when repeated. None if the job takes no
        more."""
        rest = list(given)

        async def step() -> tuple[int | None, bool]:
            """How many the block has added, and whether that is all."""
            key = part_of(job_id, "blocks"), f"{source} {number(block)}"
            job, before = await self._rows.get(job_id), await self._table.get(key)
            if before is not None and before["whole"]:
                return before["added"], True
            if job is None or job["status"] not in TAKES_ITEMS:
                return None, True
            taken = await self._step(job, rest)
            whole = len(taken.items) == len(rest)
            added = (before["added"] if before else 0) + len(taken.items)
            noted = Put({"pk": key[0], "sk": key[1], "added": added, "whole": whole}, unchanged(before))
            try:
                await self._write(job, taken, [noted], {})
            except WriteRefused as refused:
                known = {put.item["sk"] for at, put in enumerate(taken.keys) if at in refused.items}
                rest[:] = [item for item in rest if item.key not in known]
                raise
            del rest[: len(taken.items)]
            return added, whole

        while True:
            added, whole = await self._rows.apply(job_id, step)
            if whole:
                return added

    async def add_found(self, job_id: str, found: Sequence[NewItem], fence: ConditionCheck) -> None:
        """Append what scripts found, within the job's limits, as long as the fence holds. Items whose key exists are
        skipped, and the job's gaps say what was left out. A job that takes no more items gets none."""

        left: list[NewItem] | None = None

        async def step() -> bool:
            """Whether there is more to add."""
            nonlocal left
            job = await self._rows.get(job_id)
            if job is None or job["status"] not in TAKES_ITEMS:
                return False
            source = json.decode(job["source"])
            near, most, gaps = near_enough(job, source, found)
            left = await self._unknown(job_id, near) if left is None else left
            room = max(0, most - job["total"])
            if len(left) > room:
                gaps.append(TOO_MANY.format(most))
            noted = with_gaps(source, gaps)
            taken = await self._step(job, left[:room])
            if taken.items or noted is not None:
                values, rest = {} if noted is None else source_values(noted), left[len(taken.items) :]
                left = None  # if this is refused, somebody else may have added them
                try:
                    await self._write(job, taken, [fence], values)
                except WriteRefused as refused:
                    if len(taken.keys) + len(taken.rows) in refused.items:
                        return False  # the fence is gone for good; another try would not change that
                    raise
                left = rest
            return bool(left) and len(taken.items) < room

        while await self._rows.apply(job_id, step):
            pass

    async def numbers(self, job_id: str, keys: Sequence[str]) -> list[int]:
        """Numbers of the items with these keys, in order."""
        found = await self._table.get_many(item_key(job_id, key) for key in keys)
        return sorted(row["seq"] for row in found.values())

    async def _unknown(self, job_id: str, items: Sequence[NewItem]) -> list[NewItem]:
        known = await self._table.get_many(item_key(job_id, item.key) for item in items)
        return [item for item in items if item_key(job_id, item.key) not in known]

    async def _step(self, job: Row, items: Sequence[NewItem]) -> _Step:
        """As many of these as one transaction takes."""
        stored: dict[int, StoredItem] = {}
        actions, size = 2, 0
        for seq, item in enumerate(items, job["total"]):
            one = as_stored(item)
            actions, size = actions + 1 + one.is_large + (seq % CHUNK == 0), size + one.bytes
            if stored and (actions > _ACTIONS or size > _BYTES):
                break
            stored[seq] = one
        rows, before = await self._chunks.written(job["id"], stored)
        keys = [
            Put({"pk": pk, "sk": sk, "seq": seq}, absent())
            for seq, one in stored.items()
            for pk, sk in (item_key(job["id"], one.key),)
        ]
        puts = [Put(row, unchanged(before.get(key_of(row)))) for row in rows]
        return _Step(list(items[: len(stored)]), keys, puts)

    async def _write(self, job: Row, step: _Step, more: Sequence[Write], values: Row) -> None:
        added = len(step.items)
        values = values | {"total": job["total"] + added, "pending": job["pending"] + added}
        await self._table.transact([*step.keys, *step.rows, *more, *await self._rows.change(job, values)])
