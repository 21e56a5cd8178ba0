"""Compares a finished job with earlier crawls, and stores its snapshots for the next.

For each block: look up its pages, compare them, write their snapshots and changes. A block that was written before
a crash gives the same result again, since each snapshot includes the state before this job.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Final

import msgspec

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import NotFound
from scrapeyard.model.job import Item, Job, JobStatus, SnapshotPolicy
from scrapeyard.results import artifacts
from scrapeyard.results.changes import ChangesMetadata, Sight, compare, miss, see
from scrapeyard.results.exports.columns import DIFF, Row
from scrapeyard.results.exports.protocol import line_of
from scrapeyard.results.feeding import results_of
from scrapeyard.results.listings import PageListing, listing_of, site_of
from scrapeyard.store.ports.exports import Snapshot
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("results")
PART_ROWS: Final = 1000
_BLOCK: Final = 500
_MAX_SCOPES: Final = 1000
"""Scopes of one job whose missing pages are looked up."""
_TYPE: Final = [column.name for column in DIFF].index("change_type")
_BEFORE: Final = [column.name for column in DIFF].index("prev_crawl_at")


def policy_of(job: Job) -> SnapshotPolicy | None:
    """The job's snapshot policy; None if its pages are not stored."""
    if job.policy.snapshots is None and not any(wish.type == "diff" and not wish.against for wish in job.exports):
        return None
    return job.policy.snapshots or SnapshotPolicy()


def scope_of(job: Job, policy: SnapshotPolicy, site: str) -> str:
    """Name of the scope of a site's pages: crawls of one scope are compared with each other. Jobs without a scope, a
    schedule and a name meet only where they crawl the same site with the same scraper; those of different owners
    never."""
    named = policy.scope or job.schedule_id or job.name
    scope = named or f"{job.scraper.partition('@')[0]} {site}".strip()
    return f"{job.owner}: {scope}" if job.owner else scope


def _is_named(job: Job, policy: SnapshotPolicy) -> bool:
    return bool(policy.scope or job.schedule_id or job.name)


class SnapshotComparer:
    """Compares and remembers."""

    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    async def update(self, job: Job) -> ChangesMetadata | None:
        """Compare one job whose items have all ended. None if the job does not want it. May be repeated.

        A cancelled job may not have read its whole list, so its missing pages are not reported. Nor are those of a
        list under no name: it says which pages to look at, not which there are.
        """
        policy = policy_of(job)
        if policy is None:
            return None
        listing = listing_of(job)
        parts = _Parts(self._blobs, job.id)
        last = 0.0
        scopes: dict[str, None] = {}
        async for items in self._items(job.id):
            last = max(last, *(item.finished_at or 0.0 for item in items))
            await parts.add(await self._compare(job, items, policy, listing, scopes))
        if job.status is not JobStatus.CANCELLED:
            for scope in _listed_scopes(job, policy, listing, scopes):
                async for rows in self._missing(scope, job.id, last, policy, listing):
                    await parts.add(rows)
        told = next(iter(scopes), scope_of(job, policy, ""))
        metadata = await parts.finish(told)
        log.info("results.snapshots_kept", job=job.id, scope=told, changes=metadata.counts)
        return metadata

    async def _items(self, job_id: str) -> AsyncIterator[Sequence[Item]]:
        async for block in self._store.items.stream(job_id, ItemFilter()):
            for start in range(0, len(block), _BLOCK):
                yield block[start : start + _BLOCK]

    async def _compare(
        self, job: Job, items: Sequence[Item], policy: SnapshotPolicy, listing: PageListing, scopes: dict[str, None]
    ) -> list[Row]:
        """Rows of some items; their scopes are added to `scopes`, as many as it may have."""
        results = await results_of(self._blobs, items)
        sights = await asyncio.to_thread(_sights, items, results, policy, listing)
        rows: list[Row] = []
        for scope, seen in _by_scope(job, policy, sights).items():
            if len(scopes) < _MAX_SCOPES:
                scopes[scope] = None
            known = await self._store.snapshots.get(scope, [sight.page for sight in seen])
            changed, found = await asyncio.to_thread(_judged, known, seen, job.id, policy)
            if changed:
                await self._store.snapshots.put(scope, changed)
            rows += found
        return rows

    async def _missing(
        self, scope: str, job_id: str, at: float, policy: SnapshotPolicy, listing: PageListing
    ) -> AsyncIterator[list[Row]]:
        """Changes of pages missing from the list, including those this job found missing before a crash."""
        after = ""
        while found := await self._store.snapshots.missing(scope, job_id, after, _BLOCK):
            after = found[-1].page
            judged = [(page, *miss(page, job_id, at, policy, listing)) for page in found]
            kept = [new for page, new, _ in judged if new is not None and new is not page and page.job_id != job_id]
            gone = [page.page for page, new, _ in judged if new is None]
            if kept:
                await self._store.snapshots.put(scope, kept)
            if gone:
                await self._store.snapshots.drop(scope, gone)
            yield [row for _, _, row in judged if row is not None]


def _listed_scopes(job: Job, policy: SnapshotPolicy, listing: PageListing, seen: dict[str, None]) -> Sequence[str]:
    """Scopes whose pages the job would have listed."""
    if _is_named(job, policy):
        return [scope_of(job, policy, "")]
    if job.source.get("kind") == "list":
        return ()
    return list(seen) if listing.sites is None else [scope_of(job, policy, site) for site in listing.sites]


def _by_scope(job: Job, policy: SnapshotPolicy, sights: Sequence[Sight]) -> dict[str, list[Sight]]:
    if _is_named(job, policy):
        return {scope_of(job, policy, ""): list(sights)} if sights else {}
    found: dict[str, list[Sight]] = {}
    for sight in sights:
        found.setdefault(scope_of(job, policy, site_of(sight.url)), []).append(sight)
    return found


def _sights(
    items: Sequence[Item], results: Sequence[bytes | None], policy: SnapshotPolicy, listing: PageListing
) -> list[Sight]:
    pairs = zip(items, results, strict=True)
    return [see(line_of(item, result), item.seq, policy.ignore, listing.source) for item, result in pairs]


def _judged(
    known: dict[str, Snapshot], sights: Sequence[Sight], job_id: str, policy: SnapshotPolicy
) -> tuple[list[Snapshot], list[Row]]:
    """The snapshots to write, and the rows of changes."""
    rows: list[Row] = []
    changed: dict[str, Snapshot] = {}
    for sight in sights:
        before = changed.get(sight.page) or known.get(sight.page)
        after, row = compare(before, sight, job_id, policy)
        if after is not None and after != before:
            changed[sight.page] = after
        if row is not None:
            rows.append(row)
    return list(changed.values()), rows


class _Parts:
    """Writes rows as parts of changes, PART_ROWS in each."""

    def __init__(self, blobs: Blobs, job_id: str) -> None:
        self._blobs = blobs
        self._job_id = job_id
        self._numbers = count(1)
        self._waiting: list[Row] = []
        self._parts = 0
        self._rows = 0
        self._counts: dict[str, int] = {}
        self._known = 0

    async def add(self, rows: Sequence[Row]) -> None:
        """In order."""
        for row in rows:
            kind = str(row[_TYPE])
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known += row[_BEFORE] is not None
        self._rows += len(rows)
        self._waiting += rows
        while len(self._waiting) >= PART_ROWS:
            now, self._waiting = self._waiting[:PART_ROWS], self._waiting[PART_ROWS:]
            await self._put(now)

    async def finish(self, scope: str) -> ChangesMetadata:
        """Write the last part, then the metadata of all."""
        if self._waiting:
            await self._put(self._waiting)
        metadata = ChangesMetadata(
            job_id=self._job_id,
            scope=scope,
            parts=self._parts,
            rows=self._rows,
            counts=dict(sorted(self._counts.items())),
            known=self._known,
        )
        key = keys.changes_metadata(self._job_id)
        await self._drop_older(key)
        await artifacts.put(self._blobs, key, msgspec.json.encode(metadata), "application/json")
        return metadata

    async def _drop_older(self, key: str) -> None:
        """Delete surplus parts: a redriven job may have fewer."""
        try:
            older = msgspec.json.decode(await artifacts.read(self._blobs, key), type=ChangesMetadata).parts
        except NotFound:
            return
        await self._blobs.delete([keys.changes(self._job_id, part) for part in range(self._parts + 1, older + 1)])

    async def _put(self, rows: Sequence[Row]) -> None:
        self._parts = next(self._numbers)
        key = keys.changes(self._job_id, self._parts)
        await artifacts.put(self._blobs, key, msgspec.json.encode(rows), "application/json")
