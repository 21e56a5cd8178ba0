"""When a schedule is due. Pure: times in, times out, all in Unix seconds.

By cron, in the schedule's time zone, as Debian's cron does (docs/schedules.md explains it for users):

- clocks go forward: a time that does not exist that day is due at the first minute after the gap;
- clocks go back: a time that comes twice is due the first time only;
- an expression whose minute or hour begins with `*` counts real minutes and hours instead: through the gap nothing is
  due, and the hour that comes twice is due twice.

By interval: every `every_seconds` from the anchor, whatever clocks do.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from scrapeyard.errors import BadRequest
from scrapeyard.model.schedule import Schedule, jitter_of

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MAX_CRON: Final = 200
_MARGIN: Final = 3 * 3600
"""Seconds. Going back from within the second of two equal hours would otherwise skip what was due in the first."""
_FIELDS: Final = "write five fields (minute hour day month weekday), such as `30 3 * * mon-fri`, or " + ", ".join(
    ALIASES
)


def read_cron(text: str) -> str:
    """The five fields, with single spaces. Raises BadRequest naming the wrong field, or saying that it is never due."""
    plain = " ".join(text.split()) if len(text) <= MAX_CRON else ""
    cron = ALIASES.get(plain.lower(), plain)
    if len(cron.split(" ")) != 5 or not cron.isascii():
        raise BadRequest(f"cron: {text[:60]!r} is no expression; {_FIELDS}")
    try:
        next(CronSim(cron, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise BadRequest(f"cron: {cron!r}: {str(error).lower()}; {_FIELDS}") from None
    except StopIteration:
        raise BadRequest(f"cron: {cron!r} is not due within fifty years; correct its day, month and weekday") from None
    return cron


def read_zone(name: str) -> str:
    """The time zone's name, validated. Raises BadRequest."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise BadRequest(f"time_zone: {name[:60]!r} is not known; write a name such as Europe/Berlin, or UTC") from None
    return name


def next_due(schedule: Schedule, after: float) -> float | None:
    """The first due time after `after`; None if there is none."""
    return next(times_after(schedule, after), None)


def at(schedule: Schedule, due: float) -> float:
    """When a due time is acted upon: with its jitter."""
    return due + jitter_of(schedule.id, due, schedule.jitter_seconds)


def coming(schedule: Schedule, after: float, count: int) -> list[float]:
    """The next times, also for a paused schedule."""
    return list(islice(times_after(schedule, after), count))


def passed(schedule: Schedule, now: float, most: int) -> list[float]:
    """Due times since `next_due` that have come, the oldest first; at most the newest `most`. They stay in order: one
    whose jitter is not over holds back those after it."""
    first = schedule.next_due
    if first is None:
        return []
    come: list[float] = []
    for due in takewhile(lambda due: due >= first, _times_before(schedule, now)):
        if at(schedule, due) > now:
            come.clear()
        else:
            come.append(due)
        if len(come) >= most and due < now - schedule.jitter_seconds:
            break
    return come[:most][::-1]


def times_after(schedule: Schedule, after: float) -> Iterator[float]:
    """All due times after `after`."""
    if schedule.every_seconds is not None:
        return _by_interval(schedule.anchor, schedule.every_seconds, after)
    return _by_cron(schedule, after)


def _by_interval(anchor: float, every: float, after: float) -> Iterator[float]:
    number = max(1, math.floor((after - anchor) / every))
    while True:
        due = anchor + number * every
        if due > after:
            yield due
        number += 1


def _by_cron(schedule: Schedule, after: float) -> Iterator[float]:
    zone = ZoneInfo(schedule.time_zone)
    for due in CronSim(schedule.cron, datetime.fromtimestamp(math.floor(after), zone)):
        # In the second of two equal hours CronSim yields times of the first, which are over.
        if (seconds := due.timestamp()) > after:
            yield seconds


def _times_before(schedule: Schedule, until: float) -> Iterator[float]:
    """Due times up to `until`, the newest first."""
    if schedule.every_seconds is not None:
        number = math.floor((until - schedule.anchor) / schedule.every_seconds) + 1
        due = (schedule.anchor + at * schedule.every_seconds for at in range(number, 0, -1))
        return (seconds for seconds in due if seconds <= until)
    zone = ZoneInfo(schedule.time_zone)
    back = CronSim(schedule.cron, datetime.fromtimestamp(math.floor(until) + _MARGIN, zone), reverse=True)
    return (seconds for due in back if (seconds := due.timestamp()) <= until)
