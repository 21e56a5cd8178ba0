"""Compares two chosen jobs, page by page. What snapshots remember plays no part.

The pages of the earlier job wait in a private SQLite file, which vanishes with its connection: memory stays the same
however many there are.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

import msgspec

from scrapeyard.blobs.port import Blobs
from scrapeyard.model.job import Item, Job, SnapshotPolicy
from scrapeyard.results.changes import ChangeType, Sight, compare, miss, row_of, see
from scrapeyard.results.exports.columns import DIFF, Row
from scrapeyard.results.exports.protocol import line_of
from scrapeyard.results.feeding import Block, item_blocks, results_of
from scrapeyard.results.listings import PageListing, listing_of
from scrapeyard.store.ports.exports import Snapshot
from scrapeyard.store.ports.jobs import ItemStore

_BLOCK: Final = 500
_TYPE: Final = [column.name for column in DIFF].index("change_type")
_SCHEMA: Final = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384;
CREATE TABLE pages (page TEXT PRIMARY KEY, known BLOB, seen INTEGER) WITHOUT ROWID;
CREATE TABLE failed (page TEXT PRIMARY KEY, reason TEXT) WITHOUT ROWID;
BEGIN;
"""
_PUT: Final = "INSERT INTO pages (page, known, seen) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET known = ?2, seen = ?3"
_MISSING: Final = "SELECT known FROM pages WHERE NOT seen AND page > ? ORDER BY page LIMIT ?"
_known = msgspec.msgpack.Decoder(Snapshot).decode
_packed = msgspec.msgpack.Encoder().encode


async def compared_rows(store: ItemStore, blobs: Blobs, earlier: Job, job: Job) -> AsyncIterator[list[Row]]:
    """Rows of `diff` in blocks: the pages of `job` in its order, then those that only `earlier` has. Raises NotFound if
    the result of an item is gone."""
    comparison = _Comparison(earlier, job)
    try:
        async for block in item_blocks(store, earlier.id):
            for items in _pieces(block):
                await asyncio.to_thread(comparison.remember, items, await results_of(blobs, items))
        async for block in item_blocks(store, job.id):
            for items in _pieces(block):
                yield await asyncio.to_thread(comparison.compare, items, await results_of(blobs, items))
        while rows := await asyncio.to_thread(comparison.missing):
            yield rows
    finally:
        comparison.close()


def _pieces(block: Block) -> list[Sequence[Item]]:
    return [block[start : start + _BLOCK] for start in range(0, len(block), _BLOCK)]


class _Comparison:
    def __init__(self, earlier: Job, job: Job) -> None:
        self._earlier = earlier
        self._job = job
        self._policy = msgspec.structs.replace(job.policy.snapshots or SnapshotPolicy(), confirm=1)
        self._before, self._listing = listing_of(earlier), listing_of(job)
        self._after = ""
        self._at = 0.0
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.executescript(_SCHEMA)

    def remember(self, items: Sequence[Item], results: Sequence[bytes | None]) -> None:
        """The pages of the earlier job. Of those that it failed to read it is not known whether they are new."""
        for sight, _ in self._judged(self._earlier.id, items, results, self._before):
            if sight.failure:
                self._db.execute("INSERT OR IGNORE INTO failed VALUES (?, ?)", (sight.page, sight.failure))

    def compare(self, items: Sequence[Item], results: Sequence[bytes | None]) -> list[Row]:
        """Rows of the later job's pages."""
        self._at = max(self._at, *(item.finished_at or 0.0 for item in items))
        judged = self._judged(self._job.id, items, results, self._listing)
        return [self._told(sight, row) for sight, row in judged if row is not None]

    def missing(self) -> list[Row]:
        """Rows of the next pages that the later job does not have; empty at the end."""
        rows: list[Row] = []
        while not rows and (found := self._db.execute(_MISSING, (self._after, _BLOCK)).fetchall()):
            known = [_known(row[0]) for row in found]
            self._after = known[-1].page
            judged = (miss(page, self._job.id, self._at, self._policy, self._listing) for page in known)
            rows = [row for _, row in judged if row is not None]
        return rows

    def close(self) -> None:
        self._db.close()

    def _told(self, sight: Sight, row: Row) -> Row:
        if row[_TYPE] != ChangeType.ADDED:
            return row
        failed = self._db.execute("SELECT reason FROM failed WHERE page = ?", (sight.page,)).fetchone()
        if failed is None:
            return row
        reason = f"the earlier job failed to read it: {failed[0]}"
        return row_of(sight.url, None, None, ChangeType.UNKNOWN, at=sight.at, reason=reason)

    def _judged(
        self, job_id: str, items: Sequence[Item], results: Sequence[bytes | None], listing: PageListing
    ) -> Iterator[tuple[Sight, Row | None]]:
        for item, result in zip(items, results, strict=True):
            sight = see(line_of(item, result), item.seq, self._policy.ignore, listing.source)
            held = self._db.execute("SELECT known FROM pages WHERE page = ?", (sight.page,)).fetchone()
            after, row = compare(_known(held[0]) if held else None, sight, job_id, self._policy)
            if after is not None:
                self._db.execute(_PUT, (sight.page, _packed(after), job_id == self._job.id))
            yield sight, row
