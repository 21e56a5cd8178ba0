"""Webhooks: events and ends of runs become deliveries, which are then sent."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json
from sqlalchemy import ColumnElement, RowMapping, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model import FINAL, Run
from scrapeyard.model.webhook import Attempt, DeliveryState, Webhook, WebhookDelivery
from scrapeyard.store.database.database import Database, SqlPart
from scrapeyard.store.database.paging import is_id, newest_first, next_cursor
from scrapeyard.store.jobs.events import to_event
from scrapeyard.store.jobs.rules.rows import to_job
from scrapeyard.store.ports.jobs import JobEvent
from scrapeyard.store.ports.webhooks import DeliveryFilter, DeliveryPage, EventCursor, JobNewsItem
from scrapeyard.store.runs.rows import to_run
from scrapeyard.store.runs.statements import WHOLE
from scrapeyard.store.tables.jobs import JOB_EVENTS, JOBS
from scrapeyard.store.tables.runs import RUNS
from scrapeyard.store.tables.schedules import DELIVERIES, MARKS, RUN_WATCHES

_LOG: Final = json.Decoder(tuple[Attempt, ...])


def delivery_row(delivery: WebhookDelivery) -> dict[str, Any]:
    """The whole delivery as a row."""
    row = {name: getattr(delivery, name) for name in delivery.__struct_fields__}
    return row | {"state": delivery.state.value, "log": json.encode(delivery.log)}


def to_delivery(row: RowMapping) -> WebhookDelivery:
    """A delivery from a row; without a body column the body is empty."""
    plain = {"body": b"", **row}
    return WebhookDelivery(**(plain | {"state": DeliveryState(row["state"]), "log": _LOG.decode(row["log"])}))


_WEBHOOK: Final = json.Decoder(Webhook)
_MARK: Final = tuple(MARKS.c[name].label(f"mark_{name}") for name in ("job_id", "events", "status", "finished_at"))
_UNTOLD: Final = or_(
    MARKS.c.job_id.is_(None),
    JOBS.c.events > MARKS.c.events,
    JOBS.c.status != MARKS.c.status,
    JOBS.c.finished_at.is_distinct_from(MARKS.c.finished_at),
)


async def add_deliveries(
    database: Database, connection: AsyncConnection, deliveries: Sequence[WebhookDelivery]
) -> None:
    """Write those that are not there yet, as part of a transaction."""
    for delivery in deliveries:
        insert = database.insert(DELIVERIES).values(delivery_row(delivery))
        await connection.execute(insert.on_conflict_do_nothing())


class SqlWebhooks(SqlPart):
    """The WebhookStore."""

    async def untold_jobs(self, limit: int, events: int) -> list[JobNewsItem]:
        """Jobs with a webhook that have events after their mark, or another status than it says."""
        query = select(*JOBS.c, *_MARK).outerjoin(MARKS, MARKS.c.job_id == JOBS.c.id)
        query = query.where(JOBS.c.webhook.is_not(None), _UNTOLD).order_by(JOBS.c.number).limit(limit)
        found = []
        for row in await self._database.fetch(query):
            mark = _mark(row)
            after = await self._events_after(row["number"], mark, events) if row["events"] > mark.events else ()
            found.append(JobNewsItem(job=to_job(row), mark=mark, events=after))
        return found

    async def tell_job(
        self, job_id: str, before: EventCursor, after: EventCursor, deliveries: Sequence[WebhookDelivery]
    ) -> bool:
        """Write deliveries and move the mark, atomically. False if it had moved, or the job is gone."""
        values = {name: getattr(after, name) for name in after.__struct_fields__}

        async def work(connection: AsyncConnection) -> bool:
            # The row of the job is locked, so that nobody else deletes it or writes its deliveries meanwhile.
            held = select(JOBS.c.id).where(JOBS.c.id == job_id).with_for_update(key_share=True)
            if await connection.scalar(held) is None or await _mark_of(connection, job_id) != before:
                return False
            insert = self._database.insert(MARKS).values(job_id=job_id, **values)
            await connection.execute(insert.on_conflict_do_update(index_elements=["job_id"], set_=values))
            await add_deliveries(self._database, connection, deliveries)
            return True

        return await self._database.write(work)

    async def watch_runs(self, run_ids: Sequence[str], webhook: Webhook, now: float) -> None:
        """Notify this receiver when these runs end."""
        packed = json.encode(webhook)
        statement = self._database.insert(RUN_WATCHES).on_conflict_do_nothing()
        for start in range(0, len(run_ids), 500):
            rows = [{"run_id": run_id, "webhook": packed, "created_at": now} for run_id in run_ids[start : start + 500]]
            await self._database.write_rows(statement, rows)

    async def ended_runs(self, limit: int) -> list[tuple[Run, Webhook]]:
        """Watched runs that have ended, whole."""
        ended = RUNS.c.status.in_(sorted(FINAL))
        query = select(*WHOLE, RUN_WATCHES.c.webhook).join(RUN_WATCHES, RUN_WATCHES.c.run_id == RUNS.c.id)
        rows = await self._database.fetch(query.where(ended).order_by(RUN_WATCHES.c.run_id).limit(limit))
        return [(to_run(row), _WEBHOOK.decode(row["webhook"])) for row in rows]

    async def tell_run(self, run_id: str, deliveries: Sequence[WebhookDelivery]) -> None:
        """Write deliveries and remove the watch, atomically."""

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(delete(RUN_WATCHES).where(RUN_WATCHES.c.run_id == run_id))
            await add_deliveries(self._database, connection, deliveries)

        await self._database.write(work)

    async def forget_watches_before(self, created_before: float) -> None:
        """Drop watches of runs that never ended or were never written."""
        await self._database.change(delete(RUN_WATCHES).where(RUN_WATCHES.c.created_at < created_before))

    async def _events_after(self, job: int, mark: EventCursor, limit: int) -> tuple[JobEvent, ...]:
        query = select(JOB_EVENTS).where(JOB_EVENTS.c.job == job, JOB_EVENTS.c.number > mark.events)
        rows = await self._database.fetch(query.order_by(JOB_EVENTS.c.number).limit(limit))
        return tuple(to_event(row) for row in rows)


async def _mark_of(connection: AsyncConnection, job_id: str) -> EventCursor:
    row = (await connection.execute(select(*_MARK).where(MARKS.c.job_id == job_id))).mappings().first()
    return EventCursor() if row is None else _mark(row)


def _mark(row: Any) -> EventCursor:
    if row["mark_job_id"] is None:
        return EventCursor()
    return EventCursor(events=row["mark_events"], status=row["mark_status"], finished_at=row["mark_finished_at"])


_LISTED: Final = tuple(column for column in DELIVERIES.c if column.name != "body")
_WAITS: Final = DELIVERIES.c.state == DeliveryState.WAITING.value


class SqlDeliveries(SqlPart):
    """The DeliveryStore."""

    async def claim(
        self, holder: str, now: float, lease_until: float, but_hosts: Sequence[str]
    ) -> WebhookDelivery | None:
        """Claim the longest due unclaimed delivery to none of these hosts. None if there is none."""
        due = (_WAITS, DELIVERIES.c.next_at <= now, _free(now), DELIVERIES.c.host.not_in(list(but_hosts)))
        first = select(DELIVERIES.c.id).where(*due).order_by(DELIVERIES.c.next_at, DELIVERIES.c.id).limit(1)
        if not await self._database.fetch(first):  # runs every second, and a query is cheaper than an update
            return None
        taken = {"holder": holder, "lease_until": lease_until, "attempts": DELIVERIES.c.attempts + 1}
        free = first.with_for_update(skip_locked=True).scalar_subquery()
        statement = update(DELIVERIES).where(DELIVERIES.c.id == free).values(taken)
        rows = await self._database.change(statement.returning(*DELIVERIES.c))
        return to_delivery(rows[0]) if rows else None

    async def end_attempt(self, delivery: WebhookDelivery) -> bool:
        """Write the result. False if it is no longer this holder's."""
        mine = (DELIVERIES.c.holder == delivery.holder) & (DELIVERIES.c.attempts == delivery.attempts)
        values = {
            "state": delivery.state.value,
            "next_at": delivery.next_at,
            "finished_at": delivery.finished_at,
            "log": json.encode(delivery.log),
            "holder": "",
            "lease_until": None,
        }
        statement = update(DELIVERIES).where(DELIVERIES.c.id == delivery.id, _WAITS, mine).values(values)
        return bool(await self._database.change(statement.returning(DELIVERIES.c.id)))

    async def get(self, delivery_id: str) -> WebhookDelivery | None:
        """One delivery; None if there is none."""
        if not is_id(delivery_id):
            return None
        rows = await self._database.fetch(select(DELIVERIES).where(DELIVERIES.c.id == delivery_id))
        return to_delivery(rows[0]) if rows else None

    async def page(self, where: DeliveryFilter, cursor: str | None, limit: int) -> DeliveryPage:
        """Newest first, without bodies. Raises BadRequest for an invalid cursor."""
        query = newest_first(select(*_LISTED), DELIVERIES.c.id, cursor, limit)
        if where.subject is not None:
            query = query.where(DELIVERIES.c.subject == where.subject)
        if where.owner is not None:
            query = query.where(DELIVERIES.c.owner == where.owner)
        if where.state is not None:
            query = query.where(DELIVERIES.c.state == where.state.value)
        if where.subject is not None and not is_id(where.subject):
            return DeliveryPage(deliveries=())
        found = tuple(to_delivery(row) for row in await self._database.fetch(query))
        return DeliveryPage(deliveries=found[:limit], next_cursor=next_cursor(found, limit))

    async def replay(self, delivery_id: str, now: float, give_up_at: float) -> WebhookDelivery | None:
        """Send it once more, starting now; a waiting one becomes due at once. None if there is no such delivery."""
        if not is_id(delivery_id):
            return None
        values = {"state": "waiting", "next_at": now, "give_up_at": give_up_at, "finished_at": None}
        statement = update(DELIVERIES).where(DELIVERIES.c.id == delivery_id).values(values)
        rows = await self._database.change(statement.returning(*DELIVERIES.c))
        return to_delivery(rows[0]) if rows else None

    async def forget_before(self, finished_before: float, limit: int) -> int:
        """Drop older final ones; returns how many."""
        old = select(DELIVERIES.c.id).where(DELIVERIES.c.finished_at < finished_before)
        some = old.order_by(DELIVERIES.c.finished_at).limit(limit)
        rows = await self._database.change(
            delete(DELIVERIES).where(DELIVERIES.c.id.in_(some.scalar_subquery())).returning(DELIVERIES.c.id)
        )
        return len(rows)


def _free(now: float) -> ColumnElement[bool]:
    return DELIVERIES.c.lease_until.is_(None) | (DELIVERIES.c.lease_until <= now)
