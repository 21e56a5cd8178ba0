"""Items of jobs: adding, reading and redriving them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from msgspec.structs import replace
from sqlalchemy import bindparam, func, select

from scrapeyard.model import ExitReason
from scrapeyard.model.job import Counts, Item, ItemStatus, Job, NewItem
from scrapeyard.store.database.database import SqlPart
from scrapeyard.store.database.paging import as_cursor, is_id, numbers
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.ended import ended_since
from scrapeyard.store.jobs.found import append
from scrapeyard.store.jobs.item_queries import Found, dead, failed_alike, items_after
from scrapeyard.store.jobs.locks import WHOLE_BATCHES, as_fields, locked_job
from scrapeyard.store.jobs.redrive import Redrive
from scrapeyard.store.jobs.rules.held import Held
from scrapeyard.store.jobs.rules.rows import Fields
from scrapeyard.store.jobs.rules.states import STOPPED, TAKES_ITEMS
from scrapeyard.store.jobs.rules.whereabouts import to_item
from scrapeyard.store.ports.jobs import (
    ITEM_BLOCK,
    DeadLetterFilter,
    EndedItems,
    FailureGroup,
    Frontier,
    ItemFilter,
    ItemPage,
)
from scrapeyard.store.tables.jobs import BATCHES, BLOCKS, ITEMS, JOBS, OUTCOMES, WAITING

_ADDED: Final = select(BLOCKS.c.added).where(
    BLOCKS.c.job == bindparam("job"), BLOCKS.c.source == bindparam("source"), BLOCKS.c.block == bindparam("block")
)
_OUT: Final = ("queued", "running")


class SqlItems(SqlPart):
    """The ItemStore."""

    async def add(
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
            if added is None and job["status"] in TAKES_ITEMS:
                added = yield from append(job, list(given.values()))
                yield BulkInsert(BLOCKS, [(job["number"], source, block, added)])
            return added

        return await self._database.play(work) if is_id(job_id) else None

    async def added(self, job_id: str, source: str) -> int:
        """How many items all blocks of a source have added."""
        total = select(func.coalesce(func.sum(BLOCKS.c.added), 0).label("total")).join(
            JOBS, JOBS.c.number == BLOCKS.c.job
        )
        (row,) = await self._database.fetch(total.where(JOBS.c.id == job_id, BLOCKS.c.source == source))
        return int(row["total"])

    async def page(self, job_id: str, where: ItemFilter, cursor: str | None, limit: int) -> ItemPage:
        """A page of at most ITEM_BLOCK items, in list order. It may be short, since items change while they are read.
        Raises BadRequest for an invalid cursor."""
        after = -1 if cursor is None else numbers(cursor, 1)[0]
        found, last = await items_after(self._database, job_id, where, after=after, limit=limit, data=True)
        return ItemPage(items=tuple(found), next_cursor=None if last is None else as_cursor(str(last)))

    async def get(self, job_id: str, key: str) -> Item | None:
        """One whole item; None if there is none."""
        where = ItemFilter(keys=(key,))
        found, _ = await items_after(self._database, job_id, where, after=-1, limit=1, data=True)
        return found[0] if found else None

    async def stream(
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

    async def failures(self, job_id: str, limit: int) -> Sequence[FailureGroup]:
        """Why items of a job failed: the `limit` largest groups, the largest first."""
        if not is_id(job_id):
            return []
        found: list[FailureGroup] = []
        jobs = await self._database.fetch(select(JOBS.c.number).where(JOBS.c.id == job_id))
        rows = await self._database.fetch_tuples(failed_alike(limit), {"job": jobs[0]["number"]}) if jobs else ()
        for reason, status, site, count, first in rows:
            where = ItemFilter(statuses=(ItemStatus.ERROR,))
            examples, _ = await items_after(self._database, job_id, where, after=first - 1, limit=1, data=True)
            if examples:
                found.append(
                    FailureGroup(
                        exit_reason=ExitReason(reason), http_status=status, site=site, count=count, example=examples[0]
                    )
                )
        return found

    async def dead_letters(
        self, where: DeadLetterFilter, cursor: str | None, limit: int
    ) -> tuple[tuple[tuple[str, Item], ...], str | None]:
        """Items that ended as errors across jobs, (job id, item): newest job first, within it the end of its list
        first."""
        query = dead(where, None if cursor is None else numbers(cursor, 2)).limit(limit + 1)
        rows = await self._database.fetch_tuples(query, {})
        found = tuple((row.job_id, to_item(row)) for row in rows[:limit])
        more = len(rows) > limit > 0
        return found, as_cursor(f"{rows[limit - 1].number}-{rows[limit - 1].seq}") if more else None

    async def redrive(self, job_id: str, where: ItemFilter, job: Job | None, now: float) -> int | None:
        """Hand out matching final items again, from attempt 1, in pieces in list order: each item once. If the job is
        cancelled meanwhile, the rest stays as it is. Returns how many; None if the job cannot be redriven. Changes
        nothing if nothing matches."""
        if not is_id(job_id):
            return None
        errors = replace(where, statuses=(ItemStatus.ERROR,)) if where.statuses is None else where
        return await Redrive(self._database, job_id, errors, job, now=now).run()

    async def ended_since(self, job_id: str, seen: Frontier, limit: int) -> EndedItems:
        """Items whose end `seen` does not know, at most `limit`, whole."""
        return await ended_since(self._database, job_id, seen, limit)

    async def recount(self, job_id: str) -> Counts:
        """Counts computed from the rows, slowly; zero if there is no such job."""

        def work() -> Script[Counts]:
            job = yield from locked_job(job_id)
            return Counts() if job is None else (yield from _counted(job))

        return await self._database.play(work) if is_id(job_id) else Counts()


def _counted(job: Fields) -> Script[Counts]:
    number = job["number"]
    total = yield Execute(select(func.count()).where(ITEMS.c.job == number))
    fresh = yield Execute(select(func.count()).where(ITEMS.c.job == number, ITEMS.c.seq >= job["cursor"]))
    waits = yield Execute(select(func.count()).where(WAITING.c.job == number))
    ends = yield Execute(select(OUTCOMES.c.ok, func.count()).where(OUTCOMES.c.job == number).group_by(OUTCOMES.c.ok))
    by_end = {bool(ok): count for ok, count in ends}
    batches = [Held(as_fields(row)) for row in (yield Execute(WHOLE_BATCHES.where(BATCHES.c.job == number)))]
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
