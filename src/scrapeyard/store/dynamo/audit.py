"""The audit: a chain of rows that are never changed.

One row says where the chain ends, and up to where retention has removed it. Rows are appended in a transaction that
changes it, so that writers of all processes form one chain. DynamoDB cannot refuse that somebody changes or deletes a
row: `verify` notices it.
"""

from collections.abc import AsyncIterator, Sequence
from itertools import takewhile
from typing import Final

from msgspec.structs import asdict, replace

from scrapeyard.model.audit import AuditChain, AuditCheck, AuditEntry, AuditRow
from scrapeyard.store.database.paging import as_cursor, numbers
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import (
    Put,
    Where,
    above,
    absent,
    all_of,
    at_least,
    begins,
    below,
    between,
    equals,
)
from scrapeyard.store.dynamo.table.part import DynamoPart
from scrapeyard.store.dynamo.table.table import MAX_ACTIONS, changed
from scrapeyard.store.dynamo.table.values import Columns, Item, key_of
from scrapeyard.store.ports.audit import AuditFilter, AuditPage, audit_columns, to_audit_row

_AUDIT: Final = "audit"
_CHAIN: Final = ("audit_chain", "chain")


class DynamoAudit(DynamoPart):
    """The AuditStore."""

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Add rows to the end of the chain, in order."""
        most = MAX_ACTIONS - 1
        for start in range(0, len(entries), most):
            await self._append(entries[start : start + most])

    async def page(self, where: AuditFilter, cursor: str | None, limit: int) -> AuditPage:
        """Rows, newest first."""
        chain = _to_chain(await self._table.get(_CHAIN))
        last = chain.last_number if cursor is None else numbers(cursor, 1)[0] - 1
        kept = between("sk", _sort(chain.removed_number + 1), _sort(max(last, chain.removed_number)))
        if last <= chain.removed_number:
            return AuditPage(rows=(), next_cursor=None)
        found = await self._table.query(_AUDIT, sort=kept, where=_condition(where), descending=True, limit=limit + 1)
        rows = [to_audit_row(Columns(row)) for row in found[:limit]]
        return AuditPage(rows=tuple(rows), next_cursor=as_cursor(str(rows[-1].number)) if len(found) > limit else None)

    async def verify(self) -> AuditCheck:
        """Read every row and compute its hash again."""
        chain = _to_chain(await self._table.get(_CHAIN))
        return await chain.verify(self._rows(chain))

    async def hash_of(self, number: int) -> str | None:
        """The hash that a row has; None if there is no such row."""
        row = await self._table.get((_AUDIT, _sort(number))) if number > 0 else None
        return None if row is None else str(row["hash"])

    async def remove_before(self, at: float, most: int) -> int:
        """Remove the oldest rows if they were written before that time."""
        row = await self._table.get(_CHAIN)
        while row is not None:
            chain = _to_chain(row)
            found = await self._table.query(_AUDIT, limit=most)
            old = list(takewhile(lambda one: one["at"] < at, found))
            new = [one for one in old if int(one["sk"]) > chain.removed_number]
            if new:
                released = replace(chain, removed_number=new[-1]["number"], removed_hash=new[-1]["hash"])
                try:
                    await self._table.write(changed(_CHAIN, row, asdict(released)))
                except WriteRefused as refused:
                    row = refused.items[0]
                    continue
            await self._table.delete_many([key_of(one) for one in old])  # those that an earlier call left included
            return len(new)
        return 0

    async def _append(self, entries: Sequence[AuditEntry]) -> None:
        old = await self._table.get(_CHAIN)
        while True:
            chain = _to_chain(old)
            rows = chain.following(entries)
            longer = replace(chain, last_number=rows[-1].number, last_hash=rows[-1].hash)
            writes = [Put(_row(row), absent()) for row in rows]
            try:
                await self._table.transact([changed(_CHAIN, old, asdict(longer)), *writes])
            except WriteRefused as refused:
                old = refused.items.get(0) or await self._table.get(_CHAIN)
            else:
                return

    async def _rows(self, chain: AuditChain) -> AsyncIterator[AuditRow]:
        last = _sort(chain.last_number)
        async for page in self._table.pages(_AUDIT, sort=above("sk", _sort(chain.removed_number))):
            for row in page:
                if row["sk"] <= last:
                    yield to_audit_row(Columns(row))


def _row(row: AuditRow) -> Item:
    return {"pk": _AUDIT, "sk": _sort(row.number), **audit_columns(row)}


def _sort(number: int) -> str:
    return f"{number:015}"


def _to_chain(row: Item | None) -> AuditChain:
    return AuditChain() if row is None else AuditChain(**{name: row[name] for name in AuditChain.__struct_fields__})


def _condition(where: AuditFilter) -> Where | None:
    conditions: list[Where] = []
    for name in ("client", "action"):
        if (value := getattr(where, name)) is not None:
            conditions.append(equals(name, value))
    if where.resource is not None:
        conditions.append(begins("resource", where.resource))
    if where.refused is not None:
        conditions.append(above("code", "") if where.refused else equals("code", ""))
    if where.since is not None:
        conditions.append(at_least("at", where.since))
    if where.until is not None:
        conditions.append(below("at", where.until))
    return all_of(*conditions) if conditions else None
