"""What the end of attempts changes: rows of outcomes and waiting, then the job's counters, use, breaker, events."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json, structs
from sqlalchemy import bindparam, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model import Usage
from scrapeyard.model.breaker import heard, letters
from scrapeyard.model.job import Counts, ItemOutcome
from scrapeyard.store.backend import Backend
from scrapeyard.store.job_batch_rows import Held
from scrapeyard.store.job_locks import change_job, locked_number, moved
from scrapeyard.store.job_outcome_rows import GOOD, outcome_row
from scrapeyard.store.job_rows import Fields, to_breaker, to_policy, to_use
from scrapeyard.store.job_tables import BATCHES, ITEMS, JOB_EVENTS, OUTCOMES, WAITING

FAILURES_TOLD: Final = 1000
"""Of one job, as events."""
_GONE: Final = delete(BATCHES).where(BATCHES.c.id == bindparam("batch"))
_KEYS: Final = select(ITEMS.c.seq, ITEMS.c.key).where(
    ITEMS.c.job == bindparam("job"), ITEMS.c.seq.in_(bindparam("seqs", expanding=True))
)
_SUMMED: Final = tuple(name for name in Usage.__struct_fields__ if name not in ("memory_mb", "bytes_by_class"))


async def write_ends(
    backend: Backend,
    connection: AsyncConnection,
    job: int,
    ends: Sequence[ItemOutcome],
    waits: Sequence[tuple[Any, ...]],
) -> None:
    """The rows of items of one job, by its number."""
    written = await backend.insert_all(connection, OUTCOMES, [outcome_row(job, outcome) for outcome in ends])
    written += await backend.insert_all(connection, WAITING, waits)
    if written != len(ends) + len(waits):
        raise RuntimeError(f"items of job {job} ended or wait already though a batch held them; nothing was written")


async def drop_batch(connection: AsyncConnection, held: Held) -> None:
    """All of its items have a record, or somewhere else to be."""
    await connection.execute(_GONE, {"batch": held.batch.id})


async def account(
    backend: Backend,
    connection: AsyncConnection,
    job: Fields,
    ends: Sequence[ItemOutcome],
    *,
    waits: int,
    now: float,
    told: Sequence[ItemOutcome] = (),
) -> Counts:
    """Change the row of a held job by items that were in progress. `told`: what a worker said, which of lost items
    nobody did."""
    bad = [outcome for outcome in ends if outcome.exit_reason not in GOOD]
    good = len(ends) - len(bad)
    counts = moved(job, in_progress=-len(ends) - waits, success=good, error=len(bad), pending=waits)
    values: dict[str, Any] = structs.asdict(counts)
    if told:
        breaker = heard(to_policy(job).breaker, to_breaker(job), letters(told), now)
        values |= {"breaker": json.encode(breaker), "use": json.encode(_summed(to_use(job), told))}
    values |= await _tell_failures(backend, connection, job, bad, now)
    await change_job(connection, job, values)
    return counts


async def put_back(backend: Backend, connection: AsyncConnection, held: Held, now: float) -> None:
    """End a held batch: what has no record waits again at the same attempt, due now."""
    waits = [(held.job, seq, attempt, now) for seq, attempt in held.undone()]
    await backend.insert_all(connection, WAITING, waits)
    await drop_batch(connection, held)
    job = await locked_number(connection, held.job)
    state = "in_progress" if held.batch.state == "running" else "queued"
    await change_job(connection, job, structs.asdict(moved(job, **{state: -len(waits), "pending": len(waits)})))


async def _tell_failures(
    backend: Backend, connection: AsyncConnection, job: Fields, bad: Sequence[ItemOutcome], now: float
) -> dict[str, int]:
    bad = bad[: max(0, FAILURES_TOLD - job["failures_told"])]
    if not bad:
        return {}
    asked = {"job": job["number"], "seqs": [outcome.seq for outcome in bad]}
    keys = dict((await connection.execute(_KEYS, asked)).tuples().all())
    rows = [
        (job["number"], number, now, "item_failed", _failure(outcome, keys[outcome.seq]))
        for number, outcome in enumerate(bad, job["events"] + 1)
    ]
    await backend.insert_all(connection, JOB_EVENTS, rows)
    return {"events": job["events"] + len(bad), "failures_told": job["failures_told"] + len(bad)}


def _summed(use: Usage, outcomes: Sequence[ItemOutcome]) -> Usage:
    """Sums, and of the memory the highest."""
    used = [outcome.usage for outcome in outcomes]
    by_class = dict(use.bytes_by_class)
    for one in used:
        for name, size in one.bytes_by_class.items():
            by_class[name] = by_class.get(name, 0) + size
    sums = {name: getattr(use, name) + sum(getattr(one, name) for one in used) for name in _SUMMED}
    memory = max((one.memory_mb for one in used), default=0.0)
    return Usage(**sums, memory_mb=max(use.memory_mb, memory), bytes_by_class=by_class)


def _failure(outcome: ItemOutcome, key: str) -> bytes:
    message = outcome.error.message if outcome.error else ""
    told = {"key": key, "exit_reason": outcome.exit_reason.value, "attempt": outcome.attempt, "message": message[:500]}
    return json.encode(told)
