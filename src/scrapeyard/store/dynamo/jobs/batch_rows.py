"""The row of a batch that is out, beside the row of its job, and what its end writes."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.items.due import DueItems, Waiting
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows, batch_fields
from scrapeyard.store.dynamo.rows.keys import batch_job_key, batch_key, job_key
from scrapeyard.store.dynamo.table.expressions import Delete, Write, begins
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import unchanged
from scrapeyard.store.dynamo.table.values import Item
from scrapeyard.store.jobs.rules.held import Held
from scrapeyard.store.jobs.rules.rows import Row
from scrapeyard.store.jobs.rules.states import moved

_KNOWN: Final = 10_000
"""Batches whose job is remembered: it never changes."""


class Lent(NamedTuple):
    """A batch and its job, as they were read."""

    held: Held
    row: Item
    job: Row


class BatchRows(DynamoPart):
    """Batches that are out."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._rows = rows
        self._due = DueItems(base)
        self._jobs: dict[str, str] = {}

    async def jobs_of(self, batch_ids: Iterable[str]) -> dict[str, str]:
        """Ids of the jobs of those batches that are out, or were when they were last asked for."""
        ids = [batch_id for batch_id in batch_ids if is_id(batch_id)]
        unknown = [batch_id for batch_id in ids if batch_id not in self._jobs]
        found = await self._table.get_many(map(batch_job_key, unknown)) if unknown else {}
        for (pk, _), row in found.items():
            self.remember(pk.removeprefix("batch/"), row["job_id"])
        return {batch_id: self._jobs[batch_id] for batch_id in ids if batch_id in self._jobs}

    def remember(self, batch_id: str, job_id: str) -> None:
        """The job of a batch, so that it need not be asked for."""
        self._jobs[batch_id] = job_id
        if len(self._jobs) > _KNOWN:
            del self._jobs[next(iter(self._jobs))]

    async def lent(self, job_id: str, batch_id: str) -> Lent | None:
        """A batch with its job. None if it is gone."""
        batch, job = batch_key(job_id, batch_id), job_key(job_id)
        found = await self._table.get_many([batch, job])
        if batch not in found or job not in found:
            return None
        return Lent(Held(batch_fields(found[batch])), found[batch], (await self._rows.opened([found[job]]))[0])

    async def of_job(self, job_id: str) -> list[Item]:
        """All batches of a job that are out."""
        return await self._table.query(job_key(job_id)[0], sort=begins("sk", "batch/"))

    def gone(self, lent: Lent) -> list[Write]:
        """The writes that remove a batch: all of its items have a record or wait elsewhere."""
        batch_id = lent.held.batch.id
        return [Delete(batch_key(lent.job["id"], batch_id), unchanged(lent.row)), Delete(batch_job_key(batch_id))]

    async def put_back(self, lent: Lent, now: float) -> None:
        """End a batch: items without a record wait again at the same attempt, due now. Raises WriteRefused."""
        held, job = lent.held, lent.job
        waits = [Waiting(now, seq, attempt, held.batch.lost_before) for seq, attempt in held.undone()]
        state = "in_progress" if held.batch.state == "running" else "queued"
        counts = moved(job, **{state: -len(waits), "pending": len(waits)})
        values = {name: getattr(counts, name) for name in counts.__struct_fields__}
        due = self._due.rows(job["id"], waits)
        await self._table.transact([*due, *self.gone(lent), *await self._rows.change(job, values)])
