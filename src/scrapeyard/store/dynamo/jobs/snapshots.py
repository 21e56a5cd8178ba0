"""Snapshots of pages between crawls: a row for each page, in the partition of its scope."""

from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar, Final

from msgspec import json

from scrapeyard.store.dynamo.rows.keys import SCOPES, snapshots_part
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import Update, Where, above, any_of, below
from scrapeyard.store.dynamo.table.expressions import absent as missing_attribute
from scrapeyard.store.dynamo.table.part import DynamoPart
from scrapeyard.store.dynamo.table.values import Item, key_of
from scrapeyard.store.ports.exports import PageState, Snapshot
from scrapeyard.store.ports.forgetting import ForgetTarget

_STATE: Final = json.Decoder(PageState)


class DynamoSnapshots(DynamoPart):
    """The SnapshotStore. Snapshots are small, since long texts are kept as digests: one of more than 380 kB would leave
    rows behind when it is replaced."""

    places: ClassVar = {"url": "snapshots.url", "state": "snapshots.state", "before": "snapshots.before"}

    async def get(self, scope: str, pages: Sequence[str]) -> dict[str, Snapshot]:
        """The known snapshots of these pages."""
        found = await self._table.get_many((snapshots_part(scope), page) for page in pages)
        return {row["sk"]: _snapshot(row) for row in await self._contents.opened(list(found.values()))}

    async def put(self, scope: str, snapshots: Sequence[Snapshot]) -> None:
        """Write them, replacing existing ones."""
        if not snapshots:
            return
        await self._table.put_many([await self._contents.stored(_row(scope, one)) for one in snapshots])
        newest = max(one.job_id for one in snapshots)
        older: Where = any_of(missing_attribute(), below("job_id", newest))
        with suppress(WriteRefused):  # a later crawl wrote to it
            await self._table.write(Update((SCOPES, scope), {"job_id": newest}, when=older))

    async def missing(self, scope: str, job_id: str, after: str, limit: int) -> list[Snapshot]:
        """Pages that are not on this crawl's list, in the order of `page`."""
        found: list[Item] = []
        sort = above("sk", after) if after else None
        async for page in self._table.pages(snapshots_part(scope), sort=sort):
            found += [row for row in page if row["job_id"] != job_id or row["seq"] < 0]
            if len(found) >= limit:
                break
        return [_snapshot(row) for row in await self._contents.opened(found[:limit])]

    async def drop(self, scope: str, pages: Sequence[str]) -> None:
        """Delete the snapshots of these pages."""
        await self._table.delete_many((snapshots_part(scope), page) for page in pages)

    async def about(self, target: ForgetTarget, rows: Sequence[Item]) -> list[Item]:
        """Those of these rows whose URL the target names; of a client, all."""
        if target.kind == "client":
            return list(rows)
        opened = await self._contents.opened(rows, without=("state", "before"))
        return [row for row, clear in zip(rows, opened, strict=True) if target.pattern.search(clear["url"])]

    async def remove(self, rows: Sequence[Item]) -> None:
        """Delete rows with all their content."""
        await self._table.delete_many(map(key_of, rows))
        await self._contents.clean(rows)

    async def old_scopes(self, job_before: str) -> list[str]:
        """Scopes that were last written by a job with a smaller id."""
        return [row["sk"] for row in await self._table.query(SCOPES, where=below("job_id", job_before))]

    async def drop_scope(self, scope: str, job_before: str, limit: int) -> int:
        """Delete snapshots of a scope that jobs before wrote; returns how many. The last of them takes the scope."""
        rows = await self._table.query(snapshots_part(scope), where=below("job_id", job_before), limit=limit)
        await self.remove(rows)
        if len(rows) < limit:
            await self._table.delete((SCOPES, scope), below("job_id", job_before))
        return len(rows)


def _row(scope: str, snapshot: Snapshot) -> Item:
    return {
        "pk": snapshots_part(scope),
        "sk": snapshot.page,
        "url": snapshot.url.encode(),
        "job_id": snapshot.job_id,
        "seq": snapshot.seq,
        "state": json.encode(snapshot.state),
        "before": None if snapshot.before is None else json.encode(snapshot.before),
    }


def _snapshot(row: Item) -> Snapshot:
    return Snapshot(
        page=row["sk"],
        url=row["url"].decode(),
        job_id=row["job_id"],
        seq=row["seq"],
        state=_STATE.decode(row["state"]),
        before=None if row.get("before") is None else _STATE.decode(row["before"]),
    )
