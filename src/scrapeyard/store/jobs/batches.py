"""Batches: handed out, renewed; their outcomes recorded, given back, or lost with their worker."""

from collections.abc import Sequence
from typing import Final

from msgspec import Raw, structs
from sqlalchemy import bindparam, delete, select, update

from scrapeyard.model.job import Batch, BatchItem, Counts, ItemOutcome, Job, JobStatus
from scrapeyard.store.database.database import Database, SqlPart
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.counters import account, drop_batch, put_back, waiting_row, write_ends
from scrapeyard.store.jobs.found import add_found
from scrapeyard.store.jobs.locks import (
    WHOLE_BATCHES,
    as_fields,
    batch_row,
    change_job,
    locked_batch,
    locked_job,
    locked_number,
)
from scrapeyard.store.jobs.rules.ends import first_of_each, is_end, lost
from scrapeyard.store.jobs.rules.held import Held, begun_at_first, lost_items, to_batch
from scrapeyard.store.jobs.rules.rows import Fields, to_counts, to_job, to_policy
from scrapeyard.store.jobs.rules.states import HANDS_OUT, handed_out, moved
from scrapeyard.store.ports.jobs import ITEM_BLOCK, Recorded
from scrapeyard.store.tables.jobs import BATCHES, ITEMS, JOBS, WAITING

_ONE: Final = WHOLE_BATCHES.where(BATCHES.c.id == bindparam("id"))
_DUE: Final = (
    select(WAITING.c.seq, WAITING.c.attempt, WAITING.c.lost_before)
    .where(WAITING.c.job == bindparam("job"), WAITING.c.not_before <= bindparam("now"))
    .order_by(WAITING.c.not_before, WAITING.c.seq)
    .limit(bindparam("most"))
)
_INPUTS: Final = select(ITEMS.c.seq, ITEMS.c.key, ITEMS.c.input, ITEMS.c.depth)
BATCH_ITEMS: Final = _INPUTS.where(
    ITEMS.c.job == bindparam("job"), ITEMS.c.seq.between(bindparam("first"), bindparam("last"))
).order_by(ITEMS.c.seq)
"""The items of a range."""
_TAKE: Final = (
    update(BATCHES)
    .where(BATCHES.c.id == bindparam("batch"))
    .values(
        state="running", worker_id=bindparam("worker"), lease_until=bindparam("until"), begun=bindparam("now_begun")
    )
)
_GOES_ON: Final = (
    update(BATCHES)
    .where(BATCHES.c.id == bindparam("batch"))
    .values(
        left=bindparam("now_left"),
        part=bindparam("now_part"),
        done=bindparam("now_done"),
        begun=bindparam("now_begun"),
    )
)


class SqlBatches(SqlPart):
    """The BatchStore."""

    async def cut(self, batch: Batch, now: float) -> Batch | None:
        """Hand out up to `batch.left` items: waiting ones that are due first, then fresh ones. None if none were."""

        def work() -> Script[Batch | None]:
            written = yield Execute(_ONE, {"id": batch.id})
            if written:
                return to_batch(as_fields(written[0]))
            job = yield from locked_job(batch.job_id)
            if job is None or job["status"] not in HANDS_OUT:
                return None
            filled = yield from _filled(job, batch, now)
            if filled.left:
                yield from _hand_out(job, filled, now)
            return filled if filled.left else None

        return await self._database.play(work)

    async def take(
        self, batch_id: str, worker_id: str, now: float, lease_until: float
    ) -> tuple[Batch, Job, list[BatchItem]] | None:
        """queued → running under this worker. None if the delivery must be dropped: another worker has the batch, or it
        is gone. A batch whose job was paused or killed meanwhile is put back here, so it is gone."""
        tries = 0

        def work() -> Script[tuple[Batch, Job, list[BatchItem]] | None]:
            nonlocal tries
            tries += 1
            held = yield from locked_batch(batch_id)
            mine = tries > 1 and held is not None and held.batch.worker_id == worker_id  # only the response was lost
            if held is None or not (held.batch.state == "queued" or mine):
                return None
            items = yield from _items(held)
            job = yield from locked_number(held.job)
            if not mine and (job["kill"] or job["status"] == JobStatus.PAUSED):
                yield from put_back(held, now)
                return None
            counts = to_counts(job) if mine else (yield from _begin(held, job, worker_id, lease_until))
            mine_now = {"state": "running", "worker_id": worker_id, "lease_until": lease_until}
            batch = structs.replace(held.batch, begun=begun_at_first(held.batch), **mine_now)
            return batch, structs.replace(to_job(job), counts=counts), items

        return await self._database.play(work) if is_id(batch_id) else None

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
        tries = 0

        def work() -> Script[Recorded | None]:
            nonlocal tries
            tries += 1
            held = yield from locked_batch(batch_id)
            if held is None or held.batch.worker_id != worker_id:
                return None
            if tries > 1 and held.batch.part == part + 1:  # only the response was lost
                return Recorded(counts=to_counts((yield from locked_number(held.job))), left=held.batch.left)
            if held.batch.part != part:
                return None
            return (yield from _record(held, outcomes, begun, now))

        return await self._database.play(work) if is_id(batch_id) else None

    async def give_back(self, batch_id: str, worker_id: str, now: float) -> None:
        """Items without a record wait again at the same attempt, due now."""

        def work() -> Script[None]:
            held = yield from locked_batch(batch_id)
            if held is not None and held.batch.worker_id == worker_id:
                yield from put_back(held, now)

        if is_id(batch_id) and worker_id:
            await self._database.play(work)

    async def renew(self, worker_id: str, batch_ids: Sequence[str], lease_until: float) -> list[str]:
        """Renew leases. Returns the batches to stop: no longer this worker's, or their job is being killed."""
        ids = sorted({batch_id for batch_id in batch_ids if is_id(batch_id)})
        mine = select(BATCHES.c.id, JOBS.c.kill).join(JOBS, JOBS.c.number == BATCHES.c.job)
        mine = mine.where(BATCHES.c.id.in_(ids), BATCHES.c.worker_id == worker_id).order_by(BATCHES.c.id)

        def work() -> Script[list[str]]:
            rows = yield Execute(mine.with_for_update(of=BATCHES))
            going = {batch_id for batch_id, kill in rows if not kill}
            held = [batch_id for batch_id, _ in rows]
            yield Execute(update(BATCHES).where(BATCHES.c.id.in_(held)).values(lease_until=lease_until))
            return [batch_id for batch_id in batch_ids if batch_id not in going]

        return await self._database.play(work) if ids else list(batch_ids)

    async def queued(self, queued_before: float, limit: int) -> list[Batch]:
        """Batches published before `queued_before` and not taken, the oldest first."""
        query = WHOLE_BATCHES.where(BATCHES.c.state == "queued", BATCHES.c.queued_at < queued_before)
        return [to_batch(row) for row in await self._database.fetch(query.order_by(BATCHES.c.queued_at).limit(limit))]

    async def requeued(self, batch_ids: Sequence[str], now: float) -> None:
        """Record that they were published again at `now`."""
        ids = [batch_id for batch_id in batch_ids if is_id(batch_id)]
        queued = select(BATCHES.c.id).where(BATCHES.c.id.in_(ids), BATCHES.c.state == "queued").order_by(BATCHES.c.id)

        def work() -> Script[None]:
            held = [row[0] for row in (yield Execute(queued.with_for_update()))]
            yield Execute(update(BATCHES).where(BATCHES.c.id.in_(held)).values(queued_at=now))

        if ids:
            await self._database.play(work)

    async def expire(self, now: float, limit: int) -> list[tuple[str, int, int]]:
        """Take batches from workers whose lease ended, each in a transaction. Returns (job id, waiting, ended)."""
        old = select(BATCHES.c.id).where(BATCHES.c.state == "running", BATCHES.c.lease_until < now)
        rows = await self._database.fetch(old.order_by(BATCHES.c.lease_until).limit(limit))
        expired = [await _expire(self._database, row["id"], now) for row in rows]
        return [one for one in expired if one is not None]

    async def out(self, job_id: str) -> list[Batch]:
        """Number of batches handed out and not finished."""
        query = WHOLE_BATCHES.where(JOBS.c.id == job_id).order_by(BATCHES.c.queued_at, BATCHES.c.id)
        return [to_batch(row) for row in await self._database.fetch(query)] if is_id(job_id) else []


def _filled(job: Fields, batch: Batch, now: float) -> Script[Batch]:
    fresh = job["total"] - job["cursor"]
    if job["pending"] > fresh:
        asked = {"job": job["number"], "now": now, "most": batch.left}
        due = yield Execute(_DUE, asked)
        if due:
            again = tuple((seq, attempt) for seq, attempt, _ in due)
            lost = any(lost_before for _, _, lost_before in due)
            waited = {"first": 0, "last": -1, "again": again, "left": len(again), "lost_before": lost}
            return structs.replace(batch, state="queued", part=0, **waited)
    left, first = min(batch.left, fresh), job["cursor"]
    return structs.replace(batch, state="queued", part=0, first=first, last=first + left - 1, again=(), left=left)


def _hand_out(job: Fields, batch: Batch, now: float) -> Script[None]:
    count = batch.left
    if batch.again:
        seqs = [seq for seq, _ in batch.again]
        for start in range(0, count, ITEM_BLOCK):
            some = WAITING.c.seq.in_(seqs[start : start + ITEM_BLOCK])
            yield Execute(delete(WAITING).where(WAITING.c.job == job["number"], some))
    yield BulkInsert(BATCHES, [batch_row(batch, job["number"])])
    cursor = job["cursor"] if batch.again else batch.last + 1
    yield from change_job(job, handed_out(job, count, cursor, now))


def _begin(held: Held, job: Fields, worker_id: str, lease_until: float) -> Script[Counts]:
    begun = begun_at_first(held.batch)
    yield Execute(_TAKE, {"batch": held.batch.id, "worker": worker_id, "until": lease_until, "now_begun": begun})
    counts = moved(job, queued=-held.batch.left, in_progress=held.batch.left)
    yield from change_job(job, {"queued": counts.queued, "in_progress": counts.in_progress})
    return counts


def _items(held: Held) -> Script[list[BatchItem]]:
    """In the order of the batch, in which the worker begins them."""
    batch = held.batch
    if not batch.again:
        rows = yield Execute(BATCH_ITEMS, {"job": held.job, "first": batch.first, "last": batch.last})
        return [BatchItem(seq=seq, key=key, input=Raw(given), depth=depth) for seq, key, given, depth in rows]
    seqs, found = [seq for seq, _ in batch.again], {}
    for start in range(0, len(seqs), ITEM_BLOCK):
        numbers = ITEMS.c.seq.in_(seqs[start : start + ITEM_BLOCK])
        for seq, key, given, depth in (yield Execute(_INPUTS.where(ITEMS.c.job == held.job, numbers))):
            found[seq] = BatchItem(seq=seq, key=key, input=Raw(given), depth=depth)
    return [structs.replace(found[seq], attempt=attempt) for seq, attempt in batch.again]


def _record(held: Held, outcomes: Sequence[ItemOutcome], begun: int | None, now: float) -> Script[Recorded]:
    marks = held.marks()
    mine = list(first_of_each(held, outcomes, marks))
    ends = [outcome for outcome in mine if is_end(outcome)]
    waits = [waiting_row(held.job, outcome, now) for outcome in mine if not is_end(outcome)]
    yield from write_ends(held.job, ends, waits)
    left = held.batch.left - len(mine)
    yield from _set_left(held, left, marks, held.batch.begun if begun is None else begun)
    job = yield from locked_number(held.job)
    counts = yield from account(job, ends, waits=len(waits), now=now, told=mine)
    found = [item for outcome in ends for item in outcome.found]
    if found:
        added = yield from add_found({**job, **structs.asdict(counts)}, found)
        counts = structs.replace(counts, total=counts.total + added, pending=counts.pending + added)
    return Recorded(counts=counts, left=left)


def _set_left(held: Held, left: int, marks: bytearray, begun: int | None) -> Script[None]:
    if not left:
        yield from drop_batch(held)
        return
    values = {"now_left": left, "now_part": held.batch.part + 1, "now_done": bytes(marks), "now_begun": begun}
    yield Execute(_GOES_ON, values | {"batch": held.batch.id})


async def _expire(database: Database, batch_id: str, now: float) -> tuple[str, int, int] | None:
    def work() -> Script[tuple[str, int, int] | None]:
        held = yield from locked_batch(batch_id)
        if held is None or held.batch.lease_until is None or held.batch.lease_until >= now:
            return None
        job = yield from locked_number(held.job)
        ended, again = lost_items(held, to_policy(job).max_attempts, bool(job["kill"]))
        ends = [lost(seq, attempt, now) for seq, attempt in ended]
        # All are marked: one that began after the worker's last record may be what killed it.
        waits = [(held.job, seq, attempt, now, True) for seq, attempt in again]
        yield from write_ends(held.job, ends, waits)
        yield from drop_batch(held)
        yield from account(job, ends, waits=len(waits), now=now)
        return held.batch.job_id, len(waits), len(ends)

    return await database.play(work)
