"""Heartbeats."""

from typing import Final

from msgspec import json
from sqlalchemy import delete, select

from scrapeyard.model import WorkerInfo
from scrapeyard.store.database import Database
from scrapeyard.store.tables.runs import WORKERS

_INFO: Final = json.Decoder(WorkerInfo)


class SqlWorkers:
    """The WorkerStore."""

    _database: Database

    async def beat(self, worker: WorkerInfo) -> None:
        """Write what a worker tells of itself."""
        row = {"id": worker.id, "seen_at": worker.seen_at, "info": json.encode(worker)}
        insert = self._database.insert(WORKERS).values(row)
        told = {"seen_at": insert.excluded.seen_at, "info": insert.excluded.info}
        await self._database.change(insert.on_conflict_do_update(index_elements=["id"], set_=told))

    async def workers(self, seen_after: float) -> tuple[WorkerInfo, ...]:
        """Workers seen since then, by id."""
        query = select(WORKERS.c.info).where(WORKERS.c.seen_at >= seen_after).order_by(WORKERS.c.id)
        return tuple(_INFO.decode(row["info"]) for row in await self._database.fetch(query))

    async def forget(self, worker_id: str) -> None:
        """A worker says goodbye."""
        await self._database.change(delete(WORKERS).where(WORKERS.c.id == worker_id))

    async def forget_before(self, seen_before: float) -> None:
        """Drop workers that have long been silent."""
        await self._database.change(delete(WORKERS).where(WORKERS.c.seen_at < seen_before))
