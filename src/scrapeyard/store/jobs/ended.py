"""Items that ended since somebody looked: found by what is still open, since no index has the order of ends."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from sqlalchemy import select

from scrapeyard.store.database.database import Database
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.jobs.item_queries import SOME, Whereabouts, to_item
from scrapeyard.store.jobs.locks import WHOLE_BATCHES, Held
from scrapeyard.store.jobs.rows import Fields
from scrapeyard.store.ports.jobs import EndedItems, Frontier
from scrapeyard.store.tables.jobs import BATCHES, JOBS, WAITING

MAX_OPEN: Final = 5000
"""Waiting items of one job that are told apart. The ends of more are only counted."""
_JOB: Final = select(JOBS)


async def ended_since(database: Database, job_id: str, seen: Frontier, limit: int) -> EndedItems:
    """As `ItemStore.ended_since`."""
    jobs = await database.fetch(_JOB.where(JOBS.c.id == job_id)) if is_id(job_id) else ()
    if not jobs:
        return EndedItems(frontier=seen)
    job = jobs[0]
    batches = [Held(row) for row in await database.fetch(WHOLE_BATCHES.where(BATCHES.c.job == job["number"]))]
    still_open = {seq for held in batches for seq, _ in held.undone()} | await _waiting(database, job)
    wanted = list(islice(_newly_ended(seen, job["cursor"], still_open), limit))
    items = []
    if wanted:
        rows = await database.fetch_tuples(SOME[True], {"job": job["number"], "seqs": wanted})
        found = [to_item(row, Whereabouts(job, batches)) for row in rows]
        items = sorted((item for item in found if item.exit_reason is not None), key=lambda item: item.finished_at or 0)
    # What moved between two of these queries looks as if it had ended: it stays open.
    still_open |= set(wanted) - {item.seq for item in items}
    ended = job["success"] + job["error"]
    before = min(seen.ended, ended)
    told = before + len(items)
    return EndedItems(
        frontier=Frontier(cursor=max(job["cursor"], seen.cursor), open=frozenset(still_open), ended=max(ended, told)),
        items=tuple(items),
        left_out=max(0, ended - told),
    )


def _newly_ended(seen: Frontier, cursor: int, still_open: set[int]) -> Iterator[int]:
    """Those that were open first, then those handed out since, the newest first."""
    yield from sorted(seen.open - still_open)
    yield from (seq for seq in range(cursor - 1, seen.cursor - 1, -1) if seq not in still_open)


async def _waiting(database: Database, job: Fields) -> set[int]:
    idle = job["pending"] + job["cancelled"] - (job["total"] - job["cursor"])
    if idle <= 0:
        return set()
    query = select(WAITING.c.seq).where(WAITING.c.job == job["number"]).order_by(WAITING.c.seq).limit(MAX_OPEN)
    return {row[0] for row in await database.fetch_tuples(query, {})}
