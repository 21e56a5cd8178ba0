"""A run as a row, and back."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw, Struct, json, structs

from scrapeyard.model import (
    Artifact,
    ExitReason,
    FetchPolicy,
    FetchTrace,
    LogLine,
    Outcome,
    Priority,
    Run,
    RunError,
    RunProgress,
    RunStatus,
    RunWait,
    ScraperRef,
    Timing,
    Usage,
    status_of,
)
from scrapeyard.store.ports.runs import Ending

Row = dict[str, Any]


class StoredReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Usage and findings of an attempt; one column, since it is always read whole."""

    usage: Usage | None = None
    timing: Timing | None = None
    fetches: tuple[FetchTrace, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    progress: RunProgress | None = None
    waiting: RunWait | None = None


_MAX_WORDS: Final = 500
_PLAIN: Final = [
    "id",
    "scraper",
    "lane",
    "attempt",
    "max_attempts",
    "timeout_seconds",
    "created_at",
    "queued_at",
    "not_before",
    "started_at",
    "finished_at",
    "result_key",
    "result_bytes",
    "worker_id",
    "lease_until",
    "cancel_requested",
    "reply_to",
    "traceparent",
    "owner",
]
"""Fields stored unchanged as columns."""

_NO_REPORT: Final = StoredReport()
_NO_POLICY: Final = FetchPolicy()
_SWEPT: Final = json.Decoder(dict[str, float])
_POLICY: Final = json.Decoder(FetchPolicy)
_REPORT: Final = json.Decoder(StoredReport)
_ERROR: Final = json.Decoder(RunError)
_REF: Final = json.Decoder(ScraperRef)
_LINES: Final = json.Decoder(tuple[LogLine, ...])


def queued_row(run: Run) -> Row:
    """A run that was accepted and waits."""
    return _row(run) | {"status": RunStatus.QUEUED.value}


def running_row(run: Run) -> Row:
    """A run whose attempt began."""
    began = {"worker_id": run.worker_id, "started_at": run.started_at, "lease_until": run.lease_until}
    return _row(run) | began | {"status": RunStatus.RUNNING.value, "cancel_requested": run.cancel_requested}


def ended_row(ending: Ending) -> Row:
    """A run in its final form."""
    outcome = ending.outcome
    return (
        _row(ending.run)
        | _told(outcome)
        | {
            "status": status_of(outcome.exit_reason).value,
            "exit_reason": outcome.exit_reason.value,
            "attempt": outcome.attempt,
            "worker_id": outcome.worker_id or ending.run.worker_id,
            "started_at": outcome.started_at or ending.run.started_at,
            "finished_at": outcome.finished_at,
            "cancel_requested": ending.run.cancel_requested,
            "result": None if outcome.result is None else bytes(outcome.result),
            "result_key": outcome.result_key,
            "result_bytes": outcome.result_bytes,
        }
    )


def retry_row(ending: Ending) -> Row:
    """A run put back for its next attempt, or the same one again. It keeps the last attempt's findings, so that they
    can be explained."""
    outcome = ending.outcome
    return (
        _row(ending.run)
        | _told(outcome)
        | {
            "status": RunStatus.QUEUED.value,
            "attempt": outcome.attempt if outcome.postponed else outcome.attempt + 1,
            "not_before": outcome.finished_at + (outcome.retry_after or 0.0),
        }
    )


def cancelled(ending: Ending) -> Ending:
    """The same ending for a run whose cancel was requested: there is no next attempt."""
    outcome = structs.replace(ending.outcome, exit_reason=ExitReason.CANCELLED, retry_after=None)
    return structs.replace(ending, outcome=outcome)


def to_run(row: Mapping[Any, Any]) -> Run:
    """A run from its columns; `result` may be left out."""
    report = _REPORT.decode(row["report"]) if row["report"] else _NO_REPORT
    result = row.get("result")
    return Run(
        status=RunStatus(row["status"]),
        priority=Priority(row["priority"]),
        input=Raw(row["input"]),
        resolved=_REF.decode(row["resolved"]) if row["resolved"] else None,
        exit_reason=ExitReason(row["exit_reason"]) if row["exit_reason"] else None,
        error=_ERROR.decode(row["error"]) if row["error"] else None,
        result=None if result is None else Raw(result),
        usage=report.usage,
        timing=report.timing,
        fetches=report.fetches,
        artifacts=report.artifacts,
        progress=report.progress,
        waiting=report.waiting,
        fetching=_POLICY.decode(row["fetching"]) if row["fetching"] else _NO_POLICY,
        swept=_SWEPT.decode(row["swept"]) if row["swept"] else {},
        **{name: row[name] for name in _PLAIN},
    )


def with_progress(report: bytes | None, progress: RunProgress | None, waiting: RunWait | None) -> bytes:
    """A report of a run that goes on, with how far it is and what it waits for."""
    known = _REPORT.decode(report) if report else _NO_REPORT
    return json.encode(structs.replace(known, progress=progress or known.progress, waiting=waiting))


def to_lines(logs: bytes | None) -> tuple[LogLine, ...]:
    """Log lines from their column; empty if the run was never recorded."""
    return _LINES.decode(logs) if logs else ()


def packed(value: object) -> bytes | None:
    """JSON for a column; None stays None."""
    return None if value is None else json.encode(value)


def _told(outcome: Outcome) -> Row:
    report = StoredReport(
        usage=outcome.usage,
        timing=outcome.timing,
        fetches=outcome.fetches,
        artifacts=outcome.artifacts,
        progress=outcome.progress,
        waiting=_wait(outcome),
    )
    ran = {"resolved": packed(outcome.scraper)} if outcome.scraper else {}
    return ran | {
        "error": packed(outcome.error),
        "report": packed(report),
        "logs": packed(outcome.logs) if outcome.logs else None,
        "logs_cut": outcome.logs_cut,
    }


def _wait(outcome: Outcome) -> RunWait | None:
    """What a run that is put back waits for."""
    if outcome.retry_after is None:
        return None
    return RunWait(
        reason="site_turn" if outcome.postponed else "retry",
        until=outcome.finished_at + outcome.retry_after,
        message="" if outcome.error is None else outcome.error.message[:_MAX_WORDS],
    )


def _row(run: Run) -> Row:
    return {
        "id": run.id,
        "scraper": run.scraper,
        "scraper_id": run.scraper.partition("@")[0],
        "lane": run.lane,
        "priority": run.priority.value,
        "attempt": run.attempt,
        "max_attempts": run.max_attempts,
        "timeout_seconds": run.timeout_seconds,
        "created_at": run.created_at,
        "queued_at": run.queued_at,
        "reply_to": run.reply_to,
        "traceparent": run.traceparent,
        "owner": run.owner,
        "input": bytes(run.input),
        "fetching": None if run.fetching == _NO_POLICY else packed(run.fetching),
        "resolved": packed(run.resolved),
        "sweep_at": None if run.fetching.retention == _NO_POLICY.retention else run.created_at,
    } | _BLANK


_BLANK: Final[Row] = {
    "not_before": None,
    "started_at": None,
    "finished_at": None,
    "lease_until": None,
    "worker_id": "",
    "cancel_requested": False,
    "exit_reason": None,
    "result_key": "",
    "result_bytes": 0,
    "logs_cut": False,
    "error": None,
    "report": None,
    "result": None,
    "logs": None,
    "swept": None,
}

BEGUN: Final = ("status", "attempt", "worker_id", "started_at", "lease_until", "not_before")
"""Columns that the start of an attempt writes."""
_TOLD: Final = ("resolved", "error", "report", "logs", "logs_cut")
ENDED_COLUMNS: Final = (*BEGUN, *_TOLD, "finished_at", "exit_reason", "result", "result_key", "result_bytes")
"""Columns that the end of an attempt writes."""
