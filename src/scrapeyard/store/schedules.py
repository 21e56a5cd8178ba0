"""Schedules in the store."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Raw
from sqlalchemy import ColumnElement, RowMapping, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model.schedule import Firing, FiringState, Schedule
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import is_id, newest_first, next_cursor
from scrapeyard.store.ports.schedules import HISTORY, SchedulePage, if_room
from scrapeyard.store.tables.schedules import FIRINGS, SCHEDULES

_LEFT_BY_FIRINGS: Final = frozenset({"id", "created_at", "last_due", "last_subject"})
_WAITS: Final = FIRINGS.c.state == FiringState.WAITING.value


class SqlSchedules(SqlPart):
    """The ScheduleStore."""

    async def add(self, schedule: Schedule, most: int) -> bool:
        """Write a new one. False if there are already `most`. Two concurrent calls may exceed that by one."""

        async def work(connection: AsyncConnection) -> bool:
            count = await connection.scalar(select(func.count()).select_from(SCHEDULES)) or 0
            if count >= most:
                return False
            await connection.execute(self._database.insert(SCHEDULES).values(_row(schedule)).on_conflict_do_nothing())
            return True

        return await self._database.write(work)

    async def get(self, schedule_id: str) -> Schedule | None:
        """One schedule; None if there is none."""
        if not is_id(schedule_id):
            return None
        rows = await self._database.fetch(select(SCHEDULES).where(SCHEDULES.c.id == schedule_id))
        return _schedule(rows[0]) if rows else None

    async def page(self, cursor: str | None, limit: int, *, owner: str | None = None) -> SchedulePage:
        """Newest first. Raises BadRequest for an invalid cursor."""
        query = newest_first(select(SCHEDULES), SCHEDULES.c.id, cursor, limit)
        if owner is not None:
            query = query.where(SCHEDULES.c.owner == owner)
        found = tuple(_schedule(row) for row in await self._database.fetch(query))
        return SchedulePage(schedules=found[:limit], next_cursor=next_cursor(found, limit))

    async def change(self, before: Schedule, after: Schedule) -> Schedule | None:
        """Replace it, at the next version. None if it is gone, was changed or has moved on meanwhile."""
        values = {name: value for name, value in _row(after).items() if name not in _LEFT_BY_FIRINGS}
        statement = update(SCHEDULES).where(_stands(before)).values(values | {"version": before.version + 1})
        rows = await self._database.change(statement.returning(*SCHEDULES.c))
        return _schedule(rows[0]) if rows else None

    async def delete(self, schedule_id: str) -> bool:
        """Delete it with its history. False if there is none."""
        if not is_id(schedule_id):
            return False
        statement = delete(SCHEDULES).where(SCHEDULES.c.id == schedule_id).returning(SCHEDULES.c.id)
        return bool(await self._database.change(statement))

    async def due(self, now: float, limit: int) -> list[Schedule]:
        """Schedules whose next time has come, the longest due first."""
        query = select(SCHEDULES).where(SCHEDULES.c.next_at <= now).order_by(SCHEDULES.c.next_at).limit(limit)
        return [_schedule(row) for row in await self._database.fetch(query)]

    async def fire(
        self, schedule: Schedule, firings: Sequence[Firing], next_due: float | None, next_at: float | None
    ) -> bool:
        """Move a schedule on and write the firings, atomically. False if another process did, or it was changed."""
        last = max((firing.due_at for firing in firings), default=schedule.last_due)
        moved = update(SCHEDULES).where(_stands(schedule)).values(next_due=next_due, next_at=next_at, last_due=last)

        async def work(connection: AsyncConnection) -> bool:
            if (await connection.execute(moved.returning(SCHEDULES.c.id))).first() is None:
                return False
            waiting = await _waiting(connection, schedule.id)
            for place, firing in enumerate(firings, waiting):
                insert = self._database.insert(FIRINGS).values(_firing_row(if_room(firing, place)))
                await connection.execute(insert.on_conflict_do_nothing())
            await _bound(connection, schedule.id)
            return True

        return await self._database.write(work)


class SqlFirings(SqlPart):
    """The FiringStore."""

    async def add(self, firing: Firing) -> bool:
        """Write a waiting one. False if there is no such schedule or too many of its firings already wait."""

        async def work(connection: AsyncConnection) -> bool:
            held = select(SCHEDULES.c.id).where(SCHEDULES.c.id == firing.schedule_id).with_for_update()
            if await connection.scalar(held) is None or await _waiting(connection, firing.schedule_id) >= HISTORY:
                return False
            insert = self._database.insert(FIRINGS).values(_firing_row(firing))
            await connection.execute(insert.on_conflict_do_nothing())
            return True

        return await self._database.write(work)

    async def waiting(self, now: float, limit: int) -> list[Firing]:
        """For every schedule the oldest waiting firing that nobody has claimed."""
        oldest = select(FIRINGS.c.schedule_id, func.min(FIRINGS.c.due_at).label("due_at")).where(_WAITS)
        first = oldest.group_by(FIRINGS.c.schedule_id).subquery()
        same = (FIRINGS.c.schedule_id == first.c.schedule_id) & (FIRINGS.c.due_at == first.c.due_at)
        query = select(FIRINGS).join(first, same).where(_free(now)).order_by(FIRINGS.c.due_at).limit(limit)
        return [_firing(row) for row in await self._database.fetch(query)]

    async def claim(self, firing: Firing, holder: str, now: float, lease_until: float) -> bool:
        """Claim the decision. False if another has claimed it, or it is decided."""
        mine = (FIRINGS.c.holder == holder) & (FIRINGS.c.lease_until == lease_until)
        statement = update(FIRINGS).where(_is(firing), _WAITS, _free(now) | mine)
        statement = statement.values(holder=holder, lease_until=lease_until)
        return bool(await self._database.change(statement.returning(FIRINGS.c.due_at)))

    async def settle(self, firing: Firing) -> bool:
        """Write the decision on a claimed one. False if it is no longer this holder's."""
        values = {name: getattr(firing, name) for name in ("subject", "reason", "settled_at")}
        values |= {"state": firing.state.value, "holder": "", "lease_until": None}
        settled = update(FIRINGS).where(_is(firing), _WAITS, FIRINGS.c.holder == firing.holder).values(values)
        started = update(SCHEDULES).where(SCHEDULES.c.id == firing.schedule_id).values(last_subject=firing.subject)

        async def work(connection: AsyncConnection) -> bool:
            if (await connection.execute(settled.returning(FIRINGS.c.due_at))).first() is None:
                return False
            if firing.state is FiringState.STARTED:
                await connection.execute(started)
            await _bound(connection, firing.schedule_id)
            return True

        return await self._database.write(work)

    async def recent(self, schedule_id: str, limit: int) -> list[Firing]:
        """Newest first."""
        query = select(FIRINGS).where(FIRINGS.c.schedule_id == schedule_id).order_by(FIRINGS.c.due_at.desc())
        return [_firing(row) for row in await self._database.fetch(query.limit(limit))] if is_id(schedule_id) else []


async def _waiting(connection: AsyncConnection, schedule_id: str) -> int:
    query = select(func.count()).select_from(FIRINGS).where(FIRINGS.c.schedule_id == schedule_id, _WAITS)
    return await connection.scalar(query) or 0


async def _bound(connection: AsyncConnection, schedule_id: str) -> None:
    """Drop settled firings beyond HISTORY. Waiting ones have their own limit."""
    settled = (FIRINGS.c.schedule_id == schedule_id) & ~_WAITS
    newest = select(FIRINGS.c.due_at).where(settled).order_by(FIRINGS.c.due_at.desc()).offset(HISTORY).limit(1)
    too_old = await connection.scalar(newest)
    if too_old is not None:
        await connection.execute(delete(FIRINGS).where(settled, FIRINGS.c.due_at <= too_old))


def _stands(schedule: Schedule) -> ColumnElement[bool]:
    """Condition that it was neither changed nor moved on since it was read."""
    return (
        (SCHEDULES.c.id == schedule.id)
        & (SCHEDULES.c.version == schedule.version)
        & SCHEDULES.c.next_due.is_not_distinct_from(schedule.next_due)
    )


def _is(firing: Firing) -> ColumnElement[bool]:
    return (FIRINGS.c.schedule_id == firing.schedule_id) & (FIRINGS.c.due_at == firing.due_at)


def _free(now: float) -> ColumnElement[bool]:
    return FIRINGS.c.lease_until.is_(None) | (FIRINGS.c.lease_until <= now)


def _row(schedule: Schedule) -> dict[str, Any]:
    row = {name: getattr(schedule, name) for name in schedule.__struct_fields__}
    return row | {"template": bytes(schedule.template)}


def _schedule(row: RowMapping) -> Schedule:
    return Schedule(**(dict(row) | {"template": Raw(row["template"]), "paused": bool(row["paused"])}))


def _firing_row(firing: Firing) -> dict[str, Any]:
    row = {name: getattr(firing, name) for name in firing.__struct_fields__}
    return row | {"state": firing.state.value}


def _firing(row: RowMapping) -> Firing:
    return Firing(**(dict(row) | {"state": FiringState(row["state"])}))
