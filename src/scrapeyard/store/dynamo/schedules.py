"""Schedules and their firings.

A schedule's row has its definition as a document, and beside it what firings write: when it is due next, and what it
started last. Its firings are a partition of their own, in the order of their times.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import convert
from msgspec.structs import asdict, replace

from scrapeyard.model.schedule import Firing, FiringState, Schedule
from scrapeyard.store.database.paging import from_cursor, is_id, next_cursor
from scrapeyard.store.dynamo.operations import at_text
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.documents import DynamoDocuments
from scrapeyard.store.dynamo.table.expressions import (
    ConditionCheck,
    Put,
    Update,
    Where,
    Write,
    absent,
    all_of,
    any_of,
    at_most,
    below,
    equals,
    exists,
)
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.schema import DUE
from scrapeyard.store.dynamo.table.table import MAX_ACTIONS, each
from scrapeyard.store.dynamo.table.values import Item, Key, key_of
from scrapeyard.store.ports.schedules import HISTORY, SchedulePage, if_room

_SCHEDULE: Final = "schedule"
_FIRING: Final = "firing"
_MOVED: Final = ("version", "next_due", "next_at", "last_due", "last_subject")
"""Attributes beside the document."""


class DynamoSchedules(DynamoPart):
    """The ScheduleStore."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._documents = DynamoDocuments(base, Schedule, "schedules.template")
        self._firings = DynamoFirings(base)

    async def add(self, schedule: Schedule, most: int) -> bool:
        """Write a new one. False if there are already `most`. Two concurrent calls may exceed that by one."""
        if await self._table.count(_SCHEDULE) >= most:
            return False
        await self._table.add(await self._row(schedule))
        return True

    async def get(self, schedule_id: str) -> Schedule | None:
        """One schedule; None if there is none."""
        row = await self._table.get((_SCHEDULE, schedule_id)) if is_id(schedule_id) else None
        return None if row is None else await self._schedule(row)

    async def page(self, cursor: str | None, limit: int, *, owner: str | None = None) -> SchedulePage:
        """Newest first. Raises BadRequest for an invalid cursor."""
        sort = None if cursor is None else below("sk", from_cursor(cursor))
        where = None if owner is None else equals("owner", owner)
        rows = await self._table.query(_SCHEDULE, sort=sort, where=where, descending=True, limit=limit + 1)
        found = [await self._schedule(row) for row in rows]
        return SchedulePage(schedules=tuple(found[:limit]), next_cursor=next_cursor(found, limit))

    async def change(self, before: Schedule, after: Schedule) -> Schedule | None:
        """Replace it, at the next version. None if it is gone, was changed or has moved on meanwhile."""
        new = await self._row(replace(after, id=before.id, created_at=before.created_at, version=before.version + 1))
        to = {name: value for name, value in new.items() if name not in ("pk", "sk", "last_due", "last_subject")}
        old = await self._table.get(key_of(new))
        try:
            row = await self._table.write(Update(key_of(new), self._documents.all_of(to), when=_stands(before)))
        except WriteRefused:
            return None
        await self._documents.clean([old] if old else [])
        return None if row is None else await self._schedule(row)

    async def delete(self, schedule_id: str) -> bool:
        """Delete it with its history. False if there is none."""
        if not is_id(schedule_id):
            return False
        row = await self._table.delete((_SCHEDULE, schedule_id))
        await self._documents.drop([(_SCHEDULE, schedule_id)])
        await self._firings.remove(schedule_id)
        return row is not None

    async def due(self, now: float, limit: int) -> list[Schedule]:
        """Schedules whose next time has come, the longest due first."""
        found = await self._table.query(_SCHEDULE, DUE, sort=at_most("due_at", now), limit=limit)
        rows = (await self._table.get_many(map(key_of, found))).values()
        due = [row for row in rows if row.get("next_at") is not None and row["next_at"] <= now]
        return [await self._schedule(row) for row in sorted(due, key=lambda row: float(row["next_at"]))]

    async def fire(
        self, schedule: Schedule, firings: Sequence[Firing], next_due: float | None, next_at: float | None
    ) -> bool:
        """Move a schedule on and write the firings, atomically. False if another process did, or it was changed. Of
        more than a hundred firings, those beyond are written after."""
        last = max((firing.due_at for firing in firings), default=schedule.last_due)
        to = {"next_due": next_due, "next_at": next_at, "last_due": last} | _due(next_at)
        waiting = await self._firings.count_waiting(schedule.id)
        rows = [firing_row(if_room(firing, place)) for place, firing in enumerate(firings, waiting)]
        known = await self._table.get_many(map(key_of, rows))
        new = [row for row in rows if key_of(row) not in known]
        moved = Update((_SCHEDULE, schedule.id), to, when=_stands(schedule))
        most = MAX_ACTIONS - 1
        try:
            await self._table.transact([moved, *(Put(row, absent()) for row in new[:most])])
        except WriteRefused as refused:
            if 0 in refused.items:
                return False
            return await self.fire(schedule, firings, next_due, next_at)  # one was added meanwhile
        for row in new[most:]:
            await self._table.add(row)
        await self._firings.bound(schedule.id)
        return True

    async def all(self) -> list[Schedule]:
        """Every schedule."""
        return await self._documents.values(await self._table.query(_SCHEDULE))

    async def remove_about(self, matches: Callable[[Item], bool], *, dry: bool) -> int:
        """Remove the schedules that match, as rows of their name, template and owner; returns how many."""
        found = [schedule for schedule in await self.all() if matches(asdict(schedule))]
        for schedule in () if dry else found:
            await self.delete(schedule.id)
        return len(found)

    async def _row(self, schedule: Schedule) -> Item:
        beside = {name: getattr(schedule, name) for name in (*_MOVED, "owner")}
        return await self._documents.item((_SCHEDULE, schedule.id), schedule, **beside, **_due(schedule.next_at))

    async def _schedule(self, row: Item) -> Schedule:
        schedule = await self._documents.value(row)
        return replace(schedule, **{name: row.get(name) for name in _MOVED})


def _due(next_at: float | None) -> Item:
    return {"due_pk": None if next_at is None else _SCHEDULE, "due_at": next_at}


def _stands(schedule: Schedule) -> Where:
    """It was neither changed nor moved on since it was read."""
    return all_of(equals("version", schedule.version), equals("next_due", schedule.next_due))


class DynamoFirings(DynamoPart):
    """The FiringStore."""

    async def add(self, firing: Firing) -> bool:
        """Write a waiting one. False if there is no such schedule or too many of its firings already wait."""
        if await self.count_waiting(firing.schedule_id) >= HISTORY:
            return False
        row = firing_row(firing)
        try:
            await self._table.transact([ConditionCheck((_SCHEDULE, firing.schedule_id), exists()), Put(row, absent())])
        except WriteRefused as refused:
            return 0 not in refused.items
        return True

    async def waiting(self, now: float, limit: int) -> list[Firing]:
        """For every schedule the oldest waiting firing that nobody has claimed."""
        schedules: set[str] = set()
        async for page in self._table.pages(_FIRING, DUE):
            schedules.update(row["pk"] for row in page)
        # The index may show a later one first, which must not overtake.
        oldest = await each(sorted(schedules), lambda pk: self._table.query(pk, where=_WAITS, limit=1))
        free = [_firing(row) for rows in oldest for row in rows if _is_free(row, now)]
        return sorted(free, key=lambda firing: firing.due_at)[:limit]

    async def claim(self, firing: Firing, holder: str, now: float, lease_until: float) -> bool:
        """Claim the decision. False if another has claimed it, or it is decided."""
        free = any_of(
            absent("lease_until"),
            at_most("lease_until", now),
            all_of(equals("holder", holder), equals("lease_until", lease_until)),
        )
        taken = {"holder": holder, "lease_until": lease_until}
        return await self._change(Update(_key(firing), taken, when=all_of(_WAITS, free)))

    async def settle(self, firing: Firing) -> bool:
        """Write the decision on a claimed one. False if it is no longer this holder's."""
        row = firing_row(replace(firing, holder="", lease_until=None))
        to = {name: value for name, value in row.items() if name not in ("pk", "sk")}
        mine = all_of(_WAITS, equals("holder", firing.holder))
        writes: list[Write] = [Update(_key(firing), to, when=mine)]
        if firing.state is FiringState.STARTED:
            schedule = (_SCHEDULE, firing.schedule_id)
            if await self._table.get(schedule) is not None:
                writes.append(Update(schedule, {"last_subject": firing.subject}, when=exists()))
        if not await self._change(*writes):
            return False
        await self.bound(firing.schedule_id)
        return True

    async def recent(self, schedule_id: str, limit: int) -> list[Firing]:
        """Newest first."""
        if not is_id(schedule_id):
            return []
        rows = await self._table.query(_partition(schedule_id), descending=True, limit=limit)
        return [_firing(row) for row in rows]

    async def count_waiting(self, schedule_id: str) -> int:
        """How many of a schedule wait."""
        return await self._table.count(_partition(schedule_id), where=_WAITS)

    async def bound(self, schedule_id: str) -> None:
        """Drop settled firings beyond HISTORY. Waiting ones have their own limit."""
        rows = await self._table.query(_partition(schedule_id), descending=True)
        settled = [key_of(row) for row in rows if row["state"] != FiringState.WAITING]
        await self._table.delete_many(settled[HISTORY:])

    async def remove(self, schedule_id: str) -> None:
        """Remove all of a schedule."""
        await self._table.delete_many([key_of(row) for row in await self._table.query(_partition(schedule_id))])

    async def _change(self, *writes: Write) -> bool:
        try:
            await self._table.transact(writes)
        except WriteRefused:
            return False
        return True


_WAITS: Final = equals("state", FiringState.WAITING.value)


def firing_row(firing: Firing) -> Item:
    """A firing as a row."""
    row = {name: getattr(firing, name) for name in firing.__struct_fields__}
    key = _key(firing)
    waits = firing.state is FiringState.WAITING
    index = {"due_pk": _FIRING if waits else None}
    return row | {"pk": key[0], "sk": key[1], "state": firing.state.value} | index


def _firing(row: Item) -> Firing:
    return convert({name: row.get(name) for name in Firing.__struct_fields__}, Firing)


def _is_free(row: Item, now: float) -> bool:
    return row.get("lease_until") is None or bool(row["lease_until"] <= now)


def _partition(schedule_id: str) -> str:
    return f"firing/{schedule_id}"


def _key(firing: Firing) -> Key:
    return _partition(firing.schedule_id), at_text(firing.due_at)
