"""What is written when the items of a job have all ended: manifests, snapshots, the exports it was created with."""

from collections.abc import Callable
from typing import Protocol

from scrapeyard.blobs.port import Blobs
from scrapeyard.model.export import Export
from scrapeyard.model.job import ExportWish, Job
from scrapeyard.results.exporter import Exporter, ResultStore
from scrapeyard.results.manifests import write_manifests
from scrapeyard.results.snapshots import Snapshots
from scrapeyard.store.export_port import SnapshotStore
from scrapeyard.telemetry.events import get_log

log = get_log("results")


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

        Raises Unavailable when the store or the blobs are away: call again.
        """
        metadata = await write_manifests(self._store, self._blobs, job)
        counts = metadata.counts
        log.info(
            "results.finished", job=job.id, items=counts["total"], success=counts["success"], errors=counts["error"]
        )
        await self._snapshots.update(job)
        for wish in job.exports:
            export = Export(id=wished_id(job.id, wish), job_id=job.id, wish=wish, created_at=self._clock())
            await self._store.add_export(export)
        for wish in job.exports:
            await self._exporter.make(wished_id(job.id, wish))


def wished_id(job_id: str, wish: ExportWish) -> str:
    """The id of an export that a job was created with: the same however often the job is finished."""
    return f"export_{job_id.removeprefix('job_')}-{wish.type}-{wish.format}"
