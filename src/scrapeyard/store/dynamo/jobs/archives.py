"""The rows of archived jobs, out of the table and back. An archive has the tables and columns of SQL, so one that was
written on another database can be restored here, and the other way round."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from scrapeyard.model.job import FINAL_JOB, ArchiveState, Job
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.items.chunks import ItemChunks, StoredItem
from scrapeyard.store.dynamo.items.due import DueItems, Waiting
from scrapeyard.store.dynamo.items.ends import ItemEnds
from scrapeyard.store.dynamo.jobs.deleting import JobRemoval
from scrapeyard.store.dynamo.jobs.exports import DynamoExports
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import JOBS, OPEN_JOBS, item_key, job_key
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import ConditionCheck, Put, Write, all_of, below, equals, one_of
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.values import size_of
from scrapeyard.store.jobs.rules.ends import OUTCOME_COLUMNS
from scrapeyard.store.jobs.rules.rows import Row, to_job
from scrapeyard.store.ports.archives import RowBlock

_BLOCK: Final = 500
_ACTIONS: Final = 95
_BYTES: Final = 700_000
_COLUMNS: Final = {
    "items": ("job", "seq", "key", "input", "depth", "referrer"),
    "waiting": ("job", "seq", "attempt", "not_before", "lost_before"),
    "outcomes": ("job", "seq", *OUTCOME_COLUMNS),
}
_UNDER_WAY: Final = (ArchiveState.ARCHIVING.value, ArchiveState.REMOVING.value, ArchiveState.RESTORING.value)


class DynamoArchives(DynamoPart):
    """The ArchiveStore."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows) -> None:
        super().__init__(base)
        self._rows = rows
        self._chunks = ItemChunks(base)
        self._ends = ItemEnds(base)
        self._due = DueItems(base)
        self._exports = DynamoExports(base, rows)
        self._removal = JobRemoval(base)

    async def begin(self, job_id: str) -> Job | None:
        """Mark a final job whose files are written."""
        return await self._marked(job_id, _is_ready, ArchiveState.ARCHIVING)

    async def begin_restore(self, job_id: str) -> Job | None:
        """Mark an archived job."""
        return await self._marked(job_id, lambda job: job["archive"] == ArchiveState.ARCHIVED, ArchiveState.RESTORING)

    async def due(self, limit: int) -> list[Job]:
        """Marked jobs, the oldest first."""
        listed = await self._table.query(OPEN_JOBS, where=one_of("archive", _UNDER_WAY))
        rows = await self._rows.get_many(row["id"] for row in listed)
        return [to_job(row) for row in rows if row["archive"] in _UNDER_WAY and not row["deleting"]][:limit]

    async def older(self, finished_before: float, limit: int) -> list[str]:
        """Jobs that could be archived. Reads the listing of all jobs."""
        plain = all_of(below("finished_at", finished_before), equals("archive", ""), equals("deleting", False))
        listed = sorted(await self._table.query(JOBS, where=plain), key=lambda row: row["finished_at"])
        rows = await self._rows.get_many(row["id"] for row in listed)
        return [row["id"] for row in rows if _is_ready(row) and not row["deleting"]][:limit]

    async def rows(self, job: Job) -> AsyncIterator[RowBlock]:
        """Block by block, the items of one range after another."""
        async for waits in self._due.stream(job.id):
            if waits:
                yield _block("waiting", ((0, item.seq, item.attempt, item.at, item.lost_before) for item in waits))
        for first in range(0, job.counts.total, _BLOCK):
            last = min(first + _BLOCK, job.counts.total) - 1
            ends = await self._ends.between(job.id, first, last)
            found = [end for end in ends.values() if "ok" in end]
            if found:
                rows = ((0, int(end["sk"]), *(end.get(name) for name in OUTCOME_COLUMNS)) for end in found)
                yield _block("outcomes", rows)
            items = await self._chunks.read(job.id, range(first, last + 1))
            if items:
                yield _block(
                    "items",
                    ((0, seq, one.key, one.input, one.depth, one.referrer or None) for seq, one in items.items()),
                )

    async def written(self, job: Job, key: str) -> Job | None:
        """Record the archive, so that rows may be removed."""
        if not await self._moved(job.id, ArchiveState.ARCHIVING, ArchiveState.REMOVING, key):
            return None
        return replace(job, archive=ArchiveState.REMOVING, archive_key=key)

    async def remove_rows(self, job: Job) -> bool:
        """Piece by piece, and the mark last."""
        row = await self._rows.get(job.id)
        if row is None or row["archive"] != ArchiveState.REMOVING:
            return False
        await self._removal.remove_items(job.id, job.counts.total)
        return await self._moved(job.id, ArchiveState.REMOVING, ArchiveState.ARCHIVED)

    async def add_rows(self, job: Job, block: RowBlock) -> None:
        """Put rows back. Another dispatcher may have ended the restore: then the rows are no longer as they were
        archived, and stay."""
        known = _COLUMNS.get(block.table)
        if known is None or not set(block.columns) <= set(known) or "job" not in block.columns:
            raise ValueError(f"an archive of another version: table {block.table!r} with columns {block.columns}")
        blank: dict[str, Any] = dict.fromkeys(known)
        rows = [blank | dict(zip(block.columns, row, strict=True)) for row in block.rows]
        if block.table == "items":
            writes = await self._items(job.id, rows)
        elif block.table == "waiting":
            waits = [Waiting(row["not_before"], row["seq"], row["attempt"], bool(row["lost_before"])) for row in rows]
            writes = [*self._due.rows(job.id, waits), *(Put(self._ends.wait(job.id, item).item) for item in waits)]
        else:
            writes = []
            for row in rows:
                columns = {name: row[name] for name in OUTCOME_COLUMNS} | {"ok": bool(row["ok"])}
                writes += [Put(put.item) for put in await self._ends.row_writes(job.id, row["seq"], columns)]
        await self._write(job.id, writes)

    async def end_restore(self, job: Job, is_restored: bool) -> bool:
        """Clear the mark, or set it back."""
        if is_restored:
            return await self._moved(job.id, ArchiveState.RESTORING, ArchiveState.NONE, "")
        return await self._moved(job.id, ArchiveState.RESTORING, ArchiveState.ARCHIVED)

    async def _items(self, job_id: str, rows: Iterable[dict[str, Any]]) -> list[Put]:
        items = {
            row["seq"]: StoredItem(row["key"], bytes(row["input"]), row["depth"], row["referrer"] or "") for row in rows
        }
        chunks, _ = await self._chunks.written(job_id, items)
        keys = [(item_key(job_id, item.key), seq) for seq, item in items.items()]
        return [*map(Put, chunks), *(Put({"pk": pk, "sk": sk, "seq": seq}) for (pk, sk), seq in keys)]

    async def _write(self, job_id: str, puts: list[Put]) -> None:
        """As long as the job is being restored."""
        restoring = ConditionCheck(job_key(job_id), equals("archive", ArchiveState.RESTORING.value))
        while puts:
            count = size = 0
            while count < min(len(puts), _ACTIONS) and (not count or size + size_of(puts[count].item) <= _BYTES):
                size += size_of(puts[count].item)
                count += 1
            some: list[Write] = [restoring, *puts[:count]]
            try:
                await self._table.transact(some)
            except WriteRefused:
                return
            puts = puts[count:]

    async def _marked(self, job_id: str, may: Callable[[Row], bool], to: ArchiveState) -> Job | None:
        async def work() -> Job | None:
            job = await self._rows.get(job_id)
            if job is None:
                return None
            free = may(job) and not job["deleting"] and not await self._exports.unfinished(job_id)
            values: Row = {"archive": to.value} if free else {}
            if values:
                await self._table.transact(await self._rows.change(job, values))
            return to_job(job | values)

        return await self._rows.apply(job_id, work) if is_id(job_id) else None

    async def _moved(self, job_id: str, leave: ArchiveState, to: ArchiveState, key: str | None = None) -> bool:
        async def work() -> bool:
            job = await self._rows.get(job_id)
            if job is None or job["archive"] != leave or job["deleting"]:
                return False
            values: Row = {"archive": to.value} | ({} if key is None else {"archive_key": key})
            await self._table.transact(await self._rows.change(job, values))
            return True

        return await self._rows.apply(job_id, work) if is_id(job_id) else False


def _is_ready(job: Row) -> bool:
    is_free = job["archive"] == ArchiveState.NONE and not job["sweeping"]
    return job["status"] in FINAL_JOB and is_free and not job["files_pending"]


def _block(table: str, rows: Iterable[tuple[Any, ...]]) -> RowBlock:
    return RowBlock(table=table, columns=_COLUMNS[table], rows=list(rows))
