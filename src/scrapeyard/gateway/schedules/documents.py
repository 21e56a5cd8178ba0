"""Schedules as the API shows them."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from scrapeyard.dispatch.schedules.timetable import coming
from scrapeyard.gateway.runs.documents import instant
from scrapeyard.model.schedule import Firing, FiringState, Schedule, subject_id

NEXT_RUNS = 5
_PLAIN = ("id", "name", "target", "time_zone", "jitter_seconds", "overlap", "missed", "paused", "every_seconds")
_PLACES = {"job": "/api/jobs/", "scrape": "/api/scrape/"}


def schedule_document(schedule: Schedule, now: float) -> dict[str, Any]:
    """One, with its next times."""
    here = f"/api/schedule/{schedule.id}"
    last = schedule.last_subject
    return {
        **{name: getattr(schedule, name) for name in _PLAIN},
        "job": None,
        "scrape": None,
        schedule.target: _template(schedule),
        "cron": schedule.cron or None,
        "next_run_at": instant(schedule.next_at),
        "next_runs": [] if schedule.paused else _next_runs(schedule, now),
        "last_due_at": instant(schedule.last_due),
        "last_id": last or None,
        "created_at": instant(schedule.created_at),
        "updated_at": instant(schedule.updated_at),
        "links": {
            "self": here,
            "history": f"{here}/history",
            "last": _PLACES[schedule.target] + last if last else None,
        },
    }


def firing_document(schedule: Schedule, firing: Firing) -> dict[str, Any]:
    """One time that came. What one that waits will start is known already."""
    waits = firing.state is FiringState.WAITING
    started = subject_id(schedule.target, schedule.id, firing.due_at) if waits else firing.subject
    return {
        "due_at": instant(firing.due_at),
        "kind": firing.kind,
        "state": firing.state,
        "id": started or None,
        "reason": firing.reason or None,
        "settled_at": instant(firing.settled_at),
    }


def _template(schedule: Schedule) -> dict[str, Any]:
    template: dict[str, Any] = msgspec.json.decode(schedule.template)
    webhook = template.get("webhook")
    if isinstance(webhook, dict):
        signed = webhook.pop("secret", None) is not None
        webhook["own_secret"] = signed
    return template


def _next_runs(schedule: Schedule, now: float) -> list[str]:
    """From the one that is due next on, by the schedule's own clock."""
    zone = ZoneInfo(schedule.time_zone)
    after = now if schedule.next_due is None else min(now, schedule.next_due - 1)
    return [datetime.fromtimestamp(due, zone).isoformat() for due in coming(schedule, after, NEXT_RUNS)]
