"""Failed items across jobs: the listing of jobs, the newest first, and of each job the rows of its failed items."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from scrapeyard.model.job import Item, ItemStatus
from scrapeyard.store.database.paging import as_cursor, numbers
from scrapeyard.store.dynamo.items.ends import ItemEnds, matches
from scrapeyard.store.dynamo.items.search import ItemSearch
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.rows.keys import JOBS, number
from scrapeyard.store.dynamo.table.expressions import Where, all_of, at_most, below, equals
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.jobs.rules.rows import Row
from scrapeyard.store.ports.jobs import DeadLetterFilter, ItemFilter

Letters = tuple[tuple[tuple[str, Item], ...], str | None]
_JOBS: Final = 50
"""Jobs looked at together."""


class _Place(NamedTuple):
    job_id: str
    number: int
    seq: int


class DeadLetters(DynamoPart):
    """Pages of failed items."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows, search: ItemSearch) -> None:
        super().__init__(base)
        self._rows = rows
        self._search = search
        self._ends = ItemEnds(base)

    async def page(self, where: DeadLetterFilter, cursor: str | None, limit: int) -> Letters:
        """Newest job first, within it the end of its list first. Raises BadRequest for an invalid cursor."""
        before = None if cursor is None else numbers(cursor, 2)
        wanted = ItemFilter(exit_reasons=where.exit_reasons, sites=where.sites)
        found: list[_Place] = []
        async for row in self._jobs(where, None if before is None else before[0]):
            under = before[1] if before and before[0] == row["number"] else None
            if row["error"]:
                seqs = await self._failed(row["id"], wanted, under, limit + 1 - len(found))
                found += [_Place(row["id"], row["number"], seq) for seq in seqs]
            if len(found) > limit:
                break
        more = f"{found[limit - 1].number}-{found[limit - 1].seq}" if len(found) > limit > 0 else None
        return await self._whole(found[:limit]), None if more is None else as_cursor(more)

    async def _jobs(self, where: DeadLetterFilter, last: int | None) -> AsyncIterator[Row]:
        """Jobs that may have some, the newest first, from this number down."""
        named = {"owner": where.owner, "scraper_id": where.scraper}
        given = {name: value for name, value in named.items() if value is not None}
        if where.job_id is not None:
            for row in await self._rows.get_many([where.job_id]):
                fits = all(row[name] == value for name, value in given.items())
                if fits and (last is None or row["number"] <= last):
                    yield row
            return
        conditions = [equals(name, value) for name, value in given.items()]
        pages = self._table.pages(
            JOBS,
            sort=None if last is None else at_most("sk", number(last)),
            where=all_of(*conditions) if conditions else None,
            descending=True,
            limit=_JOBS,
        )
        async for page in pages:
            for row in await self._rows.get_many(item["id"] for item in page):
                yield row

    async def _failed(self, job_id: str, where: ItemFilter, under: int | None, limit: int) -> list[int]:
        sort: Where | None = None if under is None else below("sk", number(under))
        found: list[int] = []
        async for page in self._ends.failed_backwards(job_id, sort):
            found += [int(row["sk"]) for row in page if matches(row, where)]
            if len(found) >= limit:
                break
        return found[:limit]

    async def _whole(self, places: Sequence[_Place]) -> tuple[tuple[str, Item], ...]:
        by_job: dict[str, list[int]] = {}
        for place in places:
            by_job.setdefault(place.job_id, []).append(place.seq)
        letters: list[tuple[str, Item]] = []
        for job_id, seqs in by_job.items():
            standing = await self._search.standing(job_id)
            items = [] if standing is None else await self._search.some(job_id, standing, seqs)
            letters += [(job_id, item) for item in items if item.status is ItemStatus.ERROR]
        return tuple(letters)
