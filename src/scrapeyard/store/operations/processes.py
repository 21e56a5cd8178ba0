"""Processes: heartbeats of workers, and the one leader among dispatchers."""

from typing import Final

from msgspec import json
from sqlalchemy import delete, or_, select

from scrapeyard.model import WorkerInfo
from scrapeyard.store.database.database import Database
from scrapeyard.store.tables.runs import LEADERS, WORKERS

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


class SqlLeaders:
    """The LeaderStore."""

    _database: Database

    async def lead(self, role: str, holder: str, now: float, until: float) -> bool:
        """Become or stay leader until then. True if `holder` leads now."""
        insert = self._database.insert(LEADERS).values(role=role, holder=holder, until=until)
        statement = insert.on_conflict_do_update(
            index_elements=["role"],
            set_={"holder": insert.excluded.holder, "until": insert.excluded.until},
            where=or_(LEADERS.c.holder == holder, LEADERS.c.until <= now),
        ).returning(LEADERS.c.role)
        return bool(await self._database.change(statement))

    async def resign(self, role: str, holder: str) -> None:
        """Let another lead at once. Does nothing when another leads."""
        await self._database.change(delete(LEADERS).where(LEADERS.c.role == role, LEADERS.c.holder == holder))
