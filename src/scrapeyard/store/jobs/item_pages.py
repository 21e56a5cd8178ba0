"""Pages of items, by the shortest way to those that match.

Any item: by ranges of numbers. Final ones: from their outcomes. By name: from the index of names. Others are gathered
from where such items are (batches, `waiting`, beyond the cursor), and looked at again, since they move meanwhile.
"""

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Any, Final

from sqlalchemy import select

from scrapeyard.model.job import Item, ItemStatus
from scrapeyard.store.database import Database
from scrapeyard.store.jobs import batch_rows
from scrapeyard.store.jobs.batch_rows import Held
from scrapeyard.store.jobs.item_queries import ENDED, RANGE, SOME, keyed, of_outcomes
from scrapeyard.store.jobs.item_rows import matches, to_item
from scrapeyard.store.jobs.item_state import Whereabouts
from scrapeyard.store.ports.jobs import ITEM_BLOCK, ItemFilter
from scrapeyard.store.runs.writes import is_id
from scrapeyard.store.tables.jobs import BATCHES, JOBS, OUTCOMES, WAITING

Found = tuple[list[Item], int | None]
"""Items, and the number of the last that was looked at; None: there are no more."""

_STRETCH: Final = 2000
_LONGER: Final = 4
"""Times the stretch before: where few items match, few queries find them."""
_FINAL: Final = frozenset({ItemStatus.SUCCESS, ItemStatus.ERROR})
_HELD: Final = frozenset({ItemStatus.QUEUED, ItemStatus.IN_PROGRESS})
_STANDING: Final = (JOBS.c.number, JOBS.c.status, JOBS.c.total, JOBS.c.cursor, JOBS.c.queued, JOBS.c.in_progress)
_BATCHES: Final = select(*batch_rows.WHOLE).join(JOBS, JOBS.c.number == BATCHES.c.job)


async def items_after(
    database: Database, job_id: str, where: ItemFilter, *, after: int, limit: int, data: bool
) -> Found:
    """At most `limit`, and ITEM_BLOCK, that match and stand after that number. A job that is not there has none."""
    standing = await _whereabouts(database, job_id)
    if standing is None:
        return [], None
    return await _Search(database, standing, where, data).page(max(after, where.first - 1), min(limit, ITEM_BLOCK))


async def _whereabouts(database: Database, job_id: str) -> Whereabouts | None:
    jobs = await database.fetch(select(*_STANDING).where(JOBS.c.id == job_id)) if is_id(job_id) else ()
    if not jobs:
        return None
    out = jobs[0]["queued"] + jobs[0]["in_progress"]
    rows = await database.fetch(_BATCHES.where(BATCHES.c.job == jobs[0]["number"])) if out else ()
    return Whereabouts(jobs[0], map(Held, rows))


class _Search:
    """One filter on one job."""

    def __init__(self, database: Database, standing: Whereabouts, where: ItemFilter, data: bool) -> None:
        self._database = database
        self._standing = standing
        self._where = where
        self._data = data
        self._wanted = frozenset(ItemStatus) if where.statuses is None else frozenset(where.statuses)
        if where.exit_reasons is not None or where.sites is not None:
            self._wanted &= _FINAL

    async def page(self, after: int, limit: int) -> Found:
        """The first after that number."""
        if self._where.keys is not None:
            return await self._named(self._where.keys, after, limit)
        if self._wanted == frozenset(ItemStatus):
            return await self._in_range(after, limit)
        if self._wanted <= _FINAL:
            return await self._ended(after, limit)
        return await self._gathered(after, limit)

    async def _in_range(self, after: int, limit: int) -> Found:
        last = min(after + limit, self._standing.total - 1)
        if last <= after:
            return [], None
        asked = {"job": self._standing.number, "first": after + 1, "last": last}
        rows = await self._database.fetch_tuples(RANGE[self._data], asked)
        return self._items(rows), last if last < self._standing.total - 1 else None

    async def _ended(self, after: int, limit: int) -> Found:
        """In stretches, short ones first: PostgreSQL, which takes a job for small, sorts all that it is asked for."""
        found: list[Item] = []
        first, span, end = after + 1, _STRETCH, self._standing.total
        while first < end and len(found) <= limit:
            asked = {"job": self._standing.number, "first": first, "last": first + span - 1}
            query = ENDED[self._data].where(*of_outcomes(self._where)).limit(limit + 1 - len(found))
            found += self._items(await self._database.fetch_tuples(query, asked))
            first, span = first + span, span * _LONGER
        return found[:limit], found[limit - 1].seq if len(found) > limit else None

    async def _named(self, keys: Sequence[str], after: int, limit: int) -> Found:
        seqs = await self._numbers(keyed(self._standing.number, keys))
        found = await self._matching([seq for seq in seqs if seq > after])
        return found[:limit], found[limit - 1].seq if len(found) > limit else None

    async def _gathered(self, after: int, limit: int) -> Found:
        seqs = await self._candidates(after, limit + 1)
        return await self._matching(seqs[:limit]), seqs[limit - 1] if len(seqs) > limit else None

    async def _candidates(self, after: int, limit: int) -> list[int]:
        """The first items of all the places where matching ones are."""
        number, standing = self._standing.number, self._standing
        found: set[int] = set(nsmallest(limit, standing.held(self._wanted & _HELD, after)))
        if standing.idle in self._wanted:
            waits = select(WAITING.c.seq).where(WAITING.c.job == number, WAITING.c.seq > after)
            found.update(await self._numbers(waits.order_by(WAITING.c.seq).limit(limit)))
            first = max(after + 1, standing.cursor)
            found.update(range(first, min(first + limit, standing.total)))
        if self._wanted & _FINAL:
            ends = select(OUTCOMES.c.seq).where(OUTCOMES.c.job == number, OUTCOMES.c.seq > after)
            ends = ends.where(*of_outcomes(self._where))
            found.update(await self._numbers(ends.order_by(OUTCOMES.c.seq).limit(limit)))
        return sorted(found)[:limit]

    async def _matching(self, seqs: list[int]) -> list[Item]:
        if not seqs:
            return []
        asked = {"job": self._standing.number, "seqs": seqs}
        rows = await self._database.fetch_tuples(SOME[self._data], asked)
        return [item for item in self._items(rows) if item.status in self._wanted and matches(item, self._where)]

    async def _numbers(self, query: Any) -> list[int]:
        return [row[0] for row in await self._database.fetch_tuples(query, {})]

    def _items(self, rows: Iterable[Any]) -> list[Item]:
        return [to_item(row, self._standing) for row in rows]
