"""Creating a job and adding its items."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json
from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.model import RunError
from scrapeyard.model.job import Job, JobStatus, NewItem
from scrapeyard.store.backend import Backend
from scrapeyard.store.database import Database
from scrapeyard.store.job_locks import change_job, locked_job, status_values
from scrapeyard.store.job_port import ITEM_BLOCK
from scrapeyard.store.job_rows import Fields, job_row, to_job
from scrapeyard.store.job_tables import BLOCKS, ITEMS, JOBS
from scrapeyard.store.run_writes import is_id

_TAKES_ITEMS: Final = frozenset({JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED})
_ADDED: Final = select(BLOCKS.c.added).where(
    BLOCKS.c.job == bindparam("job"), BLOCKS.c.source == bindparam("source"), BLOCKS.c.block == bindparam("block")
)
_TAKE_BACK: Final = (
    delete(ITEMS).where(ITEMS.c.job == bindparam("job_is"), ITEMS.c.seq >= bindparam("from_seq")).returning(ITEMS.c.key)
)


class SqlJobCreate:
    """The part of JobStore that fills jobs."""

    _database: Database

    async def create_job(self, job: Job) -> bool:
        """Write it with no items. False when its id is taken; nothing is then changed."""
        tries = 0

        async def work(connection: AsyncConnection) -> bool:
            nonlocal tries
            tries += 1
            insert = self._database.insert(JOBS).values(job_row(job)).on_conflict_do_nothing().returning(JOBS.c.number)
            made = (await connection.execute(insert)).scalar_one_or_none()
            # Only the answer was lost, if the row of the try before is there.
            return made is not None or tries > 1

        return await self._database.write(work)

    async def add_items(
        self,
        job_id: str,
        items: Sequence[NewItem],
        block: int,
        now: float,  # noqa: ARG002  the port's signature
        *,
        source: str = "",
    ) -> int | None:
        """Append a block; how many were new, the first time and every other. None when the job takes no more."""
        if len(items) > ITEM_BLOCK:
            raise ValueError(f"a block has {len(items)} items; add at most {ITEM_BLOCK} at once")
        given: dict[str, NewItem] = {}
        for item in items:
            given.setdefault(item.key, item)

        async def work(connection: AsyncConnection) -> int | None:
            job = await locked_job(connection, job_id)
            if job is None:
                return None
            key = {"job": job["number"], "source": source, "block": block}
            added: int | None = (await connection.execute(_ADDED, key)).scalar_one_or_none()
            if added is None and job["status"] in _TAKES_ITEMS:
                added = await _append(self._database.backend, connection, job, list(given.values()))
                await connection.execute(BLOCKS.insert(), key | {"added": added})
            return added

        return await self._database.write(work) if is_id(job_id) else None

    async def end_reading(self, job_id: str, skipped_rows: int, failed: str, now: float) -> Job | None:
        """Its source has ended: CREATING becomes RUNNING, or FAILED with its pending items cancelled and its batches
        killed. None means no such job."""

        async def work(connection: AsyncConnection) -> Job | None:
            job = await locked_job(connection, job_id)
            if job is None:
                return None
            values: dict[str, Any] = {"reading": False, "skipped_rows": skipped_rows}
            if job["status"] == JobStatus.CREATING:
                values |= _failed(job, failed, now) if failed else status_values(JobStatus.RUNNING, now)
            await change_job(connection, job, values)
            return to_job(dict(job) | values)

        return await self._database.write(work) if is_id(job_id) else None

    async def set_source(self, job_id: str, source: dict[str, Any]) -> bool:
        """Write where its items come from and how far that was read. False when there is no such job."""
        statement = update(JOBS).where(JOBS.c.id == job_id).values(source=json.encode(source))
        return is_id(job_id) and bool(await self._database.change(statement.returning(JOBS.c.number)))


async def _append(backend: Backend, connection: AsyncConnection, job: Fields, given: Sequence[NewItem]) -> int:
    """New items, numbered without a gap, since batches name ranges: where some were known, the others move up."""
    number, total = job["number"], job["total"]
    added = await backend.insert_all(connection, ITEMS, _rows(job, given))
    if 0 < added < len(given):
        new = set((await connection.execute(_TAKE_BACK, {"job_is": number, "from_seq": total})).scalars())
        await backend.insert_all(connection, ITEMS, _rows(job, [item for item in given if item.key in new]))
    await change_job(connection, job, {"total": total + added, "pending": job["pending"] + added})
    return added


def _rows(job: Fields, items: Sequence[NewItem]) -> list[tuple[Any, ...]]:
    return [(job["number"], seq, item.key, bytes(item.input)) for seq, item in enumerate(items, job["total"])]


def _failed(job: Fields, message: str, now: float) -> dict[str, Any]:
    counts = {"pending": 0, "cancelled": job["cancelled"] + job["pending"]}
    fault = json.encode(RunError(message=message))
    return status_values(JobStatus.FAILED, now) | counts | {"fault": fault, "kill": True}
