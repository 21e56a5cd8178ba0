"""What became of an item, as a row of `outcomes` or `waiting`."""

from typing import Any, Final

from msgspec import json

from scrapeyard.model import ExitReason, RunError
from scrapeyard.model.job import ItemOutcome
from scrapeyard.store.jobs.rows import pack_usage

GOOD: Final = frozenset({ExitReason.SUCCEEDED, ExitReason.SKIPPED})
_encode: Final = json.Encoder().encode


def is_end(outcome: ItemOutcome) -> bool:
    """Whether the item is final with it. A cancelled attempt is none: it waits, and is counted with its job."""
    return outcome.not_before is None and outcome.exit_reason is not ExitReason.CANCELLED


def outcome_row(job: int, outcome: ItemOutcome) -> tuple[Any, ...]:
    """A row of `outcomes`, in the order of its columns."""
    return (
        job,
        outcome.seq,
        outcome.attempt,
        outcome.exit_reason in GOOD,
        outcome.exit_reason.value,
        outcome.site,
        outcome.started_at,
        outcome.finished_at,
        outcome.result_key,
        outcome.result_bytes,
        None if outcome.result is None else bytes(outcome.result),
        None if outcome.error is None else _encode(outcome.error),
        pack_usage(outcome.usage),
        _encode(outcome.artifacts) if outcome.artifacts else None,
        _encode(outcome.logs) if outcome.logs else None,
    )


def waiting_row(job: int, outcome: ItemOutcome, now: float) -> tuple[Any, ...]:
    """A row of `waiting`: the attempt that comes, and when it may begin."""
    same = outcome.postponed or outcome.exit_reason is ExitReason.CANCELLED
    not_before = now if outcome.not_before is None else outcome.not_before
    return job, outcome.seq, outcome.attempt + (not same), not_before


def lost(seq: int, attempt: int, now: float) -> ItemOutcome:
    """The end of an item whose worker was lost at its last attempt."""
    error = RunError(message="its worker was lost, and no attempt was left", type="LostWorker")
    return ItemOutcome(
        seq=seq, attempt=attempt, exit_reason=ExitReason.LOST_WORKER, error=error, started_at=now, finished_at=now
    )
