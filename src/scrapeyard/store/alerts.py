"""Alerts, written together with the messages that tell of them."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict
from sqlalchemy import CheckConstraint, Column, Double, Index, Integer, RowMapping, Table, Text, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model.webhook import WebhookDelivery
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import newest_first, next_cursor
from scrapeyard.store.ports.webhooks import Alert, AlertPage, AlertState
from scrapeyard.store.tables.runs import ID, METADATA
from scrapeyard.store.webhooks import add_deliveries

ALERTS = Table(
    "alerts",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("open_key", ID, unique=True),
    Column("rule", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("value", Double, nullable=False),
    Column("threshold", Double, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("told_at", Double, nullable=False),
    Column("tells", Integer, nullable=False),
    Column("resolved_at", Double),
    CheckConstraint("state IN ('firing', 'resolved')", name="alerts_state"),
    CheckConstraint("(state = 'firing') = (open_key IS NOT NULL)", name="alerts_open_key"),
    CheckConstraint("(state = 'firing') = (resolved_at IS NULL)", name="alerts_resolved_at"),
    Index("alerts_by_state", "state", "id"),
    Index("alerts_by_resolved_at", "resolved_at"),
)
"""`open_key` names the rule and the subject of an alert that lasts: there is one at most."""


class SqlAlerts(SqlPart):
    """The AlertStore."""

    async def firing(self) -> tuple[Alert, ...]:
        """Every alert that lasts, the oldest first."""
        query = select(ALERTS).where(ALERTS.c.state == "firing").order_by(ALERTS.c.id)
        return tuple(_alert(row) for row in await self._database.fetch(query))

    async def open(self, alert: Alert, deliveries: Sequence[WebhookDelivery]) -> bool:
        """Write a new alert. False, and nothing is written, if one of its rule and subject lasts already."""

        async def work(connection: AsyncConnection) -> bool:
            insert = self._database.insert(ALERTS).values(_row(alert)).on_conflict_do_nothing()
            if (await connection.execute(insert.returning(ALERTS.c.id))).first() is None:
                return False
            await add_deliveries(self._database, connection, deliveries)
            return True

        return await self._database.write(work)

    async def change(self, before: Alert, after: Alert, deliveries: Sequence[WebhookDelivery]) -> bool:
        """Tell of it again, or resolve it. False, and nothing is written, if it is not as `before` any more."""

        async def work(connection: AsyncConnection) -> bool:
            same = (ALERTS.c.id == before.id) & (ALERTS.c.state == before.state) & (ALERTS.c.tells == before.tells)
            changed = update(ALERTS).where(same).values(_row(after)).returning(ALERTS.c.id)
            if (await connection.execute(changed)).first() is None:
                return False
            await add_deliveries(self._database, connection, deliveries)
            return True

        return await self._database.write(work)

    async def tell(self, deliveries: Sequence[WebhookDelivery]) -> None:
        """Write messages that belong to no alert."""

        async def work(connection: AsyncConnection) -> None:
            await add_deliveries(self._database, connection, deliveries)

        await self._database.write(work)

    async def page(self, state: AlertState | None, cursor: str | None, limit: int) -> AlertPage:
        """Newest first. Raises BadRequest for an invalid cursor."""
        query = newest_first(select(ALERTS), ALERTS.c.id, cursor, limit)
        if state is not None:
            query = query.where(ALERTS.c.state == state)
        found = tuple(_alert(row) for row in await self._database.fetch(query))
        return AlertPage(alerts=found[:limit], next_cursor=next_cursor(found, limit))

    async def forget_before(self, resolved_before: float) -> None:
        """Drop alerts that were resolved earlier."""
        await self._database.change(delete(ALERTS).where(ALERTS.c.resolved_at < resolved_before))


def _row(alert: Alert) -> dict[str, Any]:
    lasts = alert.state == "firing"
    return asdict(alert) | {"open_key": f"{alert.rule}/{alert.subject}" if lasts else None}


def _alert(row: RowMapping) -> Alert:
    return Alert(**{name: value for name, value in row.items() if name != "open_key"})
