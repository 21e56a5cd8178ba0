"""Ends of attempts: what is stored of one, and what it adds to its job. The same on every database."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import json, structs

from scrapeyard.model import ExitReason, RunError, Usage
from scrapeyard.model.breaker import heard, letters
from scrapeyard.model.job import Counts, ItemOutcome
from scrapeyard.store.jobs.rules.held import Held
from scrapeyard.store.jobs.rules.rows import Fields, Row, counted_statuses, pack_used, to_breaker, to_policy, to_use
from scrapeyard.store.jobs.rules.states import moved

_FAILURES_TOLD: Final = 1000
"""Maximum `item_failed` events of one job."""
_BY_NAME: Final = ("bytes_by_class", "masked")
"""Sums by name."""
_SUMMED: Final = tuple(name for name in Usage.__struct_fields__ if name not in ("memory_mb", *_BY_NAME))
_numbers: Final = attrgetter(*_SUMMED)
_encode: Final = json.Encoder().encode


def is_end(outcome: ItemOutcome) -> bool:
    """Whether this makes the item final. A cancelled attempt does not: the item waits, and is counted with its job."""
    return outcome.not_before is None and outcome.exit_reason is not ExitReason.CANCELLED


def outcome_values(outcome: ItemOutcome) -> tuple[Any, ...]:
    """The columns OUTCOME_COLUMNS of an outcome."""
    return (
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


OUTCOME_COLUMNS: Final = (
    "attempt",
    "ok",
    "exit_reason",
    "site",
    "started_at",
    "finished_at",
    "result_key",
    "result_bytes",
    "result",
    "error",
    "usage",
    "artifacts",
    "logs",
    "http_status",
)
"""Of the table `outcomes`, after job and item."""


def next_attempt(outcome: ItemOutcome, now: float) -> tuple[int, float]:
    """The attempt that follows, and when it may begin, after an outcome that is no end."""
    same = outcome.postponed or outcome.exit_reason is ExitReason.CANCELLED
    return outcome.attempt + (not same), now if outcome.not_before is None else outcome.not_before


def lost(seq: int, attempt: int, now: float) -> ItemOutcome:
    """The end of an item whose worker was lost at its last attempt."""
    error = RunError(message="its worker was lost, and no attempt was left", type="LostWorker")
    return ItemOutcome(
        seq=seq, attempt=attempt, exit_reason=ExitReason.LOST_WORKER, error=error, started_at=now, finished_at=now
    )


def first_of_each(held: Held, outcomes: Iterable[ItemOutcome], marks: bytearray) -> Iterable[ItemOutcome]:
    """Outcomes of items that are in the batch and have no record yet; marks them."""
    for outcome in outcomes:
        place = held.place(outcome.seq)
        if place is not None and not marks[place]:
            marks[place] = 1
            yield outcome


def accounted(
    job: Fields, ends: Sequence[ItemOutcome], *, waits: int, now: float, told: Sequence[ItemOutcome] = ()
) -> tuple[Counts, Row]:
    """The counters of a job after items that were in progress ended or wait again, and all columns to write. `told` are
    outcomes that a worker reported; lost items have none."""
    good = sum(outcome.exit_reason.is_good for outcome in ends)
    counts = moved(job, in_progress=-len(ends) - waits, success=good, error=len(ends) - good, pending=waits)
    values: Row = structs.asdict(counts)
    if told:
        breaker = heard(to_policy(job).breaker, to_breaker(job), letters(told), now)
        values |= {"breaker": json.encode(breaker), "use": json.encode(_summed(to_use(job), told))}
    return counts, values | counted_statuses(job, (outcome.http_status for outcome in ends), 1)


def failures_to_tell(job: Fields, ends: Sequence[ItemOutcome]) -> list[ItemOutcome]:
    """Bad ends that become `item_failed` events: the first of the job."""
    bad = [outcome for outcome in ends if not outcome.exit_reason.is_good]
    return bad[: max(0, _FAILURES_TOLD - job["failures_told"])]


def failure_told(outcome: ItemOutcome, key: str) -> bytes:
    """The data of an `item_failed` event."""
    message = outcome.error.message if outcome.error else ""
    told = {"key": key, "exit_reason": outcome.exit_reason.value, "attempt": outcome.attempt, "message": message[:500]}
    return json.encode(told)


def _summed(use: Usage, outcomes: Sequence[ItemOutcome]) -> Usage:
    """Sums; for memory the maximum."""
    used = [use, *(outcome.usage for outcome in outcomes)]
    by_name: dict[str, Any] = {}
    for field in _BY_NAME:
        total: Counter[str] = Counter()
        for one in used:
            if found := getattr(one, field):
                total.update(found)
        by_name[field] = dict(total)
    columns = zip(*map(_numbers, used), strict=True)
    sums = {name: sum(column) for name, column in zip(_SUMMED, columns, strict=True)}
    return Usage(**sums, memory_mb=max(one.memory_mb for one in used), **by_name)
