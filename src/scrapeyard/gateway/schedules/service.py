"""Schedules as people make and change them."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace
from pydantic import BaseModel

from scrapeyard.dispatch.schedules.timetable import at, next_due, read_cron, read_zone
from scrapeyard.errors import BadRequest, NotFound, Refusal
from scrapeyard.gateway.jobs.calls import JobCall
from scrapeyard.gateway.jobs.create import JobCreation
from scrapeyard.gateway.runs.admission import RunBuilder
from scrapeyard.gateway.runs.calls import ScrapeRequest
from scrapeyard.gateway.runs.receivers import WebhookValidator
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.gateway.schedules.documents import (
    FiringDocument,
    HistoryDocument,
    ScheduleDocument,
    SchedulePageDocument,
    firing_document,
    schedule_document,
)
from scrapeyard.gateway.schedules.schemas import ScheduleCall, ScheduleChange, ScheduledScrape
from scrapeyard.model import new_id
from scrapeyard.model.identity import Identity
from scrapeyard.model.schedule import Firing, Schedule
from scrapeyard.store.ports.schedules import HISTORY
from scrapeyard.store.ports.store import Store

MAX_SCHEDULES: Final = 10_000
MAX_TEMPLATE: Final = 2**20
"""Maximum bytes of a template. Longer lists belong at a URL or in a sitemap."""
_TRIES: Final = 5
_TIMING: Final = ("cron", "every_seconds", "time_zone", "jitter_seconds", "paused")
_CALLED: Final = ("name", "time_zone", "jitter_seconds", "overlap", "missed", "paused")


class ScheduleService:
    """Creates and changes schedules. Raises NotFound for an unknown schedule. A template is checked when it is given,
    as far as possible without starting it, so that most mistakes show then and not at night."""

    def __init__(
        self,
        *,
        store: Store,
        creation: JobCreation,
        builder: RunBuilder,
        receivers: WebhookValidator,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._creation = creation
        self._builder = builder
        self._receivers = receivers
        self._clock = clock

    async def create(self, call: ScheduleCall, identity: Identity) -> ScheduleDocument:
        """Create a schedule. Raises BadRequest, ScraperNotFound, Refusal (409) if there are too many."""
        now = self._clock()
        schedule = Schedule(
            id=new_id("schedule"),
            target="job" if call.job is not None else "scrape",
            template=await self._template(_started(call), identity),
            owner=identity.client,
            cron="" if call.cron is None else read_cron(call.cron),
            every_seconds=call.every_seconds,
            created_at=now,
            updated_at=now,
            anchor=now,
            **{name: getattr(call, name) for name in _CALLED},
        )
        read_zone(schedule.time_zone)
        schedule = _timed(schedule, now)
        if not await self._store.schedules.add(schedule, MAX_SCHEDULES):
            raise Refusal("conflict", 409, f"there are {MAX_SCHEDULES} schedules already; delete some first")
        return schedule_document(schedule, now)

    async def page(self, cursor: str | None, limit: int, owner: str | None) -> SchedulePageDocument:
        """A page of schedules of one owner, or of all, newest first."""
        page, now = await self._store.schedules.page(cursor, limit, owner=owner), self._clock()
        shown = [schedule_document(schedule, now) for schedule in page.schedules]
        return SchedulePageDocument(schedules=shown, next_cursor=page.next_cursor)

    async def get(self, schedule_id: str) -> ScheduleDocument:
        """One schedule."""
        return schedule_document(await self._found(schedule_id), self._clock())

    async def change(self, schedule_id: str, call: ScheduleChange, identity: Identity) -> ScheduleDocument:
        """Change what is given; a new time counts from now. Raises as `create`."""
        template = await self._template(_started(call), identity) if call.job or call.scrape else None
        for _ in range(_TRIES):
            before, now = await self._found(schedule_id), self._clock()
            changed = _changed(before, call, template, now)
            if any(getattr(changed, name) != getattr(before, name) for name in _TIMING):
                changed = _timed(changed, now)
            after = await self._store.schedules.change(before, changed)
            if after is not None:
                return schedule_document(after, now)
        raise Refusal("conflict", 409, "others change it at the same time; try again")

    async def delete(self, schedule_id: str) -> None:
        """Delete a schedule. Jobs and runs it started continue."""
        if not await self._store.schedules.delete(schedule_id):
            raise _none(schedule_id)

    async def run_now(self, schedule_id: str) -> FiringDocument:
        """Start it within a moment, paused or not, subject to the overlap policy."""
        schedule = await self._found(schedule_id)
        now = round(self._clock(), 3)
        firing = Firing(schedule_id=schedule_id, due_at=now, kind="manual", created_at=now)
        if not await self._store.firings.add(firing):
            await self._found(schedule_id)
            raise Refusal("conflict", 409, f"{HISTORY} starts of it wait already; look at its history")
        return firing_document(schedule, firing)

    async def history(self, schedule_id: str) -> HistoryDocument:
        """The latest firings."""
        schedule = await self._found(schedule_id)
        found = await self._store.firings.recent(schedule_id, 2 * HISTORY)
        firings = [firing_document(schedule, firing) for firing in found]
        return HistoryDocument(schedule_id=schedule_id, firings=firings)

    async def owned(self, schedule_id: str, identity: Identity) -> str:
        """The id of a schedule that the caller may see."""
        if not identity.sees_all and not identity.may_see((await self._found(schedule_id)).owner):
            raise _none(schedule_id)
        return schedule_id

    async def _found(self, schedule_id: str) -> Schedule:
        schedule = await self._store.schedules.get(schedule_id)
        if schedule is None:
            raise _none(schedule_id)
        return schedule

    async def _template(self, given: JobCall | ScheduledScrape, identity: Identity) -> Raw:
        """The template as stored. Raises as creating what it describes would."""
        if isinstance(given, JobCall):
            await self._creation.check(given, identity)
        else:
            if given.webhook is not None:
                self._receivers.check(given.webhook)
            await self._builder.build(_asked(given, identity), "", self._clock())
        packed = msgspec.json.encode(self._receivers.seal_template(_plain(given)))
        if len(packed) > MAX_TEMPLATE:
            raise BadRequest(f"what is started has {len(packed)} bytes, more than {MAX_TEMPLATE}; use items_url")
        return Raw(packed)


def _changed(before: Schedule, call: ScheduleChange, template: Raw | None, now: float) -> Schedule:
    given = call.model_dump(exclude_none=True, include=set(_CALLED))
    if template is not None:
        if (call.job is not None) != (before.target == "job"):
            raise BadRequest(f"the schedule starts a {before.target}; give {before.target}, or make another schedule")
        given["template"] = template
    if call.cron is not None:
        given |= {"cron": read_cron(call.cron), "every_seconds": None}
    if call.every_seconds not in (None, before.every_seconds):
        given |= {"cron": "", "every_seconds": call.every_seconds, "anchor": now}
    changed = replace(before, **given, updated_at=now)
    read_zone(changed.time_zone)
    return changed


def _timed(schedule: Schedule, now: float) -> Schedule:
    """The schedule with its next time, counted from now; None while it is paused."""
    due = None if schedule.paused else next_due(schedule, now)
    return replace(schedule, next_due=due, next_at=None if due is None else at(schedule, due))


def _started(call: ScheduleCall | ScheduleChange) -> JobCall | ScheduledScrape:
    given = call.job or call.scrape
    if given is None or (call.job and call.scrape):
        raise BadRequest("give one of job and scrape")
    return given


def _asked(scrape: ScheduledScrape, identity: Identity) -> ScrapeRequest:
    call = ScrapeCall.model_validate(_plain(scrape))
    return ScrapeRequest(call=call, wait=0, preference="", key=None, digest="", traceparent="", identity=identity)


def _plain(given: BaseModel) -> dict[str, Any]:
    return given.model_dump(mode="json", exclude_unset=True)


def _none(schedule_id: str) -> NotFound:
    return NotFound(f"no schedule {schedule_id}")
