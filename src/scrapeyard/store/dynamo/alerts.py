"""Alerts, written together with the messages that tell of them."""

from collections.abc import Sequence
from typing import Final

from scrapeyard.model.webhook import WebhookDelivery
from scrapeyard.store.database.paging import from_cursor, next_cursor
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.documents import DynamoDocuments
from scrapeyard.store.dynamo.table.expressions import Delete, Put, Write, absent, all_of, below, equals, exists
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import MAX_ACTIONS
from scrapeyard.store.dynamo.table.values import Item, Key, key_of
from scrapeyard.store.dynamo.webhooks import DynamoDeliveries
from scrapeyard.store.ports.webhooks import Alert, AlertPage, AlertState

_ALERT: Final = "alert"
_OPEN: Final = "alert_open"
"""Names the rule and the subject of each alert that lasts: there is one at most."""


class DynamoAlerts(DynamoPart):
    """The AlertStore."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._documents = DynamoDocuments(base, Alert, "alerts.document")
        self._deliveries = DynamoDeliveries(base)

    async def firing(self) -> tuple[Alert, ...]:
        """Every alert that lasts, the oldest first."""
        opened = await self._table.query(_OPEN)
        rows = await self._table.get_many((_ALERT, row["alert"]) for row in opened)
        lasting = [row for row in rows.values() if row["state"] == "firing"]
        return tuple(await self._documents.values(sorted(lasting, key=lambda row: str(row["sk"]))))

    async def open(self, alert: Alert, deliveries: Sequence[WebhookDelivery]) -> bool:
        """Write a new alert. False, and nothing is written, if one of its rule and subject lasts already."""
        place = _open_key(alert)
        lasts = {"pk": place[0], "sk": place[1], "alert": alert.id}
        writes = [Put(lasts, absent()), Put(await self._row(alert), absent())]
        return await self._write(writes, deliveries)

    async def change(self, before: Alert, after: Alert, deliveries: Sequence[WebhookDelivery]) -> bool:
        """Tell of it again, or resolve it. False, and nothing is written, if it is not as `before` any more."""
        same = all_of(equals("state", before.state), equals("tells", before.tells))
        writes: list[Write] = [Put(await self._row(after), same)]
        if before.state == "firing" and after.state == "resolved":
            writes.append(Delete(_open_key(before), exists()))
        return await self._write(writes, deliveries)

    async def tell(self, deliveries: Sequence[WebhookDelivery]) -> None:
        """Write messages that belong to no alert."""
        await self._deliveries.writes(deliveries, 0)

    async def page(self, state: AlertState | None, cursor: str | None, limit: int) -> AlertPage:
        """Newest first. Raises BadRequest for an invalid cursor."""
        sort = None if cursor is None else below("sk", from_cursor(cursor))
        where = None if state is None else equals("state", state)
        rows = await self._table.query(_ALERT, sort=sort, where=where, descending=True, limit=limit + 1)
        found = await self._documents.values(rows)
        return AlertPage(alerts=tuple(found[:limit]), next_cursor=next_cursor(found, limit))

    async def forget_before(self, resolved_before: float) -> None:
        """Drop alerts that were resolved earlier."""
        old = await self._table.query(_ALERT, where=below("resolved_at", resolved_before))
        await self._documents.drop([key_of(row) for row in old])

    async def _write(self, writes: Sequence[Write], deliveries: Sequence[WebhookDelivery]) -> bool:
        while True:
            new = await self._deliveries.writes(deliveries, MAX_ACTIONS - len(writes))
            try:
                await self._table.transact([*writes, *new])
            except WriteRefused as refused:
                if min(refused.items) < len(writes):
                    return False
            else:
                return True

    async def _row(self, alert: Alert) -> Item:
        beside = {"state": alert.state, "tells": alert.tells, "resolved_at": alert.resolved_at}
        return await self._documents.item((_ALERT, alert.id), alert, **beside)


def _open_key(alert: Alert) -> Key:
    return _OPEN, f"{alert.rule}/{alert.subject}"
