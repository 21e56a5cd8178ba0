"""A schedule: what is started again and again, and when.

    due ──► waiting ──► started | skipped | failed          missed: it was never tried

A firing is written once for each (schedule, time it was due), in the transaction that moves the schedule on; what it
starts has an id that follows from both. So however many dispatchers there are, and whenever one is killed, a time that
came is answered by one job or run.
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
    """A schedule as the store keeps it. Either `cron` or `every_seconds` says when."""

    id: str
    name: str = ""
    target: Target
    template: Raw
    """What is started, as `POST /api/jobs` or `POST /api/scrape` takes it."""
    cron: str = ""
    """Five fields; empty: by `every_seconds`."""
    every_seconds: float | None = None
    time_zone: str = "UTC"
    jitter_seconds: float = 0.0
    """Each firing is late by a part of this that follows from its time."""
    overlap: Overlap = "skip"
    missed: Missed = "run_once"
    paused: bool = False
    created_at: float
    updated_at: float
    anchor: float
    """Intervals are counted from here."""
    version: int = 1
    """Goes up with every change of people; whoever read an older one does not move the schedule on."""
    next_due: float | None = None
    """None: paused, or there is no further time."""
    next_at: float | None = None
    """`next_due` with its jitter."""
    last_due: float | None = None
    last_subject: str = ""
    """The job or run that was started last."""


class FiringState(StrEnum):
    """What became of a time that came."""

    WAITING = "waiting"
    STARTED = "started"
    SKIPPED = "skipped"
    FAILED = "failed"
    MISSED = "missed"


class Firing(Struct, frozen=True, kw_only=True):
    """A time of a schedule that came."""

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
    """A dispatcher is at it until then."""


def subject_id(target: Target, schedule_id: str, due_at: float) -> str:
    """The id of what a firing starts. It sorts by the time that was due, as other ids do by when they were made."""
    digest = hashlib.sha256(f"{schedule_id}:{due_at!r}".encode()).hexdigest()
    return f"{_PREFIX[target]}_{int(due_at * 1000):012x}{digest[:20]}"


def jitter_of(schedule_id: str, due_at: float, jitter_seconds: float) -> float:
    """How late a firing is: the same whoever asks, and spread evenly between schedules."""
    digest = hashlib.sha256(f"jitter:{schedule_id}:{due_at!r}".encode()).digest()
    return jitter_seconds * int.from_bytes(digest[:6]) / 2**48
