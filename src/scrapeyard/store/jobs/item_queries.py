"""SQL to select items, and pages of them."""

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from re import compile as pattern
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, func, literal_column, null, select, tuple_

from scrapeyard.model.job import ITEM_KEY, Item, ItemStatus
from scrapeyard.store.database.database import Database
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.jobs.locks import WHOLE_BATCHES
from scrapeyard.store.jobs.rules.held import Held
from scrapeyard.store.jobs.rules.whereabouts import FINAL_ITEM, HELD, Whereabouts, matches, to_item, wanted_statuses
from scrapeyard.store.ports.jobs import ITEM_BLOCK, DeadLetterFilter, ItemFilter
from scrapeyard.store.tables.jobs import BATCHES, ITEMS, JOBS, OUTCOMES, WAITING

FAILED: Final = OUTCOMES.c.ok == literal_column("false")
"""Spelled out, since a partial index is used only if the query contains its condition."""
_KEY: Final = pattern(ITEM_KEY)
_MOST_KEYS: Final = 1000

_ENDED: Final = (
    OUTCOMES.c.attempt,
    OUTCOMES.c.exit_reason,
    OUTCOMES.c.result_key,
    OUTCOMES.c.result_bytes,
    OUTCOMES.c.error,
    OUTCOMES.c.site,
    OUTCOMES.c.usage,
    OUTCOMES.c.artifacts,
    OUTCOMES.c.started_at,
    OUTCOMES.c.finished_at,
    OUTCOMES.c.http_status,
)
_DATA: Final = (ITEMS.c.input, OUTCOMES.c.result, OUTCOMES.c.logs)
_NO_DATA: Final = (null().label("input"), null().label("result"), null().label("logs"))
_WAITS: Final = (WAITING.c.attempt.label("next_attempt"), WAITING.c.not_before)
_NO_WAIT: Final = (null().label("next_attempt"), null().label("not_before"))


def _same(found: Table, known: Table) -> ColumnElement[bool]:
    """The row of an item in `found` for its row in `known`.

    For queries of one job. The sum prevents the planner from inferring that `found.job` is the requested job:
    PostgreSQL assumes that a job newer than its statistics is empty, and would then read all of it for each item.
    """
    return and_(found.c.job == known.c.job + literal_column("0"), found.c.seq == known.c.seq)


def _columns(*, data: bool) -> tuple[Any, ...]:
    """The columns that `to_item` reads, in its order."""
    return ITEMS.c.seq, ITEMS.c.key, *(_DATA if data else _NO_DATA), *_ENDED, ITEMS.c.depth, ITEMS.c.referrer


def _all(data: bool) -> Select[Any]:
    joined = ITEMS.outerjoin(OUTCOMES, _same(OUTCOMES, ITEMS)).outerjoin(WAITING, _same(WAITING, ITEMS))
    query = select(*_columns(data=data), *_WAITS).select_from(joined)
    return query.where(ITEMS.c.job == bindparam("job")).order_by(ITEMS.c.seq)


def _ended(data: bool) -> Select[Any]:
    query = select(*_columns(data=data), *_NO_WAIT).select_from(OUTCOMES.join(ITEMS, _same(ITEMS, OUTCOMES)))
    return query.where(OUTCOMES.c.job == bindparam("job")).order_by(OUTCOMES.c.seq)


RANGE: Final = {
    data: _all(data).where(ITEMS.c.seq.between(bindparam("first"), bindparam("last"))) for data in (False, True)
}
"""Items from `first` to `last`, with data (True) or without."""
SOME: Final = {data: _all(data).where(ITEMS.c.seq.in_(bindparam("seqs", expanding=True))) for data in (False, True)}
"""Items by their numbers."""
ENDED: Final = {
    data: _ended(data).where(OUTCOMES.c.seq.between(bindparam("first"), bindparam("last"))) for data in (False, True)
}
"""Final items from `first` to `last`; narrow it with `of_outcomes`."""


def of_outcomes(where: ItemFilter) -> list[ColumnElement[bool]]:
    """Conditions of a filter on the row of a final item, except its key."""
    conditions = []
    wanted = set(ItemStatus) if where.statuses is None else set(where.statuses)
    ends = wanted & {ItemStatus.SUCCESS, ItemStatus.ERROR}
    if ends == {ItemStatus.ERROR}:
        conditions.append(FAILED)
    elif ends == {ItemStatus.SUCCESS}:
        conditions.append(OUTCOMES.c.ok == literal_column("true"))
    elif not ends:
        conditions.append(literal_column("1 = 0"))
    if where.exit_reasons is not None:
        conditions.append(OUTCOMES.c.exit_reason.in_([reason.value for reason in where.exit_reasons]))
    if where.sites is not None:
        conditions.append(OUTCOMES.c.site.in_([site for site in where.sites if "\x00" not in site]))
    if where.http_statuses is not None:
        conditions.append(OUTCOMES.c.http_status.in_(where.http_statuses))
    return conditions


def dead(where: DeadLetterFilter, before: Sequence[int] | None) -> Select[Any]:
    """Failed items across jobs that match, before a place (job, item): the newest job first, within it from its end.
    Both descend, so that one index serves."""
    place = tuple_(OUTCOMES.c.job, OUTCOMES.c.seq)
    columns = (*_columns(data=True), *_NO_WAIT, JOBS.c.id.label("job_id"), JOBS.c.number)
    joined = OUTCOMES.join(ITEMS, and_(ITEMS.c.job == OUTCOMES.c.job, ITEMS.c.seq == OUTCOMES.c.seq)).join(
        JOBS, JOBS.c.number == OUTCOMES.c.job
    )
    failed = ItemFilter(statuses=(ItemStatus.ERROR,), exit_reasons=where.exit_reasons, sites=where.sites)
    query = select(*columns).select_from(joined).where(*of_outcomes(failed))
    if where.job_id is not None:
        query = query.where(JOBS.c.id == where.job_id)
    if where.owner is not None:
        query = query.where(OUTCOMES.c.job.in_(select(JOBS.c.number).where(JOBS.c.owner == where.owner)))
    if where.scraper is not None:
        query = query.where(JOBS.c.scraper_id == where.scraper)
    query = query if before is None else query.where(place < tuple_(*before))
    return query.order_by(OUTCOMES.c.job.desc(), OUTCOMES.c.seq.desc())


def failed_alike(limit: int) -> Select[Any]:
    """The largest groups of failed items of a job: how they ended, how many they are, and the number of the first."""
    alike = (OUTCOMES.c.exit_reason, OUTCOMES.c.http_status, OUTCOMES.c.site)
    count, first = func.count().label("count"), func.min(OUTCOMES.c.seq).label("first")
    query = select(*alike, count, first).where(OUTCOMES.c.job == bindparam("job"), FAILED).group_by(*alike)
    return query.order_by(count.desc(), first).limit(limit)


def keyed(job: int, keys: Sequence[str]) -> Select[Any]:
    """Numbers of the items with these keys, in order. Invalid keys are left out."""
    names = [key for key in keys[:_MOST_KEYS] if _KEY.fullmatch(key)]
    return select(ITEMS.c.seq).where(ITEMS.c.job == job, ITEMS.c.key.in_(names)).order_by(ITEMS.c.seq)


Found = tuple[list[Item], int | None]
"""Items, and the number of the last one examined; None if there are no more."""

_STRETCH: Final = 2000
_LONGER: Final = 4
"""Growth factor of the stretch: if few items match, few queries find them."""
_STANDING: Final = (JOBS.c.number, JOBS.c.status, JOBS.c.total, JOBS.c.cursor, JOBS.c.queued, JOBS.c.in_progress)


async def items_after(
    database: Database, job_id: str, where: ItemFilter, *, after: int, limit: int, data: bool
) -> Found:
    """At most `limit`, and ITEM_BLOCK, matching items after that number. Empty if there is no such job."""
    standing = await _whereabouts(database, job_id)
    if standing is None:
        return [], None
    return await _Search(database, standing, where, data).page(max(after, where.first - 1), min(limit, ITEM_BLOCK))


async def _whereabouts(database: Database, job_id: str) -> Whereabouts | None:
    jobs = await database.fetch(select(*_STANDING).where(JOBS.c.id == job_id)) if is_id(job_id) else ()
    if not jobs:
        return None
    out = jobs[0]["queued"] + jobs[0]["in_progress"]
    rows = await database.fetch(WHOLE_BATCHES.where(BATCHES.c.job == jobs[0]["number"])) if out else ()
    return Whereabouts(jobs[0], map(Held, rows))


class _Search:
    """One filter applied to one job."""

    def __init__(self, database: Database, standing: Whereabouts, where: ItemFilter, data: bool) -> None:
        self._database = database
        self._standing = standing
        self._where = where
        self._data = data
        self._wanted = wanted_statuses(where)

    async def page(self, after: int, limit: int) -> Found:
        """The first matching items after that number."""
        if self._where.keys is not None:
            return await self._named(self._where.keys, after, limit)
        if self._wanted == frozenset(ItemStatus):
            return await self._in_range(after, limit)
        if self._wanted <= FINAL_ITEM:
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
        """Read in stretches, short ones first: PostgreSQL assumes a small job and sorts everything that matches."""
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
        """The first candidates from every place where matching items may be."""
        number, standing = self._standing.number, self._standing
        found: set[int] = set(nsmallest(limit, standing.held(self._wanted & HELD, after)))
        if standing.idle in self._wanted:
            waits = select(WAITING.c.seq).where(WAITING.c.job == number, WAITING.c.seq > after)
            found.update(await self._numbers(waits.order_by(WAITING.c.seq).limit(limit)))
            first = max(after + 1, standing.cursor)
            found.update(range(first, min(first + limit, standing.total)))
        if self._wanted & FINAL_ITEM:
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
