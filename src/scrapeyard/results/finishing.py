"""Files written when all items of a job have ended: manifests, snapshots, the exports it was created with."""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from typing import Final

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.model.export import Export
from scrapeyard.model.job import ExportWish, Job
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.feeding import Block, Counted, ItemReader, counted_frames, item_blocks, shared
from scrapeyard.results.manifests import write_manifests
from scrapeyard.results.running_manifests import RunningManifests
from scrapeyard.results.snapshots import SnapshotComparer
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("results")
_OURS: Final = re.compile(r"job_[0-9a-f]{32}")
AT_ONCE: Final = 3
"""Files of one job written concurrently, each by its own process."""


class Finisher:
    """Finishes jobs. Everything may be repeated after an interruption, with the same result."""

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        exporter: Exporter,
        clock: Callable[[], float],
        running: RunningManifests | None = None,
    ) -> None:
        """`running` writes manifests of jobs that still run in this process; None if nothing does."""
        self._store = store
        self._blobs = blobs
        self._exporter = exporter
        self._snapshots = SnapshotComparer(store, blobs)
        self._clock = clock
        self._running = running

    async def finish(self, job: Job) -> None:
        """Write everything. If an export fails, its error is recorded and the job is finished without it. A cancelled
        job may be deleted meanwhile: then its files are removed, unless this process is killed first.

        Raises Unavailable if the store or the blobs are away: call again.
        """
        try:
            await self._write(job)
        finally:
            await self._leave_nothing_of_a_deleted(job.id)

    async def _write(self, job: Job) -> None:
        of_items = [wish for wish in job.exports if wish.type != "diff"]
        await self._wish(job, of_items)
        async with shared(item_blocks(self._store.items, job.id), 2) as (blocks, for_files):
            await _all_of(self._manifests(job, blocks), self._files(job, of_items[:AT_ONCE], for_files))
        for first in range(AT_ONCE, len(of_items), AT_ONCE):
            async with shared(item_blocks(self._store.items, job.id), 1) as (blocks,):
                await self._files(job, of_items[first : first + AT_ONCE], blocks)
        changes = await self._snapshots.update(job)
        is_first = changes is not None and not changes.known
        of_changes = [wish for wish in job.exports if wish.type == "diff" and not (wish.skip_first and is_first)]
        await self._wish(job, of_changes)
        for wish in of_changes:
            await self._exporter.make(wished_id(job.id, wish))

    async def _wish(self, job: Job, wishes: Sequence[ExportWish]) -> None:
        """Queue the exports; from now on any dispatcher may write them."""
        for wish in wishes:
            export = Export(id=wished_id(job.id, wish), job_id=job.id, wish=wish, created_at=self._clock())
            await self._store.exports.add(export)

    async def _leave_nothing_of_a_deleted(self, job_id: str) -> None:
        """A job is marked before its objects are deleted, so anything written since must be removed here."""
        job = await self._store.jobs.get(job_id)
        if job is None or job.deleting:
            await self._blobs.delete_prefix([keys.job_prefix(job_id)])

    async def _manifests(self, job: Job, blocks: ItemReader[Block]) -> None:
        with closing(blocks):
            if self._running is not None:
                await self._running.leave()
            counts = (await write_manifests(blocks, self._blobs, job)).counts
        log.info(
            "results.finished", job=job.id, items=counts["total"], success=counts["success"], errors=counts["error"]
        )

    async def _files(self, job: Job, wishes: Sequence[ExportWish], blocks: ItemReader[Block]) -> None:
        """Write several files from one pass over the items."""
        with closing(blocks):
            if not wishes:
                return
            async with shared(counted_frames(blocks, self._blobs), len(wishes)) as readers:
                await _all_of(*map(self._file, [wished_id(job.id, wish) for wish in wishes], readers))

    async def _file(self, export_id: str, items: ItemReader[Counted]) -> None:
        with closing(items):
            await self._exporter.make(export_id, items)


async def _all_of(*works: Awaitable[None]) -> None:
    """Wait for all, then raise the first exception, if any."""
    for ended in await asyncio.gather(*works, return_exceptions=True):
        if ended is not None:
            raise ended


def wished_id(job_id: str, wish: ExportWish) -> str:
    """The id of an export that a job was created with: the same however often the job is finished."""
    base = job_id.removeprefix("job_")
    if wish.against or not _OURS.fullmatch(job_id):
        base = hashlib.sha256(f"{job_id} {wish.against}".encode()).hexdigest()[:32]
    return f"export_{base}-{wish.type}-{wish.format}"
