"""Deliveries of webhooks on their way."""

from collections.abc import Sequence
from typing import Final

from msgspec import json
from sqlalchemy import ColumnElement, delete, select, update

from scrapeyard.model.webhook import DeliveryState, WebhookDelivery
from scrapeyard.store.database import Database
from scrapeyard.store.jobs.cursors import as_cursor, from_cursor
from scrapeyard.store.ports.webhooks import DeliveryFilter, DeliveryPage
from scrapeyard.store.runs.writes import is_id
from scrapeyard.store.tables.schedules import DELIVERIES
from scrapeyard.store.webhook_rows import to_delivery

_LISTED: Final = tuple(column for column in DELIVERIES.c if column.name != "body")
_WAITS: Final = DELIVERIES.c.state == DeliveryState.WAITING.value


class SqlWebhookDeliveries:
    """The half of WebhookStore that sends and shows deliveries."""

    _database: Database

    async def claim_delivery(
        self, holder: str, now: float, lease_until: float, but_hosts: Sequence[str]
    ) -> WebhookDelivery | None:
        """Take the longest due that nobody sends, to none of these hosts. None: there is none."""
        due = (_WAITS, DELIVERIES.c.next_at <= now, _free(now), DELIVERIES.c.host.not_in(list(but_hosts)))
        first = select(DELIVERIES.c.id).where(*due).order_by(DELIVERIES.c.next_at, DELIVERIES.c.id).limit(1)
        if not await self._database.fetch(first):  # asked every second, and a look is cheaper than a change
            return None
        taken = {"holder": holder, "lease_until": lease_until, "attempts": DELIVERIES.c.attempts + 1}
        free = first.with_for_update(skip_locked=True).scalar_subquery()
        statement = update(DELIVERIES).where(DELIVERIES.c.id == free).values(taken)
        rows = await self._database.change(statement.returning(*DELIVERIES.c))
        return to_delivery(rows[0]) if rows else None

    async def end_attempt(self, delivery: WebhookDelivery) -> bool:
        """Write how it went. False: it is not this holder's any more."""
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

    async def delivery(self, delivery_id: str) -> WebhookDelivery | None:
        """None means no such delivery."""
        if not is_id(delivery_id):
            return None
        rows = await self._database.fetch(select(DELIVERIES).where(DELIVERIES.c.id == delivery_id))
        return to_delivery(rows[0]) if rows else None

    async def deliveries(self, where: DeliveryFilter, cursor: str | None, limit: int) -> DeliveryPage:
        """Newest first, without bodies. Raises BadRequest when the cursor is not one of ours."""
        query = select(*_LISTED).order_by(DELIVERIES.c.id.desc()).limit(limit + 1)
        if where.subject is not None:
            query = query.where(DELIVERIES.c.subject == where.subject)
        if where.state is not None:
            query = query.where(DELIVERIES.c.state == where.state.value)
        if cursor is not None:
            query = query.where(DELIVERIES.c.id < from_cursor(cursor))
        if where.subject is not None and not is_id(where.subject):
            return DeliveryPage(deliveries=())
        found = tuple(to_delivery(row) for row in await self._database.fetch(query))
        more = len(found) > limit
        return DeliveryPage(deliveries=found[:limit], next_cursor=as_cursor(found[limit - 1].id) if more else None)

    async def replay_delivery(self, delivery_id: str, now: float, give_up_at: float) -> WebhookDelivery | None:
        """Send it once more, from now on; one that waits is due at once. None means no such delivery."""
        if not is_id(delivery_id):
            return None
        values = {"state": "waiting", "next_at": now, "give_up_at": give_up_at, "finished_at": None}
        statement = update(DELIVERIES).where(DELIVERIES.c.id == delivery_id).values(values)
        rows = await self._database.change(statement.returning(*DELIVERIES.c))
        return to_delivery(rows[0]) if rows else None

    async def forget_deliveries_before(self, finished_before: float, limit: int) -> int:
        """Drop final ones older than that; how many."""
        old = select(DELIVERIES.c.id).where(DELIVERIES.c.finished_at < finished_before)
        some = old.order_by(DELIVERIES.c.finished_at).limit(limit)
        rows = await self._database.change(
            delete(DELIVERIES).where(DELIVERIES.c.id.in_(some.scalar_subquery())).returning(DELIVERIES.c.id)
        )
        return len(rows)


def _free(now: float) -> ColumnElement[bool]:
    return DELIVERIES.c.lease_until.is_(None) | (DELIVERIES.c.lease_until <= now)
