"""What the states of a job allow, and the columns that a change of state writes: the same on every database.

Each function takes the row of a job that nobody else changes meanwhile, and returns columns to write; {} for none.
"""

from typing import Final

from msgspec import json, structs

from scrapeyard.model import Priority, RunError
from scrapeyard.model.breaker import closed
from scrapeyard.model.job import FINAL_JOB, BreakerState, Counts, Job, JobPolicy, JobStatus
from scrapeyard.store.jobs.rules.rows import Fields, Row, pinned_text, to_breaker, to_counts, to_policy, to_swept

TAKES_ITEMS: Final = frozenset({JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED})
"""Statuses of jobs that take more items."""
STOPPED: Final = frozenset({JobStatus.CANCELLING, JobStatus.CANCELLED, JobStatus.FAILED})
"""In a job with such a status, waiting items are counted as cancelled."""
HANDS_OUT: Final = frozenset({JobStatus.CREATING, JobStatus.RUNNING})
_GOING: Final = frozenset({JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED, JobStatus.CANCELLING})
_REST: Final = frozenset({JobStatus.FINISHING, JobStatus.COMPLETED, JobStatus.CANCELLED})
_REDRIVEN: Final = frozenset(JobStatus) - {JobStatus.CREATING, JobStatus.CANCELLING, JobStatus.FINISHING}
"""Statuses that allow a redrive. Not FINISHING: its files would be outdated."""
_STAYS: Final = frozenset({JobStatus.RUNNING, JobStatus.PAUSED})


def moved(row: Fields, /, **by: int) -> Counts:
    """The counters of a row, each changed by this much. In a stopped job, items that begin to wait are counted as
    cancelled."""
    if row["status"] in STOPPED:
        by["cancelled"] = by.get("cancelled", 0) + by.pop("pending", 0)
    counts = to_counts(row)
    return structs.replace(counts, **{name: getattr(counts, name) + change for name, change in by.items()})


def moved_deadline(row: Fields, policy: JobPolicy) -> float | None:
    """The deadline under another policy. None if there is no limit, or no item was handed out under one: then it begins
    with the next item."""
    if policy.max_seconds is None or row["deadline"] is None:
        return None
    before = to_policy(row).max_seconds
    return float(row["deadline"]) + policy.max_seconds - (policy.max_seconds if before is None else before)


def status_values(to: JobStatus, now: float) -> Row:
    """Other columns to write with this status. The files of a cancelled job are written after it."""
    ended = now if to in FINAL_JOB else None
    return {"status": to.value, "finished_at": ended, "files_pending": to is JobStatus.CANCELLED}


def handed_out(job: Fields, count: int, cursor: int, now: float) -> Row:
    """So many items are queued now. The first of a job start its clock."""
    counts = moved(job, pending=-count, queued=count)
    values: Row = {"pending": counts.pending, "queued": counts.queued, "cursor": cursor}
    values["started_at"] = now if job["started_at"] is None else job["started_at"]
    if job["deadline"] is None and (seconds := to_policy(job).max_seconds) is not None:
        values["deadline"] = now + seconds
    return values


def reading_ended(job: Fields, skipped_rows: int, failed: str, now: float) -> Row:
    """The source has ended, or failed."""
    values: Row = {"reading": False, "skipped_rows": skipped_rows}
    if not failed:
        values["unread"] = False
    if failed and job["reading"] and job["status"] in TAKES_ITEMS:
        values |= _failed(job, failed, now)
    elif job["status"] == JobStatus.CREATING:
        values |= status_values(JobStatus.RUNNING, now)
    return values


def paused_or_resumed(job: Fields, paused: bool, reason: str, now: float) -> Row:
    """Paused with this reason, or resumed with a closed breaker."""
    if job["status"] not in TAKES_ITEMS or (job["status"] == JobStatus.CREATING and not paused):
        return {}
    if paused:
        return status_values(JobStatus.PAUSED, now) | {"pause_reason": reason, "breaker_until": None}
    anew = {"pause_reason": "", "breaker_until": None, "breaker": json.encode(closed(to_breaker(job)))}
    return status_values(JobStatus.RUNNING, now) | anew


def with_policy(job: Fields, policy: JobPolicy, name: str | None, priority: Priority | None) -> Row:
    """Another policy; also another name and priority unless they are None."""
    if job["status"] in FINAL_JOB:
        return {}
    given = {"policy": json.encode(policy), "name": name, "priority": priority and priority.value}
    changes = {column: value for column, value in given.items() if value is not None}
    return {**changes, "deadline": moved_deadline(job, policy)}


def with_breaker(job: Fields, state: BreakerState, status: JobStatus | None, reason: str) -> Row:
    """The breaker's state; a job that a person paused stays paused."""
    by_breaker = job["status"] == JobStatus.PAUSED and job["breaker_until"] is not None
    written: Row = {"breaker": json.encode(state)}
    if status is JobStatus.PAUSED and (by_breaker or job["status"] == JobStatus.RUNNING):
        until = (state.opened_at or 0.0) + to_policy(job).breaker.cooldown_seconds
        written |= {"status": status.value, "pause_reason": reason, "breaker_until": until}
    elif status is JobStatus.RUNNING and by_breaker:
        written |= {"status": status.value, "pause_reason": "", "breaker_until": None}
    return written


def cancelled(job: Fields, kill: bool, now: float, fault: str) -> Row:
    """Pending items are cancelled; CANCELLING while batches are out."""
    if job["status"] not in _GOING:
        return {}
    told = {"fault": json.encode(RunError(message=fault))} if fault else {}
    to = JobStatus.CANCELLING if job["queued"] + job["in_progress"] else JobStatus.CANCELLED
    counts = {"pending": 0, "cancelled": job["cancelled"] + job["pending"]}
    halted = {"reading": False, "breaker_until": None, "pause_reason": "", "kill": kill or job["kill"]}
    return status_values(to, now) | counts | halted | told | {"unread": job["reading"] or job["unread"]}


def reopened(job: Fields, now: float) -> Row:
    """A cancelled job runs again."""
    if job["status"] != JobStatus.CANCELLED or job["deleting"] or job["archive"] or _is_swept(job):
        return {}
    counts = {"pending": job["cancelled"], "cancelled": 0, "redrives": job["redrives"] + 1}
    anew = {"kill": False, "fault": None, "deadline": None, "breaker": json.encode(closed(to_breaker(job)))}
    return status_values(JobStatus.RUNNING, now) | counts | anew | {"reading": job["unread"], "unread": False}


def may_move(job: Fields, leave: JobStatus, to: JobStatus) -> bool:
    """Whether this step of the state machine is allowed now."""
    busy = job["pending"] + job["queued"] + job["in_progress"] or job["reading"]
    return job["status"] == leave and not (to in _REST and busy)


def may_redrive(job: Fields) -> bool:
    """Whether its final items may be handed out again."""
    return job["status"] in _REDRIVEN and not job["deleting"] and not job["archive"] and not _is_swept(job)


def redriven(job: Fields, good: int, bad: int, changes: Job | None, now: float) -> Row:
    """So many ended items wait again, and all that were cancelled."""
    back = job["cancelled"]
    values: Row = {"success": job["success"] - good, "error": job["error"] - bad}
    values |= {"pending": job["pending"] + good + bad + back, "cancelled": 0, "redrives": job["redrives"] + 1}
    if job["status"] not in _STAYS:
        values |= status_values(JobStatus.RUNNING, now) | {"kill": False, "fault": None, "deadline": None}
    elif changes is not None:
        values["deadline"] = moved_deadline(job, changes.policy)
    if changes is not None:
        values |= {"scraper": changes.scraper, "scraper_id": changes.scraper.partition("@")[0]}
        values |= {"pinned": pinned_text(changes), "policy": json.encode(changes.policy)}
    return values


def _failed(job: Fields, message: str, now: float) -> Row:
    counts = {"pending": 0, "cancelled": job["cancelled"] + job["pending"]}
    fault = json.encode(RunError(message=message))
    halted = {"kill": True, "pause_reason": "", "breaker_until": None}
    return status_values(JobStatus.FAILED, now) | counts | halted | {"fault": fault}


def _is_swept(job: Fields) -> bool:
    """Whether retention removes something now, or has removed results: then its files would lack them."""
    return bool(job["sweeping"]) or "results" in to_swept(job)
