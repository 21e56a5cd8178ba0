"""Exports in the store: a row for each, one in the partition of its job, and one more while it is not final."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import json, structs

from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import ExportWish
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import OPEN_EXPORTS, export_key, moment, part_of
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import Delete, Put, Write
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import unchanged
from scrapeyard.store.dynamo.table.values import Item, Key
from scrapeyard.store.jobs.rules.rows import to_swept

_WISH: Final = json.Decoder(ExportWish)
_NOTES: Final = json.Decoder(tuple[str, ...])
_NAMES: Final = tuple(name for name in Export.__struct_fields__ if name not in ("wish", "state", "notes"))
_FINAL: Final = (ExportState.DONE, ExportState.FAILED)


class DynamoExports(DynamoPart):
    """The ExportStore."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._rows = rows

    async def add(self, export: Export) -> bool:
        """Write it as QUEUED. Replaces a final one of the same id, else leaves it. False if there is no such job, or
        its results were swept."""

        async def work() -> bool:
            job = await self._rows.get(export.job_id)
            if job is None or "results" in to_swept(job):
                return False
            before = await self._table.get(export_key(export.id))
            if before is None or before["state"] in _FINAL:
                # The job's row is written, too, so that it is not deleted, archived or swept meanwhile.
                pointer = Put({"pk": part_of(export.job_id, "exports"), "sk": export.id, **_place(export)})
                await self._table.transact([*_written(export, before), pointer, *await self._rows.change(job, {})])
            return True

        return await self._rows.apply(export.job_id, work)

    async def get(self, export_id: str) -> Export | None:
        """One export; None if there is none."""
        row = await self._table.get(export_key(export_id)) if is_id(export_id) else None
        return None if row is None else _export(row)

    async def of_job(self, job_id: str) -> list[Export]:
        """The exports of one job, the oldest first."""
        ids = [row["sk"] for row in await self._table.query(part_of(job_id, "exports"))]
        found = await self._table.get_many(map(export_key, ids))
        return sorted((_export(row) for row in found.values()), key=lambda one: (one.created_at, one.id))

    async def unfinished(self, job_id: str) -> bool:
        """Whether an export of this job is not final."""
        return any(export.state not in _FINAL for export in await self.of_job(job_id))

    async def open_exports(self) -> list[Export]:
        """All that are not final, the oldest first."""
        ids = [row["id"] for row in await self._table.query(OPEN_EXPORTS)]
        found = await self._table.get_many(map(export_key, ids))
        exports = [_export(found[key]) for key in map(export_key, ids) if key in found]
        return [export for export in exports if export.state not in _FINAL]

    async def claim(self, export_id: str | None, holder: str, now: float, lease_until: float) -> Export | None:
        """Claim a free export: this one, or the oldest if None is given. None if there is nothing to claim."""
        if export_id is None:
            free = [export for export in await self.open_exports() if _is_free(export, now)]
            export_id = free[0].id if free else None
        row = await self._table.get(export_key(export_id)) if export_id and is_id(export_id) else None
        if row is None or not _is_free(_export(row), now):
            return None
        taken = {
            "state": ExportState.RUNNING,
            "holder": holder,
            "lease_until": lease_until,
            "started_at": now,
            "attempt": row["attempt"] + 1,
            "progress": 0.0,
            "rows": 0,
        }
        export = structs.replace(_export(row), **taken)
        return export if await self._replaced(row, export) else None

    async def renew(self, export: Export) -> bool:
        """Write progress, rows and lease. False if it is no longer this holder's."""
        values = {"progress": export.progress, "rows": export.rows, "lease_until": export.lease_until}
        return await self._changed(export, values)

    async def end(self, export: Export) -> bool:
        """Write a final state, or QUEUED to give it back. False if it is no longer this holder's."""
        values = {name: getattr(export, name) for name in (*_NAMES, "state", "notes") if name not in ("id", "job_id")}
        values["lease_until"] = None
        if export.state is ExportState.QUEUED:
            values["attempt"] = export.attempt - 1
        return await self._changed(export, values)

    async def _changed(self, export: Export, values: Mapping[str, Any]) -> bool:
        while True:
            row = await self._table.get(export_key(export.id))
            if row is None or not _is_held(_export(row), export):
                return False
            if await self._replaced(row, structs.replace(_export(row), **values)):
                return True

    async def _replaced(self, row: Item, export: Export) -> bool:
        """Whether it was written in place of the row, which somebody else may have changed."""
        try:
            await self._table.transact(_written(export, row))
        except WriteRefused:
            return False
        return True


def export_keys(pointer: Item) -> list[Key]:
    """All rows of an export, from the one in its job's partition."""
    return [(pointer["pk"], pointer["sk"]), export_key(pointer["sk"]), (OPEN_EXPORTS, pointer["open_at"])]


def _written(export: Export, before: Item | None) -> list[Write]:
    row = {name: getattr(export, name) for name in _NAMES}
    row |= {"wish": json.encode(export.wish), "state": export.state.value}
    row["notes"] = json.encode(export.notes) if export.notes else None
    pk, sk = export_key(export.id)
    place = _place(export)["open_at"]
    is_final, was_final = export.state in _FINAL, before is None or before["state"] in _FINAL
    writes: list[Write] = [Put({"pk": pk, "sk": sk, **row}, unchanged(before))]
    if is_final:
        writes.append(Delete((OPEN_EXPORTS, place)))
    elif was_final:
        writes.append(Put({"pk": OPEN_EXPORTS, "sk": place, "id": export.id}))
    return writes


def _place(export: Export) -> dict[str, str]:
    return {"open_at": f"{moment(export.created_at)} {export.id}"}


def _is_free(export: Export, now: float) -> bool:
    ended = export.lease_until is not None and export.lease_until <= now
    return export.state is ExportState.QUEUED or (export.state is ExportState.RUNNING and ended)


def _is_held(stored: Export, export: Export) -> bool:
    same = stored.holder == export.holder and stored.attempt == export.attempt
    return stored.state is ExportState.RUNNING and same


def _export(row: Item) -> Export:
    plain: dict[str, Any] = {name: row.get(name) for name in _NAMES}
    notes = _NOTES.decode(row["notes"]) if row.get("notes") else ()
    return Export(wish=_WISH.decode(row["wish"]), state=ExportState(row["state"]), notes=notes, **plain)
