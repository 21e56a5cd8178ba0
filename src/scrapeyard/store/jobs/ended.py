"""Items that ended since somebody looked: found by what is still open, since no index has the order of ends."""

from itertools import islice
from typing import Final

from sqlalchemy import select

from scrapeyard.store.database.database import Database
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.jobs.item_queries import SOME
from scrapeyard.store.jobs.locks import WHOLE_BATCHES
from scrapeyard.store.jobs.rules.held import Held
from scrapeyard.store.jobs.rules.rows import Fields
from scrapeyard.store.jobs.rules.whereabouts import Whereabouts, newly_ended, to_item, told_ends
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
    wanted = list(islice(newly_ended(seen, job["cursor"], still_open), limit))
    found = []
    if wanted:
        rows = await database.fetch_tuples(SOME[True], {"job": job["number"], "seqs": wanted})
        found = [to_item(row, Whereabouts(job, batches)) for row in rows]
    return told_ends(job, seen, still_open, wanted, found)


async def _waiting(database: Database, job: Fields) -> set[int]:
    idle = job["pending"] + job["cancelled"] - (job["total"] - job["cursor"])
    if idle <= 0:
        return set()
    query = select(WAITING.c.seq).where(WAITING.c.job == job["number"]).order_by(WAITING.c.seq).limit(MAX_OPEN)
    return {row[0] for row in await database.fetch_tuples(query, {})}
