"""Manifests of a job while it runs: parts whose items have all ended, and an index that lists them.

A part of `full` holds the items of 1,000 numbers in a row, so it can be written when the last of them has ended. The
successes and errors before that place are then known, too. Each part has the bytes that it has at the end, so parts are
only ever added. The index is written after its parts: what it lists is there.

A redrive changes items that are in parts. The index carries the number of the job's redrives that it was made at; with
another number it is void, and the parts are written anew.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import NotFound
from scrapeyard.model.job import Item, ItemStatus, Job, JobStatus
from scrapeyard.results import artifacts
from scrapeyard.results.manifests import (
    KINDS,
    PART_ITEMS,
    ManifestIndex,
    encode_entries,
    new_index,
    put_index,
    put_part,
)
from scrapeyard.store.ports.jobs import ItemFilter, JobFilter
from scrapeyard.store.ports.store import Store

LOOK_SECONDS: Final = 5.0
MAX_PARTS: Final = 20
"""Parts of `full` that one job gets in one round, so that others have their turn."""
_JOBS: Final = 100
_GOING: Final = (JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED)


async def read_index(blobs: Blobs, job: Job) -> ManifestIndex | None:
    """The index of a job as it was when `job` was read; None if there is none, or it is void."""
    try:
        found = msgspec.json.decode(await artifacts.read(blobs, keys.manifest_index(job.id)), type=ManifestIndex)
    except NotFound:
        return None
    return found if found.redrives == job.redrives else None


class RunningManifests:
    """A duty of the dispatcher. Only jobs that store their results as objects have manifests while they run."""

    name = "manifests"
    waits_after_outage = False

    def __init__(self, store: Store, blobs: Blobs, clock: Callable[[], float]) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._looked_at = -math.inf
        self._known: dict[str, tuple[int, int]] = {}
        """Redrives and listed items of each job, so that most rounds read no object."""
        self._turn = asyncio.Lock()

    async def run_once(self) -> None:
        """One round; most of them do nothing."""
        now = self._clock()
        if now < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = now
        seen = set()
        async for job in self._going():
            seen.add(job.id)
            if self._is_due(job):
                async with self._turn:
                    await self._advance(job.id)
        self._known = {job_id: known for job_id, known in self._known.items() if job_id in seen}

    async def leave(self) -> None:
        """Wait until no index is being written. A job that no longer runs gets none after that."""
        async with self._turn:
            return

    async def _going(self) -> AsyncIterator[Job]:
        cursor: str | None = None
        while True:
            page = await self._store.jobs.page(JobFilter(statuses=_GOING), cursor, _JOBS)
            for job in page.jobs:
                if job.policy.results == "objects":
                    yield job
            cursor = page.next_cursor
            if cursor is None:
                return

    def _is_due(self, job: Job) -> bool:
        redrives, listed = self._known.get(job.id, (-1, 0))
        if redrives != job.redrives:
            return job.redrives > 0 or job.counts.done >= PART_ITEMS
        return job.counts.done >= listed + PART_ITEMS

    async def _advance(self, job_id: str) -> None:
        job = await self._store.jobs.get(job_id)
        if job is None or job.status not in _GOING:
            return
        before = await read_index(self._blobs, job)
        index = before if before is not None and not before.complete else new_index(job)
        for _ in range(MAX_PARTS):
            longer = await self._add_part(job, index)
            if longer is None:
                break
            index = longer
        if index != before:
            await put_index(self._blobs, index)
        self._known[job.id] = (job.redrives, index.items)

    async def _add_part(self, job: Job, index: ManifestIndex) -> ManifestIndex | None:
        """The index with the next part of `full` and what follows from it; None if its items have not all ended."""
        block = await self._read(job.id, ItemFilter(first=index.items))
        if len(block) < PART_ITEMS or any(item.status not in KINDS for item in block):
            return None
        counts = {**index.counts}
        for item in block:
            counts[item.status.value] = counts.get(item.status.value, 0) + 1
        files = {**index.manifests}
        files["full"] = await put_part(self._blobs, job.id, "full", files["full"], await _encoded(block))
        longer: ManifestIndex | None = replace(index, items=index.items + PART_ITEMS, counts=counts, manifests=files)
        for status, kind in KINDS.items():
            while longer is not None and counts.get(status.value, 0) >= longer.manifests[kind].items + PART_ITEMS:
                longer = await self._add_part_of(job, longer, status)
        return longer

    async def _add_part_of(self, job: Job, index: ManifestIndex, status: ItemStatus) -> ManifestIndex | None:
        """The same for items of one status, of which the index has enough. None if a redrive has taken some away."""
        kind = KINDS[status]
        block = await self._read(job.id, ItemFilter(statuses=(status,), first=index.next.get(kind, 0)))
        if len(block) < PART_ITEMS or block[-1].seq >= index.items:
            return None
        files = await put_part(self._blobs, job.id, kind, index.manifests[kind], await _encoded(block))
        return replace(index, manifests={**index.manifests, kind: files}, next={**index.next, kind: block[-1].seq + 1})

    async def _read(self, job_id: str, where: ItemFilter) -> Sequence[Item]:
        """The first PART_ITEMS items that match."""
        found: list[Item] = []
        blocks = self._store.items.stream(job_id, where)
        try:
            async for block in blocks:
                found += block
                if len(found) >= PART_ITEMS:
                    break
        finally:
            await blocks.aclose()
        return found[:PART_ITEMS]


async def _encoded(block: Sequence[Item]) -> list[tuple[ItemStatus, bytes]]:
    return await asyncio.to_thread(encode_entries, block)
