"""Forgetting a URL, a site or a client, in jobs and snapshots. Reads every item of every job."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from scrapeyard.model.job import Job
from scrapeyard.store.dynamo.items.chunks import ItemChunks, Stored, StoredItem
from scrapeyard.store.dynamo.items.ends import ItemEnds
from scrapeyard.store.dynamo.jobs.events import DynamoEvents, events_of
from scrapeyard.store.dynamo.jobs.exports import export_keys
from scrapeyard.store.dynamo.jobs.snapshots import DynamoSnapshots
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import ENDS, JOBS, SCOPES, item_key, part_of, snapshots_part
from scrapeyard.store.dynamo.table.expressions import Where, equals
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.jobs.rules.rows import Row, to_job
from scrapeyard.store.ports.forgetting import ForgetTarget

_FORGOTTEN: Final = b"forgotten:"
_NO_CONTENT: Final = ("result", "error", "artifacts", "logs")
_BLANK: Final = {"result_key": "", "result_bytes": 0, "site": ""}


class JobForgetting(DynamoPart):
    """Finds and empties what jobs have about a target."""

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._rows = rows = DynamoJobRows(base)
        self._chunks = ItemChunks(base)
        self._ends = ItemEnds(base)
        self._events = DynamoEvents(base, rows)
        self._snapshots = DynamoSnapshots(base)

    async def jobs(self, target: ForgetTarget) -> list[Job]:
        """Jobs that are about it as a whole."""
        if target.kind == "url":
            return []
        rows = await self._listed(equals("owner" if target.kind == "client" else "domain", target.value))
        return [to_job(row) for row in rows]

    async def other_jobs(self, target: ForgetTarget) -> AsyncIterator[tuple[Job, list[tuple[int, str, str]]]]:
        """Jobs of which some items are about it."""
        if target.kind == "client":
            return
        for listed in await self._table.query(JOBS):
            row = await self._rows.get(listed["id"])
            if row is None or (target.kind == "site" and row["domain"] == target.value):
                continue
            about, linked = await self._items(target, row)
            ends = await self._ends.some(row["id"], about, data=False)
            items = [(seq, item.key, ends.get(seq, {}).get("result_key", "")) for seq, item in about.items()]
            named = any(target.pattern.search(row[name] or b"") for name in ("source", "fault"))
            job = to_job(row)
            if items or linked or named or job.archive_key or target.pattern.search(job.name.encode()):
                yield job, items

    async def scrub_items(self, job: Job, target: ForgetTarget, items: Sequence[int]) -> None:
        """Empty these items of a job, and remove what else names the target."""
        row = await self._rows.get(job.id)
        if row is None:
            return
        await self._scrub_ends(job.id, items)
        _, linked = await self._items(target, row)
        known = await self._chunks.read(job.id, [*items, *linked])
        blank = {seq: item._replace(referrer="") for seq, item in known.items() if seq in set(linked)}
        gone = [item_key(job.id, known[seq].key) for seq in items if seq in known]
        for seq in items:
            if seq in known:
                blank[seq] = StoredItem(f"forgotten-{seq}", b"{}", known[seq].depth)
        await self._table.delete_many(gone)
        keys = {item_key(job.id, f"forgotten-{seq}"): seq for seq in items if seq in known}
        await self._table.put_many({"pk": pk, "sk": sk, "seq": seq} for (pk, sk), seq in keys.items())
        await self._scrub_events(job.id, target)
        exports = await self._table.query(part_of(job.id, "exports"))
        await self._table.delete_many(key for export in exports for key in export_keys(export))
        await self._rows.changed(job.id, lambda row: _clean(row, target))
        # Last: what they name is how the rest is found again after a crash.
        for start in range(0, row["total"], ENDS):
            some = {seq: item for seq, item in blank.items() if start <= seq < start + ENDS}
            if some:
                await self._chunks.replace(job.id, some)

    async def drop_snapshots(self, target: ForgetTarget, *, dry: bool) -> int:
        """Remove snapshots about the target; how many. Of a client: those of its scopes."""
        count = 0
        for row in await self._table.query(SCOPES):
            scope = row["sk"]
            if target.kind == "client" and not scope.startswith(f"{target.value}: "):
                continue
            async for page in self._table.pages(snapshots_part(scope)):
                gone = await self._snapshots.about(target, page)
                count += len(gone)
                if not dry:
                    await self._snapshots.remove(gone)
            if target.kind == "client" and not dry:
                await self._table.delete((SCOPES, scope))
        return count

    async def _listed(self, where: Where) -> list[Row]:
        return await self._rows.get_many(row["id"] for row in await self._table.query(JOBS, where=where))

    async def _items(self, target: ForgetTarget, row: Row) -> tuple[Stored, list[int]]:
        """Items whose input names the target, and numbers of those that it linked to."""
        about: Stored = {}
        linked: list[int] = []
        for first in range(0, row["total"], ENDS):
            items = await self._chunks.read(row["id"], range(first, min(first + ENDS, row["total"])))
            about |= {seq: item for seq, item in items.items() if target.pattern.search(item.input)}
            linked += [seq for seq, item in items.items() if target.pattern.search(item.referrer.encode())]
        return about, linked

    async def _scrub_ends(self, job_id: str, items: Sequence[int]) -> None:
        found = await self._ends.some(job_id, items)
        ends = [end for end in found.values() if "ok" in end]
        empty = [{name: value for name, value in end.items() if name not in _NO_CONTENT} | _BLANK for end in ends]
        await self._ends.replace(empty)
        failed = [(part_of(job_id, "failed"), end["sk"]) for end in ends if not end["ok"]]
        pointers = await self._table.get_many(failed)
        await self._table.put_many(row | {"site": ""} for row in pointers.values())

    async def _scrub_events(self, job_id: str, target: ForgetTarget) -> None:
        for row in await self._events.all(job_id):
            events = events_of(row)
            kept = [event for event in events if not target.pattern.search(bytes(event.data))]
            if len(kept) < len(events):
                await self._events.replace(job_id, row, kept)


def _clean(row: Row, target: ForgetTarget) -> Row:
    clean: Row = {name: target.pattern.sub(_FORGOTTEN, row[name]) for name in ("source", "fault") if row[name]}
    return clean | {"name": target.pattern.sub(_FORGOTTEN, row["name"].encode()).decode()}
