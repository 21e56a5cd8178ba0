"""Recording outcomes of batches, and taking batches from workers that were lost.

A transaction takes a hundred writes. A record of more outcomes is written in steps, and so are the items of a lost
worker. Each step marks its items as done in the batch, so a record that is repeated skips what is there. The batch
moves to its next part, or goes, only with the last step.
"""

from collections.abc import Sequence
from typing import Final

from scrapeyard.model.job import Counts, ItemOutcome
from scrapeyard.store.dynamo.items.append import ItemAppend
from scrapeyard.store.dynamo.items.chunks import ItemChunks
from scrapeyard.store.dynamo.items.due import DueItems, Waiting
from scrapeyard.store.dynamo.items.ends import ItemEnds
from scrapeyard.store.dynamo.jobs.batch_rows import BatchRows, Lent
from scrapeyard.store.dynamo.jobs.events import DynamoEvents
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import batch_key
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import ConditionCheck, Put, Update, Write, all_of, equals
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import unchanged
from scrapeyard.store.dynamo.table.values import size_of
from scrapeyard.store.jobs.rules.ends import (
    accounted,
    failure_told,
    failures_to_tell,
    first_of_each,
    is_end,
    lost,
    next_attempt,
)
from scrapeyard.store.jobs.rules.held import lost_items
from scrapeyard.store.jobs.rules.rows import Row, to_counts, to_policy
from scrapeyard.store.ports.jobs import Recorded

_ACTIONS: Final = 85
"""Writes of one step for its items; the rest of a transaction is for the batch, the job, its listings and events."""
_BYTES: Final = 700_000
"""Of one step: a request of less than 1 MB does not hold up others of the process. DynamoDB takes 4 MB."""
_PER_ITEM: Final = 2
"""An item that failed or waits takes two writes."""


class BatchRecorder(DynamoPart):
    """Records batches."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows, batches: BatchRows) -> None:
        super().__init__(base)
        self._rows = rows
        self._batches = batches
        self._append = ItemAppend(base, rows)
        self._chunks = ItemChunks(base)
        self._ends = ItemEnds(base)
        self._due = DueItems(base)
        self._events = DynamoEvents(base, rows)

    async def record(
        self,
        job_id: str,
        batch_id: str,
        outcomes: Sequence[ItemOutcome],
        *,
        worker_id: str,
        part: int,
        now: float,
        begun: int | None,
    ) -> Recorded | None:
        """As `BatchStore.record`. What scripts found is added first, as long as the batch is this worker's: if that is
        all that a crash leaves, the item that found it runs again and adds nothing."""
        found = [item for outcome in outcomes if is_end(outcome) for item in outcome.found]
        mine = all_of(equals("worker_id", worker_id), equals("part", part))
        recorded: Recorded | None = None

        async def step() -> bool:
            """Whether that was all."""
            nonlocal recorded
            lent = await self._batches.lent(job_id, batch_id)
            if lent is None or lent.held.batch.worker_id != worker_id or lent.held.batch.part != part:
                recorded = None
                return True
            recorded, is_last = await self._record(lent, outcomes, now, begun)
            return is_last

        if found and await self._is_at(job_id, batch_id, worker_id, part):
            await self._append.add_found(job_id, found, ConditionCheck(batch_key(job_id, batch_id), mine))
        while not await self._rows.apply(job_id, step):
            pass
        return recorded

    async def expire(self, job_id: str, batch_id: str, now: float) -> tuple[int, int] | None:
        """Take a batch whose lease ended; how many of its items wait, and how many ended. None if it has not."""
        told: tuple[int, int] | None = None

        async def step() -> bool:
            """Whether that was all."""
            nonlocal told
            lent = await self._batches.lent(job_id, batch_id)
            if lent is None or lent.held.batch.lease_until is None or lent.held.batch.lease_until >= now:
                return True
            waits, ends, is_last = await self._expire(lent, now)
            before = told or (0, 0)
            told = before[0] + waits, before[1] + ends
            return is_last

        while not await self._rows.apply(job_id, step):
            pass
        return told

    async def _is_at(self, job_id: str, batch_id: str, worker_id: str, part: int) -> bool:
        lent = await self._batches.lent(job_id, batch_id)
        return lent is not None and lent.held.batch.worker_id == worker_id and lent.held.batch.part == part

    async def _record(
        self, lent: Lent, outcomes: Sequence[ItemOutcome], now: float, begun: int | None
    ) -> tuple[Recorded, bool]:
        held, job_id = lent.held, lent.job["id"]
        marks = held.marks()
        mine = list(first_of_each(held, outcomes, marks))
        taken, writes = await self._some(job_id, mine, now)
        for outcome in mine[len(taken) :]:
            marks[held.place(outcome.seq) or 0] = 0
        is_last, left = len(taken) == len(mine), held.batch.left - len(taken)
        begun = held.batch.begun if begun is None else begun
        going = {"left": left, "part": held.batch.part + is_last, "done": bytes(marks), "begun": begun}
        counts, changes = await self._account(lent.job, taken, taken, now)
        await self._write(lent, [*writes, *changes], going)
        return Recorded(counts=counts, left=left), is_last

    async def _expire(self, lent: Lent, now: float) -> tuple[int, int, bool]:
        held, job = lent.held, lent.job
        ended, again = lost_items(held, to_policy(job).max_attempts, bool(job["kill"]))
        before, room = dict(held.undone()), _ACTIONS // _PER_ITEM
        charged = [(seq, attempt) for seq, attempt in again if attempt != before[seq]]
        ends = [lost(seq, attempt, now) for seq, attempt in ended[:room]]
        charged = charged[: room - len(ends)]
        kept = {seq for seq, _ in charged}
        # All are marked: one that began after the worker's last record may be what killed it.
        waits = [Waiting(now, seq, at, True) for seq, at in again if at == before[seq] or seq in kept]
        writes: list[Write] = [write for end in ends for write in await self._ends.writes(job["id"], end)]
        writes += [self._ends.wait(job["id"], item) for item in waits if item.seq in kept]
        marks = held.marks()
        for seq in (*(end.seq for end in ends), *(item.seq for item in waits)):
            marks[held.place(seq) or 0] = 1
        left = held.batch.left - len(ends) - len(waits)
        _, changes = await self._account(job, ends, (), now, waits=len(waits))
        # Nobody's any more: its worker may not record what the next step takes.
        nobody: Row = {"left": left, "done": bytes(marks), "worker_id": ""}
        await self._write(lent, [*writes, *self._due.rows(job["id"], waits), *changes], nobody)
        return len(waits), len(ends), not left

    async def _some(
        self, job_id: str, outcomes: Sequence[ItemOutcome], now: float
    ) -> tuple[list[ItemOutcome], list[Write]]:
        """As many outcomes as one step takes, and their writes."""
        taken: list[ItemOutcome] = []
        writes: list[Write] = []
        waits: list[Waiting] = []
        actions = size = 0
        for outcome in outcomes:
            if is_end(outcome):
                some: list[Put] = await self._ends.writes(job_id, outcome)
            else:
                attempt, at = next_attempt(outcome, now)
                wait = Waiting(at, outcome.seq, attempt)
                some = [self._ends.wait(job_id, wait)]
            actions, size = actions + _PER_ITEM, size + sum(size_of(put.item) for put in some)
            actions -= is_end(outcome) and len(some) == 1
            if taken and (actions > _ACTIONS or size > _BYTES):
                break
            taken.append(outcome)
            writes += some
            waits += [] if is_end(outcome) else [wait]
        return taken, [*writes, *self._due.rows(job_id, waits)]

    async def _account(
        self, job: Row, outcomes: Sequence[ItemOutcome], told: Sequence[ItemOutcome], now: float, waits: int = 0
    ) -> tuple[Counts, list[Write]]:
        """The counters of the job after these, and the writes of its row and events."""
        ends = [outcome for outcome in outcomes if is_end(outcome)]
        waits += len(outcomes) - len(ends)
        if not outcomes and not waits:
            return to_counts(job), []
        counts, values = accounted(job, ends, waits=waits, now=now, told=told)
        writes: list[Write] = []
        if bad := failures_to_tell(job, ends):
            keys = await self._chunks.read(job["id"], [outcome.seq for outcome in bad], data=False)
            events = [(now, "item_failed", failure_told(outcome, keys[outcome.seq].key)) for outcome in bad]
            row, counted = await self._events.told(job, events)
            writes.append(row)
            values |= counted | {"failures_told": job["failures_told"] + len(bad)}
        return counts, [*writes, *await self._rows.change(job, values)]

    async def _write(self, lent: Lent, writes: Sequence[Write], going: Row) -> None:
        batch = lent.held.batch
        key = batch_key(lent.job["id"], batch.id)
        ends = [Update(key, going, when=unchanged(lent.row))] if going["left"] else self._batches.gone(lent)
        try:
            await self._table.transact([*writes, *ends])
        except WriteRefused as refused:
            if not refused.conflicts and all("ok" in (item or {}) for item in refused.items.values()):
                raise RuntimeError(
                    f"items of {batch.id} ended already though it held them; nothing was written"
                ) from None
            raise
