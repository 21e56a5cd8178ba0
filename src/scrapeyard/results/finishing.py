"""What is written when the items of a job have all ended: manifests, snapshots, the exports it was created with."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.model.export import Export
from scrapeyard.model.job import ExportWish, Job
from scrapeyard.results.exporter import Exporter, ResultStore
from scrapeyard.results.feeding import counted_frames
from scrapeyard.results.manifests import write_manifests
from scrapeyard.results.sharing import Reader, shared
from scrapeyard.results.snapshots import Snapshots
from scrapeyard.store.export_port import SnapshotStore
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
        self._snapshots = Snapshots(store, blobs)
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
        metadata = await write_manifests(self._store, self._blobs, job)
        counts = metadata.counts
        log.info(
            "results.finished", job=job.id, items=counts["total"], success=counts["success"], errors=counts["error"]
        )
        await self._snapshots.update(job)
        for wish in job.exports:
            export = Export(id=wished_id(job.id, wish), job_id=job.id, wish=wish, created_at=self._clock())
            await self._store.add_export(export)
        of_items = [wish for wish in job.exports if wish.type != "diff"]
        for first in range(0, len(of_items), AT_ONCE):
            await self._make(job, of_items[first : first + AT_ONCE])
        for wish in job.exports:
            if wish.type == "diff":
                await self._exporter.make(wished_id(job.id, wish))

    async def _leave_nothing_of_a_deleted(self, job_id: str) -> None:
        """Whoever deletes marks the job before its objects go, so what was written since is ours to remove."""
        job = await self._store.job(job_id)
        if job is None or job.deleting:
            await self._blobs.delete_prefix([keys.job_prefix(job_id)])

    async def _make(self, job: Job, wishes: Sequence[ExportWish]) -> None:
        """Several files from one reading of the items. Raises what went wrong first, when all have ended."""
        async with shared(counted_frames(self._store, self._blobs, job.id), len(wishes)) as readers:
            makings = (
                self._making(wished_id(job.id, wish), reader) for wish, reader in zip(wishes, readers, strict=True)
            )
            for ended in await asyncio.gather(*makings, return_exceptions=True):
                if ended is not None:
                    raise ended

    async def _making(self, export_id: str, items: Reader) -> None:
        try:
            await self._exporter.make(export_id, items)
        finally:
            items.close()


def wished_id(job_id: str, wish: ExportWish) -> str:
    """The id of an export that a job was created with: the same however often the job is finished."""
    return f"export_{job_id.removeprefix('job_')}-{wish.type}-{wish.format}"
