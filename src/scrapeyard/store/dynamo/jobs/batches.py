"""Batches: handed out, taken, renewed and given back."""

from collections.abc import Sequence

from msgspec import Raw, structs

from scrapeyard.model.job import Batch, BatchItem, ItemOutcome, Job, JobStatus
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.items.chunks import ItemChunks
from scrapeyard.store.dynamo.items.due import DueItems
from scrapeyard.store.dynamo.jobs.batch_rows import BatchRows
from scrapeyard.store.dynamo.jobs.recording import BatchRecorder
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows, batch_fields
from scrapeyard.store.dynamo.rows.keys import OPEN_JOBS, batch_job_key, batch_key, job_key
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import Put, Update, Write, absent, equals
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import each, unchanged
from scrapeyard.store.dynamo.table.values import Item, Key
from scrapeyard.store.jobs.rules.held import batch_values, begun_at_first, items_of, to_batch
from scrapeyard.store.jobs.rules.rows import Row, to_job
from scrapeyard.store.jobs.rules.states import HANDS_OUT, handed_out, moved
from scrapeyard.store.ports.jobs import Recorded

Taken = tuple[Batch, Job, list[BatchItem]]


class DynamoBatches(DynamoPart):
    """The BatchStore."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._rows = rows
        self._batches = BatchRows(base, rows)
        self._recorder = BatchRecorder(base, rows, self._batches)
        self._chunks = ItemChunks(base)
        self._due = DueItems(base)

    async def cut(self, batch: Batch, now: float) -> Batch | None:
        """Hand out up to `batch.left` items: waiting ones that are due first, then fresh ones. None if none were."""

        async def work() -> Batch | None:
            written, key = batch_key(batch.job_id, batch.id), job_key(batch.job_id)
            found = await self._table.get_many([written, key])
            if written in found:
                return to_batch(batch_fields(found[written]))
            if key not in found or found[key]["status"] not in HANDS_OUT:
                return None
            (job,) = await self._rows.opened([found[key]])
            filled, writes = await self._filled(job, batch, now)
            if not filled.left:
                return None
            row: Item = {"pk": written[0], "sk": written[1], "job_id": batch.job_id, **batch_values(filled)}
            pk, sk = batch_job_key(batch.id)
            told = Put({"pk": pk, "sk": sk, "job_id": batch.job_id})
            cursor = job["cursor"] if filled.again else filled.last + 1
            values = handed_out(job, filled.left, cursor, now)
            await self._table.transact([Put(row, absent()), told, *writes, *await self._rows.change(job, values)])
            return filled

        ids = is_id(batch.job_id) and is_id(batch.id)
        return await self._rows.apply(batch.job_id, work) if ids else None

    async def take(self, batch_id: str, worker_id: str, now: float, lease_until: float) -> Taken | None:
        """queued → running under this worker. None if the delivery must be dropped: another worker has the batch, or it
        is gone. A batch whose job was paused or killed meanwhile is put back here, so it is gone."""
        job_id = (await self._batches.jobs_of([batch_id])).get(batch_id)

        async def work() -> Taken | None:
            lent = await self._batches.lent(job_id or "", batch_id)
            if lent is None or lent.held.batch.state != "queued":
                return None
            job, held = lent.job, lent.held.batch
            if job["kill"] or job["status"] == JobStatus.PAUSED:
                await self._batches.put_back(lent, now)
                return None
            items = await self._items(held)
            mine = {"state": "running", "worker_id": worker_id, "lease_until": lease_until}
            mine["begun"] = begun_at_first(held)
            counts = moved(job, queued=-held.left, in_progress=held.left)
            values: Row = {"queued": counts.queued, "in_progress": counts.in_progress}
            running = Update(batch_key(job["id"], batch_id), mine, when=unchanged(lent.row))
            await self._table.transact([running, *await self._rows.change(job, values)])
            return structs.replace(held, **mine), to_job(job | values), items

        return await self._rows.apply(job_id, work) if job_id else None

    async def record(
        self,
        batch_id: str,
        worker_id: str,
        part: int,
        outcomes: Sequence[ItemOutcome],
        now: float,
        *,
        begun: int | None = None,
    ) -> Recorded | None:
        """Record outcomes of some of its items, and how many have begun, once. None if refused. Outcomes of items that
        are not in the batch, or already have a record, are skipped."""
        job_id = (await self._batches.jobs_of([batch_id])).get(batch_id)
        if job_id is None or not worker_id:
            return None
        return await self._recorder.record(
            job_id, batch_id, outcomes, worker_id=worker_id, part=part, now=now, begun=begun
        )

    async def give_back(self, batch_id: str, worker_id: str, now: float) -> None:
        """Items without a record wait again at the same attempt, due now."""
        job_id = (await self._batches.jobs_of([batch_id])).get(batch_id)

        async def work() -> None:
            lent = await self._batches.lent(job_id or "", batch_id)
            if lent is not None and lent.held.batch.worker_id == worker_id:
                await self._batches.put_back(lent, now)

        if job_id and worker_id:
            await self._rows.apply(job_id, work)

    async def renew(self, worker_id: str, batch_ids: Sequence[str], lease_until: float) -> list[str]:
        """Renew leases. Returns the batches to stop: no longer this worker's, or their job is being killed."""
        jobs = await self._batches.jobs_of(batch_ids) if worker_id else {}
        kept = {row["id"]: row["kill"] for row in await self._rows.get_many(dict.fromkeys(jobs.values()))}

        async def renewed(batch_id: str) -> bool:
            key = batch_key(jobs[batch_id], batch_id)
            return await self._changed(key, {"lease_until": lease_until}, "worker_id", worker_id)

        mine = dict(zip(jobs, await each(jobs, renewed), strict=True))
        going = {batch_id for batch_id, is_mine in mine.items() if is_mine and not kept.get(jobs[batch_id], True)}
        return [batch_id for batch_id in batch_ids if batch_id not in going]

    async def queued(self, queued_before: float, limit: int) -> list[Batch]:
        """Batches published before `queued_before` and not taken, the oldest first."""
        found = [batch for batch in await self._all_out("queued") if batch.queued_at < queued_before]
        return sorted(found, key=lambda batch: batch.queued_at)[:limit]

    async def requeued(self, batch_ids: Sequence[str], now: float) -> None:
        """Record that they were published again at `now`."""
        jobs = await self._batches.jobs_of(batch_ids)
        await each(
            jobs,
            lambda batch_id: self._changed(batch_key(jobs[batch_id], batch_id), {"queued_at": now}, "state", "queued"),
        )

    async def expire(self, now: float, limit: int) -> list[tuple[str, int, int]]:
        """Take batches from workers whose lease ended. Returns (job id, waiting, ended)."""
        late = [batch for batch in await self._all_out("in_progress") if (batch.lease_until or now) < now]
        expired = []
        for batch in sorted(late, key=lambda batch: batch.lease_until or 0.0)[:limit]:
            told = await self._recorder.expire(batch.job_id, batch.id, now)
            expired += [] if told is None else [(batch.job_id, *told)]
        return expired

    async def out(self, job_id: str) -> list[Batch]:
        """Batches handed out and not finished."""
        found = [to_batch(batch_fields(row)) for row in await self._batches.of_job(job_id)] if is_id(job_id) else []
        return sorted(found, key=lambda batch: (batch.queued_at, batch.id))

    async def withdraw(self, job_id: str, now: float) -> None:
        """Put back all batches of a job that no worker has taken."""
        for batch in await self.out(job_id):

            async def work(batch_id: str = batch.id) -> None:
                lent = await self._batches.lent(job_id, batch_id)
                if lent is not None and lent.held.batch.state == "queued":
                    await self._batches.put_back(lent, now)

            await self._rows.apply(job_id, work)

    async def _all_out(self, counter: str) -> list[Batch]:
        """Batches of all jobs in which this counter is not zero."""
        ids = [item["id"] for item in await self._table.query(OPEN_JOBS)]
        busy = [row["id"] for row in await self._rows.get_many(ids) if row[counter] > 0]
        state = "queued" if counter == "queued" else "running"
        found = [batch for batches in await each(busy, self.out) for batch in batches]
        return [batch for batch in found if batch.state == state]

    async def _changed(self, key: Key, to: Row, name: str, value: str) -> bool:
        """Write attributes of a batch if another one has this value."""
        try:
            await self._table.write(Update(key, to, when=equals(name, value)))
        except WriteRefused:
            return False
        return True

    async def _filled(self, job: Row, batch: Batch, now: float) -> tuple[Batch, list[Write]]:
        """The batch with its items, and the writes that take these from where they wait."""
        fresh = job["total"] - job["cursor"]
        if job["pending"] > fresh:
            due, writes = await self._due.choose(job["id"], now, batch.left)
            if due:
                again = tuple((item.seq, item.attempt) for item in due)
                lost = any(item.lost_before for item in due)
                waited = {"first": 0, "last": -1, "again": again, "left": len(again), "lost_before": lost}
                return structs.replace(batch, state="queued", part=0, **waited), writes
        left, first = min(batch.left, fresh), job["cursor"]
        ranged = {"first": first, "last": first + left - 1, "again": (), "left": left}
        return structs.replace(batch, state="queued", part=0, **ranged), []

    async def _items(self, batch: Batch) -> list[BatchItem]:
        """In the order of the batch, in which the worker begins them."""
        items = items_of(batch)
        found = await self._chunks.read(batch.job_id, [seq for seq, _ in items])
        return [
            BatchItem(seq=seq, key=found[seq].key, input=Raw(found[seq].input), attempt=attempt, depth=found[seq].depth)
            for seq, attempt in items
        ]
