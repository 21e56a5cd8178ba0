"""Effects of ended attempts: rows of outcomes and waiting, then the counters, breaker and events of the job."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import structs
from sqlalchemy import bindparam, delete, select

from scrapeyard.model.job import Counts, ItemOutcome
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.locks import change_job, locked_number
from scrapeyard.store.jobs.rules.ends import accounted, failure_told, failures_to_tell, next_attempt, outcome_values
from scrapeyard.store.jobs.rules.held import Held
from scrapeyard.store.jobs.rules.rows import Fields
from scrapeyard.store.jobs.rules.states import moved
from scrapeyard.store.tables.jobs import BATCHES, ITEMS, JOB_EVENTS, OUTCOMES, WAITING

_GONE: Final = delete(BATCHES).where(BATCHES.c.id == bindparam("batch"))
_KEYS: Final = select(ITEMS.c.seq, ITEMS.c.key)


def waiting_row(job: int, outcome: ItemOutcome, now: float) -> tuple[Any, ...]:
    """A row of `waiting`: the next attempt, and when it may begin."""
    return job, outcome.seq, *next_attempt(outcome, now), False


def write_ends(
    job: int,
    ends: Sequence[ItemOutcome],
    waits: Sequence[tuple[Any, ...]],
) -> Script[None]:
    """Write the rows of ended and waiting items of one job, given by its number."""
    written = yield BulkInsert(OUTCOMES, [(job, outcome.seq, *outcome_values(outcome)) for outcome in ends])
    written += yield BulkInsert(WAITING, waits)
    if written != len(ends) + len(waits):
        raise RuntimeError(f"items of job {job} ended or wait already though a batch held them; nothing was written")


def drop_batch(held: Held) -> Script[None]:
    """Delete the batch: all of its items have a record or wait elsewhere."""
    yield Execute(_GONE, {"batch": held.batch.id})


def account(
    job: Fields,
    ends: Sequence[ItemOutcome],
    *,
    waits: int,
    now: float,
    told: Sequence[ItemOutcome] = (),
) -> Script[Counts]:
    """Update the row of a locked job for items that were in progress, as `accounted` says."""
    counts, values = accounted(job, ends, waits=waits, now=now, told=told)
    values |= yield from _tell_failures(job, failures_to_tell(job, ends), now)
    yield from change_job(job, values)
    return counts


def put_back(held: Held, now: float) -> Script[None]:
    """End a locked batch: items without a record wait again at the same attempt, due now."""
    waits = [(held.job, seq, attempt, now, held.batch.lost_before) for seq, attempt in held.undone()]
    yield BulkInsert(WAITING, waits)
    yield from drop_batch(held)
    job = yield from locked_number(held.job)
    state = "in_progress" if held.batch.state == "running" else "queued"
    yield from change_job(job, structs.asdict(moved(job, **{state: -len(waits), "pending": len(waits)})))


def _tell_failures(job: Fields, bad: Sequence[ItemOutcome], now: float) -> Script[dict[str, int]]:
    if not bad:
        return {}
    some = ITEMS.c.seq.in_([outcome.seq for outcome in bad])
    keys = dict(tuple(row) for row in (yield Execute(_KEYS.where(ITEMS.c.job == job["number"], some))))
    rows = [
        (job["number"], number, now, "item_failed", failure_told(outcome, keys[outcome.seq]))
        for number, outcome in enumerate(bad, job["events"] + 1)
    ]
    yield BulkInsert(JOB_EVENTS, rows)
    return {"events": job["events"] + len(bad), "failures_told": job["failures_told"] + len(bad)}
