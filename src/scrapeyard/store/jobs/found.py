"""Adding items to a locked job: those of its list, and those that scripts find while they run."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json
from sqlalchemy import bindparam, delete, select

from scrapeyard.model.job import NewItem
from scrapeyard.store.database.transaction import BulkInsert, Execute, Script
from scrapeyard.store.jobs.locks import change_job
from scrapeyard.store.jobs.rules.gaps import TOO_MANY, near_enough, with_gaps
from scrapeyard.store.jobs.rules.rows import Fields, source_values
from scrapeyard.store.jobs.rules.states import TAKES_ITEMS
from scrapeyard.store.ports.jobs import ITEM_BLOCK
from scrapeyard.store.tables.jobs import ITEMS

_TAKE_BACK: Final = (
    delete(ITEMS).where(ITEMS.c.job == bindparam("job_is"), ITEMS.c.seq >= bindparam("from_seq")).returning(ITEMS.c.key)
)


def add_found(job: Fields, found: Sequence[NewItem]) -> Script[int]:
    """Append what scripts found, within the job's limits; returns how many were new. Items whose key exists are
    skipped, and the job's gaps say what was left out. A job that takes no more items gets none."""
    if job["status"] not in TAKES_ITEMS:
        return 0
    source = json.decode(job["source"])
    items, most, gaps = near_enough(job, source, found)
    room = max(0, most - job["total"])
    if len(items) > room:
        items = yield from _unknown(job, items)
        if len(items) > room:
            gaps.append(TOO_MANY.format(most))
    if (noted := with_gaps(source, gaps)) is not None:
        yield from change_job(job, source_values(noted))
    return (yield from _append_all(job, items[:room]))


def _append_all(job: Fields, items: Sequence[NewItem]) -> Script[int]:
    total, pending = job["total"], job["pending"]
    added = 0
    for start in range(0, len(items), ITEM_BLOCK):
        now = {**job, "total": total + added, "pending": pending + added}
        added += yield from append(now, items[start : start + ITEM_BLOCK])
    return added


def _unknown(job: Fields, items: Sequence[NewItem]) -> Script[list[NewItem]]:
    """Those whose key the job does not have."""
    known: set[str] = set()
    for start in range(0, len(items), ITEM_BLOCK):
        some = ITEMS.c.key.in_([item.key for item in items[start : start + ITEM_BLOCK]])
        rows = yield Execute(select(ITEMS.c.key).where(ITEMS.c.job == job["number"], some))
        known.update(row[0] for row in rows)
    return [item for item in items if item.key not in known]


def append(job: Fields, given: Sequence[NewItem]) -> Script[int]:
    """Insert new items, numbered without gaps, since batches are ranges: if some were known, the others move up."""
    number, total = job["number"], job["total"]
    added: int = yield BulkInsert(ITEMS, _rows(job, given))
    if 0 < added < len(given):
        new = {row[0] for row in (yield Execute(_TAKE_BACK, {"job_is": number, "from_seq": total}))}
        yield BulkInsert(ITEMS, _rows(job, [item for item in given if item.key in new]))
    yield from change_job(job, {"total": total + added, "pending": job["pending"] + added})
    return added


def _rows(job: Fields, items: Sequence[NewItem]) -> list[tuple[Any, ...]]:
    return [
        (job["number"], seq, item.key, bytes(item.input), item.depth, item.referrer or None)
        for seq, item in enumerate(items, job["total"])
    ]
