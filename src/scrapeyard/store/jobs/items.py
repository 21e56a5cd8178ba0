"""Reading items and events of jobs."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from msgspec import Raw
from sqlalchemy import func, select

from scrapeyard.model.job import Counts, Item
from scrapeyard.store.database.database import Database
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs import locks
from scrapeyard.store.jobs.item_queries import Found, dead, items_after, to_item
from scrapeyard.store.jobs.locks import STOPPED, Held, as_fields, change_job, locked_job
from scrapeyard.store.jobs.rows import Fields, as_cursor, numbers
from scrapeyard.store.ports.jobs import ITEM_BLOCK, ItemFilter, ItemPage, JobEvent
from scrapeyard.store.runs.writes import is_id
from scrapeyard.store.tables.jobs import BATCHES, ITEMS, JOB_EVENTS, JOBS, OUTCOMES, WAITING

_BATCHES: Final = select(*locks.WHOLE).join(JOBS, JOBS.c.number == BATCHES.c.job)


class SqlJobItems:
    """The ItemStore."""

    _database: Database

    async def items(self, job_id: str, where: ItemFilter, cursor: str | None, limit: int) -> ItemPage:
        """A page of at most ITEM_BLOCK items, in list order. It may be short, since items change while they are read.
        Raises BadRequest for an invalid cursor."""
        after = -1 if cursor is None else numbers(cursor, 1)[0]
        found, last = await items_after(self._database, job_id, where, after=after, limit=limit, data=True)
        return ItemPage(items=tuple(found), next_cursor=None if last is None else as_cursor(str(last)))

    async def item(self, job_id: str, key: str) -> Item | None:
        """One whole item; None if there is none."""
        where = ItemFilter(keys=(key,))
        found, _ = await items_after(self._database, job_id, where, after=-1, limit=1, data=True)
        return found[0] if found else None

    async def stream_items(
        self, job_id: str, where: ItemFilter, *, data: bool = True
    ) -> AsyncGenerator[Sequence[Item], None]:
        """Yield all items in order, in blocks of at most ITEM_BLOCK; without `data`: no input, result, logs.

        The next block is read while the caller processes this one.
        """

        def read(after: int) -> asyncio.Task[Found]:
            return asyncio.create_task(
                items_after(self._database, job_id, where, after=after, limit=ITEM_BLOCK, data=data)
            )

        ahead: asyncio.Task[Found] | None = read(-1)
        try:
            while ahead is not None:
                found, after = await ahead
                ahead = None if after is None else read(after)
                if found:
                    yield found
        finally:
            if ahead is not None:
                ahead.cancel()
                await asyncio.gather(ahead, return_exceptions=True)

    async def dead_letters(self, cursor: str | None, limit: int) -> tuple[tuple[tuple[str, Item], ...], str | None]:
        """Items that ended as errors across jobs, (job id, item): newest job first, within it the end of its list
        first."""
        query = dead(None if cursor is None else numbers(cursor, 2)).limit(limit + 1)
        rows = await self._database.fetch_tuples(query, {})
        found = tuple((row.job_id, to_item(row)) for row in rows[:limit])
        more = len(rows) > limit > 0
        return found, as_cursor(f"{rows[limit - 1].number}-{rows[limit - 1].seq}") if more else None

    async def add_event(self, job_id: str, kind: str, data: Raw, now: float) -> None:
        """Append an event; the same event at the same time is written once. Does nothing if there is no such job."""

        def work() -> Script[None]:
            job = yield from locked_job(job_id)
            if job is None or (yield from _is_told(job, kind, bytes(data), now)):
                return
            number = job["events"] + 1
            yield BulkInsert(JOB_EVENTS, [(job["number"], number, now, kind, bytes(data))])
            yield from change_job(job, {"events": number})

        if is_id(job_id):
            await self._database.play(work)

    async def events(self, job_id: str, after: int, limit: int) -> list[JobEvent]:
        """Events numbered higher than `after`, in order."""
        columns = (JOB_EVENTS.c.number, JOB_EVENTS.c.at, JOB_EVENTS.c.kind, JOB_EVENTS.c.data)
        query = select(*columns).join(JOBS, JOBS.c.number == JOB_EVENTS.c.job)
        query = query.where(JOBS.c.id == job_id, JOB_EVENTS.c.number > after).order_by(JOB_EVENTS.c.number).limit(limit)
        rows = await self._database.fetch(query) if is_id(job_id) else ()
        return [JobEvent(number=row["number"], at=row["at"], kind=row["kind"], data=Raw(row["data"])) for row in rows]

    async def recount(self, job_id: str) -> Counts:
        """Counts computed from the rows, slowly; zero if there is no such job."""

        def work() -> Script[Counts]:
            job = yield from locked_job(job_id)
            return Counts() if job is None else (yield from _counted(job))

        return await self._database.play(work) if is_id(job_id) else Counts()


def _is_told(job: Fields, kind: str, data: bytes, now: float) -> Script[bool]:
    same = select(JOB_EVENTS.c.number).where(JOB_EVENTS.c.job == job["number"], JOB_EVENTS.c.kind == kind)
    same = same.where(JOB_EVENTS.c.at == now, JOB_EVENTS.c.data == data).limit(1)
    return bool((yield Execute(same)))


def _counted(job: Fields) -> Script[Counts]:
    number = job["number"]
    total = yield Execute(select(func.count()).where(ITEMS.c.job == number))
    fresh = yield Execute(select(func.count()).where(ITEMS.c.job == number, ITEMS.c.seq >= job["cursor"]))
    waits = yield Execute(select(func.count()).where(WAITING.c.job == number))
    ends = yield Execute(select(OUTCOMES.c.ok, func.count()).where(OUTCOMES.c.job == number).group_by(OUTCOMES.c.ok))
    by_end = {bool(ok): count for ok, count in ends}
    batches = [Held(as_fields(row)) for row in (yield Execute(_BATCHES.where(BATCHES.c.job == number)))]
    out = {state: sum(len(held.undone()) for held in batches if held.batch.state == state) for state in _OUT}
    idle = fresh[0][0] + waits[0][0]
    stopped = job["status"] in STOPPED
    return Counts(
        total=total[0][0],
        pending=0 if stopped else idle,
        queued=out["queued"],
        in_progress=out["running"],
        success=by_end.get(True, 0),
        error=by_end.get(False, 0),
        cancelled=idle if stopped else 0,
    )


_OUT: Final = ("queued", "running")
