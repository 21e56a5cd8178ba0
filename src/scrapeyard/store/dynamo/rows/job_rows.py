"""The row of a job: read, and changed only if nobody changed it meanwhile, together with its rows in listings."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import ClassVar, Final, TypeVar
from weakref import WeakValueDictionary

from scrapeyard.errors import StoreUnavailable
from scrapeyard.model.job import FINAL_JOB, ArchiveState, Job, JobStatus
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.rows.keys import JOB_NEWS, JOBS, LAST_JOB, OPEN_JOBS, job_key, number
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.contents import MAX_ROW_BYTES
from scrapeyard.store.dynamo.table.expressions import Delete, Put, Update, Write, absent
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.dynamo.table.table import unchanged
from scrapeyard.store.dynamo.table.values import Item, size_of
from scrapeyard.store.jobs.rules.rows import Row, job_row, to_job

T = TypeVar("T")

_COLUMNS: Final = tuple(job_row(Job(id="", status=JobStatus.CREATING, scraper="", pinned="", created_at=0.0)))
"""All of them: a row lacks those that are None."""
_LISTED: Final = (
    "id",
    "status",
    "scraper_id",
    "owner",
    "schedule_id",
    "domain",
    "reading",
    "finished_at",
    "files_pending",
    "sweep_at",
    "deleting",
    "archive",
)
"""Columns that listings show or filter by."""
_OF_BATCH: Final = ("again", "lease_until", "begun")
"""Columns that a batch lacks if they are None."""
_NEWS: Final = ("status", "finished_at", "events")
_MOVING: Final = (ArchiveState.ARCHIVING, ArchiveState.REMOVING, ArchiveState.RESTORING)
_PATIENCE: Final = 30.0
"""Seconds. Many processes may change one job at once; each change of it takes a few milliseconds."""
_LONGEST_PAUSE: Final = 0.2


class DynamoJobRows(DynamoPart):
    """The rows of jobs. One for the process: changes of a job by the same process wait for each other here, which is
    cheaper than to be refused."""

    places: ClassVar = {"source": "jobs.source", "fault": "jobs.fault"}

    def __init__(self, base: DynamoBase) -> None:
        super().__init__(base)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, job_id: str) -> Row | None:
        """One row with all its columns, in clear. None if there is none."""
        found = await self.get_many([job_id])
        return found[0] if found else None

    async def get_many(self, job_ids: Iterable[str]) -> list[Row]:
        """Those that there are, in this order."""
        keys = [job_key(job_id) for job_id in job_ids if is_id(job_id)]
        found = await self._table.get_many(keys) if keys else {}
        return await self.opened(found[key] for key in keys if key in found)

    async def opened(self, items: Iterable[Item]) -> list[Row]:
        """Rows as they were read, in clear."""
        return [dict.fromkeys(_COLUMNS) | item for item in await self._contents.opened(list(items))]

    async def create(self, job: Job, more: Sequence[Write] = ()) -> bool:
        """Write a new row, and more with it. False if there is one."""

        async def work() -> bool:
            last = await self._table.get(LAST_JOB)
            count = 1 if last is None else last["number"] + 1
            row = {"pk": job_key(job.id)[0], "sk": "job", "number": count, **job_row(job)}
            new = Put(await self._contents.stored(row), absent())
            counted = Update(LAST_JOB, {"number": count}, when=unchanged(last))
            try:
                await self._table.transact([new, counted, *_listed({}, row), *more])
            except WriteRefused as refused:
                if 0 in refused.items:
                    return False
                raise
            return True

        return await self.apply("", work)

    async def change(self, job: Row, values: Row) -> list[Write]:
        """The writes that change these columns of a row, if it is still as it was read."""
        new: Row = {**job, **values}
        content: Row = {}
        if not self.places.keys().isdisjoint(values):
            content = await self._content(new)
        differs = {name: value for name, value in values.items() if value != job.get(name)}
        changed = differs | content
        return [Update(job_key(job["id"]), changed, when=unchanged(job)), *_listed(job, new)]

    async def _content(self, new: Row) -> Row:
        """The content of a row as it is written. What lies in parts now is removed from the row."""
        rest = size_of({name: value for name, value in new.items() if name not in self.places})
        row = {name: new[name] for name in ("pk", "sk", *self.places)}
        stored = dict.fromkeys(self.places) | await self._contents.stored(row, most=MAX_ROW_BYTES - rest)
        return {name: value for name, value in stored.items() if name not in ("pk", "sk")}

    async def remove(self, job: Row) -> None:
        """Remove the row and all of its listings."""
        key = job_key(job["id"])
        mark = key[0], "webhook_mark"
        listed = [mark, (JOBS, number(job["number"])), (OPEN_JOBS, number(job["number"])), (JOB_NEWS, job["id"])]
        await self._table.transact([Delete(key), *map(Delete, listed)])
        await self._contents.drop([key])

    async def apply(self, job_id: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do something to a job that reads its row and then writes. Does it again, from the start, while it is refused
        because somebody else was faster. Raises StoreUnavailable."""
        lock = self._locks.setdefault(job_id, asyncio.Lock())
        until, tries = time.monotonic() + _PATIENCE, 0
        async with lock:
            while True:
                try:
                    return await work()
                except WriteRefused:
                    if time.monotonic() >= until:
                        raise StoreUnavailable(f"too many processes change {job_id} at once; try again") from None
                tries += 1
                await asyncio.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.005 * 2**tries)))  # noqa: S311  not secret

    async def changed(self, job_id: str, values: Callable[[Row], Row]) -> Job | None:
        """Write `values` of the row; {} writes nothing. Returns the job; None if there is no such job."""

        async def work() -> Job | None:
            job = await self.get(job_id)
            if job is None:
                return None
            if written := values(job):
                await self._table.transact(await self.change(job, written))
            return to_job(job | written)

        return await self.apply(job_id, work) if is_id(job_id) else None


def batch_fields(item: Item) -> Row:
    """A batch, which stands beside its job, as its columns."""
    return dict.fromkeys(_OF_BATCH) | {"done": b""} | item


def is_open(job: Row) -> bool:
    """Whether somebody still has to do something for a job."""
    out = job["queued"] + job["in_progress"]
    return bool(job["status"] not in FINAL_JOB or job["files_pending"] or out or job["archive"] in _MOVING)


def _listed(old: Row, new: Row) -> list[Write]:
    """The writes that keep the listings as the row."""
    writes: list[Write] = []
    place, shown = number(new["number"]), {name: new[name] for name in _LISTED}
    differs = not old or any(old[name] != value for name, value in shown.items())
    was_open, opens = bool(old) and is_open(old), is_open(new)
    if differs:
        writes.append(Put({"pk": JOBS, "sk": place, **shown}))
    if opens and (differs or not was_open):
        writes.append(Put({"pk": OPEN_JOBS, "sk": place, **shown}))
    elif was_open and not opens:
        writes.append(Delete((OPEN_JOBS, place)))
    if new["webhook"] is not None and (not old or any(old[name] != new[name] for name in _NEWS)):
        writes.append(Put({"pk": JOB_NEWS, "sk": new["id"]}))
    return writes
