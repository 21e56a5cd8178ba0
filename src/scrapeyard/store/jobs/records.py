"""Outcomes of a batch's items: recorded, given back, or lost with their worker."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import bindparam, select, update

from scrapeyard.model.job import ItemOutcome
from scrapeyard.store.database.database import Database
from scrapeyard.store.database.transaction import Execute, Script
from scrapeyard.store.jobs.counters import account, drop_batch, is_end, lost, put_back, waiting_row, write_ends
from scrapeyard.store.jobs.locks import Held, locked_batch, locked_number
from scrapeyard.store.jobs.rows import to_counts, to_policy
from scrapeyard.store.ports.jobs import Recorded
from scrapeyard.store.runs.writes import is_id
from scrapeyard.store.tables.jobs import BATCHES

_GOES_ON: Final = (
    update(BATCHES)
    .where(BATCHES.c.id == bindparam("batch"))
    .values(left=bindparam("now_left"), part=bindparam("now_part"), done=bindparam("now_done"))
)


class SqlJobRecords:
    """The part of BatchStore that takes batches back."""

    _database: Database

    async def record(
        self, batch_id: str, worker_id: str, part: int, outcomes: Sequence[ItemOutcome], now: float
    ) -> Recorded | None:
        """Record outcomes of some of its items, once. None if refused. Outcomes of items that are not in the batch, or
        already have a record, are skipped."""
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
            return (yield from _record(held, outcomes, now))

        return await self._database.play(work) if is_id(batch_id) else None

    async def give_back(self, batch_id: str, worker_id: str, now: float) -> None:
        """Items without a record wait again at the same attempt, due now."""

        def work() -> Script[None]:
            held = yield from locked_batch(batch_id)
            if held is not None and held.batch.worker_id == worker_id:
                yield from put_back(held, now)

        if is_id(batch_id) and worker_id:
            await self._database.play(work)

    async def expire_batches(self, now: float, limit: int) -> list[tuple[str, int, int]]:
        """Take batches from workers whose lease ended, each in a transaction. Returns (job id, waiting, ended)."""
        old = select(BATCHES.c.id).where(BATCHES.c.state == "running", BATCHES.c.lease_until < now)
        rows = await self._database.fetch(old.order_by(BATCHES.c.lease_until).limit(limit))
        expired = [await _expire(self._database, row["id"], now) for row in rows]
        return [one for one in expired if one is not None]


def _record(held: Held, outcomes: Sequence[ItemOutcome], now: float) -> Script[Recorded]:
    marks = held.marks()
    mine = list(_first_of_each(held, outcomes, marks))
    ends = [outcome for outcome in mine if is_end(outcome)]
    waits = [waiting_row(held.job, outcome, now) for outcome in mine if not is_end(outcome)]
    yield from write_ends(held.job, ends, waits)
    left = held.batch.left - len(mine)
    yield from _set_left(held, left, marks)
    job = yield from locked_number(held.job)
    counts = yield from account(job, ends, waits=len(waits), now=now, told=mine)
    return Recorded(counts=counts, left=left)


async def _expire(database: Database, batch_id: str, now: float) -> tuple[str, int, int] | None:
    def work() -> Script[tuple[str, int, int] | None]:
        held = yield from locked_batch(batch_id)
        if held is None or held.batch.lease_until is None or held.batch.lease_until >= now:
            return None
        job = yield from locked_number(held.job)
        most, kill = to_policy(job).max_attempts, job["kill"]
        ends = [lost(seq, attempt, now) for seq, attempt in held.undone() if attempt >= most and not kill]
        waits = [(held.job, seq, attempt + (not kill), now) for seq, attempt in held.undone() if kill or attempt < most]
        yield from write_ends(held.job, ends, waits)
        yield from drop_batch(held)
        yield from account(job, ends, waits=len(waits), now=now)
        return held.batch.job_id, len(waits), len(ends)

    return await database.play(work)


def _first_of_each(held: Held, outcomes: Iterable[ItemOutcome], marks: bytearray) -> Iterable[ItemOutcome]:
    """Outcomes of items that are in the batch and have no record yet; marks them."""
    for outcome in outcomes:
        place = held.place(outcome.seq)
        if place is not None and not marks[place]:
            marks[place] = 1
            yield outcome


def _set_left(held: Held, left: int, marks: bytearray) -> Script[None]:
    if not left:
        yield from drop_batch(held)
        return
    values = {"now_left": left, "now_part": held.batch.part + 1, "now_done": bytes(marks)}
    yield Execute(_GOES_ON, values | {"batch": held.batch.id})
