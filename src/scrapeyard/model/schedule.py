"""A schedule: what is started again and again, and when.

    due ──► waiting ──► started | skipped | failed          missed: it was never tried

A firing is written once for each (schedule, due time), in the transaction that moves the schedule on; the id of what it
starts is derived from both. So each due time starts one job or run, however many dispatchers there are and whenever one
is killed.
"""

import hashlib
from enum import StrEnum
from typing import Literal

from msgspec import Raw, Struct

Overlap = Literal["skip", "queue", "cancel_previous"]
Missed = Literal["skip", "run_once", "run_all"]
Target = Literal["job", "scrape"]
_PREFIX: dict[Target, str] = {"job": "job", "scrape": "run"}


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule as stored. Either `cron` or `every_seconds` is set."""

    id: str
    name: str = ""
    target: Target
    template: Raw
    """What is started, as `POST /api/jobs` or `POST /api/scrape` takes it."""
    cron: str = ""
    """Five fields; empty if `every_seconds` is set."""
    every_seconds: float | None = None
    time_zone: str = "UTC"
    jitter_seconds: float = 0.0
    """Each firing is delayed by a part of this that is derived from its due time."""
    overlap: Overlap = "skip"
    missed: Missed = "run_once"
    paused: bool = False
    created_at: float
    updated_at: float
    anchor: float
    """Intervals are counted from here."""
    version: int = 1
    """Incremented with every change by people; a process that read an older version does not move the schedule on."""
    next_due: float | None = None
    """None if it is paused, or there is no further time."""
    next_at: float | None = None
    """`next_due` with its jitter."""
    last_due: float | None = None
    last_subject: str = ""
    """The job or run that was started last."""
    owner: str = ""
    """The client that owns it and what it starts."""


class FiringState(StrEnum):
    """What became of a time that came."""

    WAITING = "waiting"
    STARTED = "started"
    SKIPPED = "skipped"
    FAILED = "failed"
    MISSED = "missed"


class Firing(Struct, frozen=True, kw_only=True):
    """A due time of a schedule, and what became of it."""

    schedule_id: str
    due_at: float
    kind: Literal["scheduled", "manual"] = "scheduled"
    state: FiringState = FiringState.WAITING
    subject: str = ""
    """The job or run that it started."""
    reason: str = ""
    """Why it waits, was skipped, failed or was missed."""
    created_at: float
    settled_at: float | None = None
    holder: str = ""
    lease_until: float | None = None
    """End of the lease of the dispatcher that decides it."""


def subject_id(target: Target, schedule_id: str, due_at: float) -> str:
    """The id of what a firing starts. It sorts by the due time, as other ids sort by creation time."""
    digest = hashlib.sha256(f"{schedule_id}:{due_at!r}".encode()).hexdigest()
    return f"{_PREFIX[target]}_{int(due_at * 1000):012x}{digest[:20]}"


def jitter_of(schedule_id: str, due_at: float, jitter_seconds: float) -> float:
    """The delay of a firing: deterministic, and spread evenly between schedules."""
    digest = hashlib.sha256(f"jitter:{schedule_id}:{due_at!r}".encode()).digest()
    return jitter_seconds * int.from_bytes(digest[:6]) / 2**48
