"""What is written when the items of a job have all ended: manifests, snapshots, the exports it was created with."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from typing import Final, Protocol

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.model.export import Export
from scrapeyard.model.job import ExportWish, Job
from scrapeyard.results.exporter import Exporter, ResultStore
from scrapeyard.results.feeding import Block, Counted, ItemReader, counted_frames, item_blocks, shared
from scrapeyard.results.manifests import write_manifests
from scrapeyard.results.snapshots import SnapshotComparer
from scrapeyard.store.ports.exports import SnapshotStore
from scrapeyard.telemetry.events import get_log

log = get_log("results")
AT_ONCE: Final = 3
"""Files of one job: each is written by a process of its own."""


class FinishStore(ResultStore, SnapshotStore, Protocol):
    """What is needed of the store."""


class Finisher:
    """Finishes jobs. Everything may be done again after an interruption, and is then the same."""

    def __init__(self, store: FinishStore, blobs: Blobs, exporter: Exporter, clock: Callable[[], float]) -> None:
        self._store = store
        self._blobs = blobs
        self._exporter = exporter
        self._snapshots = SnapshotComparer(store, blobs)
        self._clock = clock

    async def finish(self, job: Job) -> None:
        """Write it all; takes as long as it takes. An export that fails says why, and the job is finished without it.
        A cancelled job may be deleted meanwhile: then nothing of it stays, unless this process is killed before.

        Raises Unavailable when the store or the blobs are away: call again.
        """
        try:
            await self._write(job)
        finally:
            await self._leave_nothing_of_a_deleted(job.id)

    async def _write(self, job: Job) -> None:
        of_items = [wish for wish in job.exports if wish.type != "diff"]
        await self._wish(job, of_items)
        async with shared(item_blocks(self._store, job.id), 2) as (blocks, for_files):
            await _all_of(self._manifests(job, blocks), self._files(job, of_items[:AT_ONCE], for_files))
        for first in range(AT_ONCE, len(of_items), AT_ONCE):
            async with shared(item_blocks(self._store, job.id), 1) as (blocks,):
                await self._files(job, of_items[first : first + AT_ONCE], blocks)
        await self._snapshots.update(job)
        of_changes = [wish for wish in job.exports if wish.type == "diff"]
        await self._wish(job, of_changes)
        for wish in of_changes:
            await self._exporter.make(wished_id(job.id, wish))

    async def _wish(self, job: Job, wishes: Sequence[ExportWish]) -> None:
        """From now on any dispatcher may make them."""
        for wish in wishes:
            export = Export(id=wished_id(job.id, wish), job_id=job.id, wish=wish, created_at=self._clock())
            await self._store.add_export(export)

    async def _leave_nothing_of_a_deleted(self, job_id: str) -> None:
        """Whoever deletes marks the job before its objects go, so what was written since is ours to remove."""
        job = await self._store.job(job_id)
        if job is None or job.deleting:
            await self._blobs.delete_prefix([keys.job_prefix(job_id)])

    async def _manifests(self, job: Job, blocks: ItemReader[Block]) -> None:
        with closing(blocks):
            counts = (await write_manifests(blocks, self._blobs, job)).counts
        log.info(
            "results.finished", job=job.id, items=counts["total"], success=counts["success"], errors=counts["error"]
        )

    async def _files(self, job: Job, wishes: Sequence[ExportWish], blocks: ItemReader[Block]) -> None:
        """Several, from the items as they pass."""
        with closing(blocks):
            if not wishes:
                return
            async with shared(counted_frames(blocks, self._blobs), len(wishes)) as readers:
                await _all_of(*map(self._file, [wished_id(job.id, wish) for wish in wishes], readers))

    async def _file(self, export_id: str, items: ItemReader[Counted]) -> None:
        with closing(items):
            await self._exporter.make(export_id, items)


async def _all_of(*works: Awaitable[None]) -> None:
    """Raises what went wrong first, when all have ended."""
    for ended in await asyncio.gather(*works, return_exceptions=True):
        if ended is not None:
            raise ended


def wished_id(job_id: str, wish: ExportWish) -> str:
    """The id of an export that a job was created with: the same however often the job is finished."""
    return f"export_{job_id.removeprefix('job_')}-{wish.type}-{wish.format}"
