"""Schedules and their firings as the API shows them."""

from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta, Struct

from scrapeyard.dispatch.schedules.timetable import coming
from scrapeyard.gateway.http.alternatives import SCHEDULE, also, alternatives
from scrapeyard.gateway.http.patterns import NEXT
from scrapeyard.gateway.schedules.schemas import EXAMPLE_SCHEDULE, SCHEDULE_ID
from scrapeyard.model.instants import instant
from scrapeyard.model.schedule import Firing, FiringState, Missed, Overlap, Schedule, Target, subject_id

NEXT_RUNS = 5
_PLACES = {"job": "/api/jobs/", "scrape": "/api/scrape/"}


class ScheduleLinks(Struct, frozen=True, kw_only=True):
    """Where to go from here."""

    self: str
    history: str
    last: Annotated[
        str | None, Meta(description="The job or run that was started last; it may have been removed since.")
    ]


class ScheduleDocument(Struct, frozen=True, kw_only=True):
    """A schedule."""

    id: Annotated[str, Meta(pattern=SCHEDULE_ID, examples=[EXAMPLE_SCHEDULE])]
    name: str
    target: Target
    job: Annotated[dict[str, Any] | None, Meta(description="What is started, without secrets; null: a scrape.")]
    scrape: Annotated[dict[str, Any] | None, Meta(description="What is started, without secrets; null: a job.")]
    cron: str | None
    every_seconds: float | None
    time_zone: str
    jitter_seconds: float
    overlap: Overlap
    missed: Missed
    paused: bool
    next_run_at: Annotated[str | None, Meta(description="With its jitter, in UTC; null: paused, or there is none.")]
    next_runs: Annotated[
        list[str], Meta(description="The next five times by its own clock, without jitter; none when paused.")
    ]
    last_due_at: str | None
    last_id: Annotated[str | None, Meta(description="The job or run that was started last.")]
    created_at: str
    updated_at: str
    links: ScheduleLinks
    url: Annotated[str | None, also("scrape.url")]
    interval: Annotated[float | None, also("every_seconds")]
    enabled: Annotated[bool, also("paused, the other way round")]
    next_run: Annotated[str | None, also("next_run_at")]


class SchedulePageDocument(Struct, frozen=True, kw_only=True):
    """One page of the listing, newest first."""

    schedules: list[ScheduleDocument]
    next_cursor: Annotated[str | None, NEXT]


class FiringDocument(Struct, frozen=True, kw_only=True):
    """A time that came, and what became of it."""

    due_at: str
    kind: Literal["scheduled", "manual"]
    state: FiringState
    id: Annotated[
        str | None, Meta(description="The job or run that it started; of one that waits, that it will start.")
    ]
    reason: Annotated[str | None, Meta(description="Why it waits, was skipped, failed or was missed.")]
    settled_at: str | None


class HistoryDocument(Struct, frozen=True, kw_only=True):
    """The last times of a schedule, newest first."""

    schedule_id: str
    firings: list[FiringDocument]


def schedule_document(schedule: Schedule, now: float) -> ScheduleDocument:
    """One schedule, with its next times."""
    here = f"/api/schedule/{schedule.id}"
    last, template = schedule.last_subject, _template(schedule)
    return ScheduleDocument(
        id=schedule.id,
        name=schedule.name,
        target=schedule.target,
        job=template if schedule.target == "job" else None,
        scrape=template if schedule.target == "scrape" else None,
        cron=schedule.cron or None,
        every_seconds=schedule.every_seconds,
        time_zone=schedule.time_zone,
        jitter_seconds=schedule.jitter_seconds,
        overlap=schedule.overlap,
        missed=schedule.missed,
        paused=schedule.paused,
        next_run_at=instant(schedule.next_at),
        next_runs=[] if schedule.paused else _next_runs(schedule, now),
        last_due_at=instant(schedule.last_due),
        last_id=last or None,
        created_at=instant(schedule.created_at),
        updated_at=instant(schedule.updated_at),
        links=ScheduleLinks(
            self=here, history=f"{here}/history", last=_PLACES[schedule.target] + last if last else None
        ),
        **alternatives(SCHEDULE, schedule, instant),
    )


def firing_document(schedule: Schedule, firing: Firing) -> FiringDocument:
    """One firing. For a firing that waits, the id of what it will start is already known."""
    waits = firing.state is FiringState.WAITING
    started = subject_id(schedule.target, schedule.id, firing.due_at) if waits else firing.subject
    return FiringDocument(
        due_at=instant(firing.due_at),
        kind=firing.kind,
        state=firing.state,
        id=started or None,
        reason=firing.reason or None,
        settled_at=instant(firing.settled_at),
    )


def _template(schedule: Schedule) -> dict[str, Any]:
    template: dict[str, Any] = msgspec.json.decode(schedule.template)
    webhook = template.get("webhook")
    if isinstance(webhook, dict):
        signed = webhook.pop("secret", None) is not None
        webhook["own_secret"] = signed
    return template


def _next_runs(schedule: Schedule, now: float) -> list[str]:
    """The next times from the one due next, in the schedule's time zone."""
    zone = ZoneInfo(schedule.time_zone)
    after = now if schedule.next_due is None else min(now, schedule.next_due - 1)
    return [datetime.fromtimestamp(due, zone).isoformat() for due in coming(schedule, after, NEXT_RUNS)]
