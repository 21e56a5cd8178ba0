"""Effects of ended attempts: rows of outcomes and waiting, then the counters, breaker and events of the job."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json, structs
from sqlalchemy import bindparam, delete, select

from scrapeyard.model import ExitReason, RunError, Usage
from scrapeyard.model.breaker import heard, letters
from scrapeyard.model.job import Counts, ItemOutcome
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.locks import Held, change_job, locked_number, moved
from scrapeyard.store.jobs.rows import Fields, counted_statuses, pack_used, to_breaker, to_policy, to_use
from scrapeyard.store.tables.jobs import BATCHES, ITEMS, JOB_EVENTS, OUTCOMES, WAITING

_encode: Final = json.Encoder().encode


def is_end(outcome: ItemOutcome) -> bool:
    """Whether this makes the item final. A cancelled attempt does not: the item waits, and is counted with its job."""
    return outcome.not_before is None and outcome.exit_reason is not ExitReason.CANCELLED


def outcome_row(job: int, outcome: ItemOutcome) -> tuple[Any, ...]:
    """A row of `outcomes`, in the order of its columns."""
    return (
        job,
        outcome.seq,
        outcome.attempt,
        outcome.exit_reason.is_good,
        outcome.exit_reason.value,
        outcome.site,
        outcome.started_at,
        outcome.finished_at,
        outcome.result_key,
        outcome.result_bytes,
        None if outcome.result is None else bytes(outcome.result),
        None if outcome.error is None else _encode(outcome.error),
        pack_used(outcome),
        _encode(outcome.artifacts) if outcome.artifacts else None,
        _encode(outcome.logs) if outcome.logs else None,
        outcome.http_status,
    )


def waiting_row(job: int, outcome: ItemOutcome, now: float) -> tuple[Any, ...]:
    """A row of `waiting`: the next attempt, and when it may begin."""
    same = outcome.postponed or outcome.exit_reason is ExitReason.CANCELLED
    not_before = now if outcome.not_before is None else outcome.not_before
    return job, outcome.seq, outcome.attempt + (not same), not_before, False


def lost(seq: int, attempt: int, now: float) -> ItemOutcome:
    """The end of an item whose worker was lost at its last attempt."""
    error = RunError(message="its worker was lost, and no attempt was left", type="LostWorker")
    return ItemOutcome(
        seq=seq, attempt=attempt, exit_reason=ExitReason.LOST_WORKER, error=error, started_at=now, finished_at=now
    )


FAILURES_TOLD: Final = 1000
"""Maximum `item_failed` events of one job."""
_GONE: Final = delete(BATCHES).where(BATCHES.c.id == bindparam("batch"))
_KEYS: Final = select(ITEMS.c.seq, ITEMS.c.key)
_BY_NAME: Final = ("bytes_by_class", "masked")
"""Sums by name."""
_SUMMED: Final = tuple(name for name in Usage.__struct_fields__ if name not in ("memory_mb", *_BY_NAME))


def write_ends(
    job: int,
    ends: Sequence[ItemOutcome],
    waits: Sequence[tuple[Any, ...]],
) -> Script[None]:
    """Write the rows of ended and waiting items of one job, given by its number."""
    written = yield BulkInsert(OUTCOMES, [outcome_row(job, outcome) for outcome in ends])
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
    """Update the row of a locked job for items that were in progress. `told` are outcomes that a worker reported; lost
    items have none."""
    bad = [outcome for outcome in ends if not outcome.exit_reason.is_good]
    good = len(ends) - len(bad)
    counts = moved(job, in_progress=-len(ends) - waits, success=good, error=len(bad), pending=waits)
    values: dict[str, Any] = structs.asdict(counts)
    if told:
        breaker = heard(to_policy(job).breaker, to_breaker(job), letters(told), now)
        values |= {"breaker": json.encode(breaker), "use": json.encode(_summed(to_use(job), told))}
    values |= counted_statuses(job, (outcome.http_status for outcome in ends), 1)
    values |= yield from _tell_failures(job, bad, now)
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
    bad = bad[: max(0, FAILURES_TOLD - job["failures_told"])]
    if not bad:
        return {}
    some = ITEMS.c.seq.in_([outcome.seq for outcome in bad])
    keys = dict(tuple(row) for row in (yield Execute(_KEYS.where(ITEMS.c.job == job["number"], some))))
    rows = [
        (job["number"], number, now, "item_failed", _failure(outcome, keys[outcome.seq]))
        for number, outcome in enumerate(bad, job["events"] + 1)
    ]
    yield BulkInsert(JOB_EVENTS, rows)
    return {"events": job["events"] + len(bad), "failures_told": job["failures_told"] + len(bad)}


def _summed(use: Usage, outcomes: Sequence[ItemOutcome]) -> Usage:
    """Sums; for memory the maximum."""
    used = [outcome.usage for outcome in outcomes]
    by_name: dict[str, Any] = {}
    for field in _BY_NAME:
        total = by_name[field] = dict(getattr(use, field))
        for one in used:
            for name, count in getattr(one, field).items():
                total[name] = total.get(name, 0) + count
    sums = {name: getattr(use, name) + sum(getattr(one, name) for one in used) for name in _SUMMED}
    memory = max((one.memory_mb for one in used), default=0.0)
    return Usage(**sums, memory_mb=max(use.memory_mb, memory), **by_name)


def _failure(outcome: ItemOutcome, key: str) -> bytes:
    message = outcome.error.message if outcome.error else ""
    told = {"key": key, "exit_reason": outcome.exit_reason.value, "attempt": outcome.attempt, "message": message[:500]}
    return json.encode(told)
