"""Creating a job and adding its items."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json
from sqlalchemy import bindparam, delete, select, update

from scrapeyard.model import RunError
from scrapeyard.model.job import Job, JobStatus, NewItem
from scrapeyard.store.database.database import Database
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.locks import change_job, locked_job, status_values
from scrapeyard.store.jobs.rows import Fields, job_row, to_job
from scrapeyard.store.ports.jobs import ITEM_BLOCK
from scrapeyard.store.runs.writes import is_id
from scrapeyard.store.tables.jobs import BLOCKS, ITEMS, JOBS

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
        """Write the job without items. False, and nothing is changed, if its id is taken."""
        tries = 0

        def work() -> Script[bool]:
            nonlocal tries
            tries += 1
            insert = self._database.insert(JOBS).values(job_row(job)).on_conflict_do_nothing().returning(JOBS.c.number)
            made = yield Execute(insert)
            # If the row of the previous try exists, only its response was lost.
            return bool(made) or tries > 1

        return await self._database.play(work)

    async def add_items(
        self,
        job_id: str,
        items: Sequence[NewItem],
        block: int,
        now: float,  # noqa: ARG002  the port's signature
        *,
        source: str = "",
    ) -> int | None:
        """Append a block; returns how many items were new, also when repeated. None if the job takes no more."""
        if len(items) > ITEM_BLOCK:
            raise ValueError(f"a block has {len(items)} items; add at most {ITEM_BLOCK} at once")
        given: dict[str, NewItem] = {}
        for item in items:
            given.setdefault(item.key, item)

        def work() -> Script[int | None]:
            job = yield from locked_job(job_id)
            if job is None:
                return None
            key = {"job": job["number"], "source": source, "block": block}
            before = yield Execute(_ADDED, key)
            added: int | None = before[0][0] if before else None
            if added is None and job["status"] in _TAKES_ITEMS:
                added = yield from _append(job, list(given.values()))
                yield BulkInsert(BLOCKS, [(job["number"], source, block, added)])
            return added

        return await self._database.play(work) if is_id(job_id) else None

    async def end_reading(self, job_id: str, skipped_rows: int, failed: str, now: float) -> Job | None:
        """The source has ended: CREATING becomes RUNNING, PAUSED stays; with `failed` either becomes FAILED, its
        pending items cancelled and its batches killed. None if there is no such job."""

        def work() -> Script[Job | None]:
            job = yield from locked_job(job_id)
            if job is None:
                return None
            values: dict[str, Any] = {"reading": False, "skipped_rows": skipped_rows}
            if failed and job["reading"] and job["status"] in _TAKES_ITEMS:
                values |= _failed(job, failed, now)
            elif job["status"] == JobStatus.CREATING:
                values |= status_values(JobStatus.RUNNING, now)
            yield from change_job(job, values)
            return to_job(dict(job) | values)

        return await self._database.play(work) if is_id(job_id) else None

    async def set_source(self, job_id: str, source: dict[str, Any]) -> bool:
        """Store the source and how far it was read. False if there is no such job."""
        statement = update(JOBS).where(JOBS.c.id == job_id).values(source=json.encode(source))
        return is_id(job_id) and bool(await self._database.change(statement.returning(JOBS.c.number)))


def _append(job: Fields, given: Sequence[NewItem]) -> Script[int]:
    """Insert new items, numbered without gaps, since batches are ranges: if some were known, the others move up."""
    number, total = job["number"], job["total"]
    added: int = yield BulkInsert(ITEMS, _rows(job, given))
    if 0 < added < len(given):
        new = {row[0] for row in (yield Execute(_TAKE_BACK, {"job_is": number, "from_seq": total}))}
        yield BulkInsert(ITEMS, _rows(job, [item for item in given if item.key in new]))
    yield from change_job(job, {"total": total + added, "pending": job["pending"] + added})
    return added


def _rows(job: Fields, items: Sequence[NewItem]) -> list[tuple[Any, ...]]:
    return [(job["number"], seq, item.key, bytes(item.input)) for seq, item in enumerate(items, job["total"])]


def _failed(job: Fields, message: str, now: float) -> dict[str, Any]:
    counts = {"pending": 0, "cancelled": job["cancelled"] + job["pending"]}
    fault = json.encode(RunError(message=message))
    halted = {"kill": True, "pause_reason": "", "breaker_until": None}
    return status_values(JobStatus.FAILED, now) | counts | halted | {"fault": fault}
