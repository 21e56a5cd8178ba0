"""Files written when all items of a job have ended: manifests, snapshots, the exports it was created with."""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, closing
from itertools import takewhile
from typing import Final

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.model.export import Export
from scrapeyard.model.job import ExportWish, Item, Job, JobStatus
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.feeding import Block, Counted, FrameSpool, ItemReader, counted_frames, item_blocks, shared
from scrapeyard.results.manifests import KINDS, ManifestWriter
from scrapeyard.results.running_manifests import RunningManifests
from scrapeyard.results.snapshots import SnapshotComparer
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("results")
_OURS: Final = re.compile(r"job_[0-9a-f]{32}")
AT_ONCE: Final = 3
"""Files of one job written concurrently, each by its own process."""
_MOST_SPOOLED: Final = 512 * 1024**2
"""Bytes of compressed frames above which the other items are read when the job has ended."""


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

    def begin(self, job: Job) -> "BegunFiles":
        """The files of a job that still runs, before its first item."""
        return BegunFiles(self._store, self._blobs, job)

    async def finish(self, job: Job, begun: "BegunFiles | None" = None) -> None:
        """Write everything. If an export fails, its error is recorded and the job is finished without it. A cancelled
        job may be deleted meanwhile: then its files are removed, unless this process is killed first.

        `begun` has the job's first items already; it can be used once, and only if it `holds_for` the job. Raises
        Unavailable if the store or the blobs are away: call again.
        """
        try:
            with closing(begun or self.begin(job)) as files:
                await self._write(job, files)
        finally:
            await self.leave_nothing_of_a_deleted(job.id)

    async def _write(self, job: Job, begun: "BegunFiles") -> None:
        of_items = [wish for wish in job.exports if wish.type != "diff"]
        await self._wish(job, of_items)
        async with shared(begun.rest(), 2) as (blocks, for_files):
            await _all_of(self._manifests(job, begun, blocks), self._files(job, of_items[:AT_ONCE], begun, for_files))
        for first in range(AT_ONCE, len(of_items), AT_ONCE):
            async with shared(begun.rest(), 1) as (blocks,):
                await self._files(job, of_items[first : first + AT_ONCE], begun, blocks)
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

    async def leave_nothing_of_a_deleted(self, job_id: str) -> None:
        """A job is marked before its objects are deleted, so anything written since must be removed here."""
        job = await self._store.jobs.get(job_id)
        if job is None or job.deleting:
            await self._blobs.delete_prefix([keys.job_prefix(job_id)])

    async def _manifests(self, job: Job, begun: "BegunFiles", blocks: ItemReader[Block]) -> None:
        with closing(blocks):
            if self._running is not None:
                await self._running.leave()
            async for block in blocks:
                await begun.manifests.add(block)
            counts = (await begun.manifests.finish(job)).counts
        log.info(
            "results.finished", job=job.id, items=counts["total"], success=counts["success"], errors=counts["error"]
        )

    async def _files(
        self, job: Job, wishes: Sequence[ExportWish], begun: "BegunFiles", blocks: ItemReader[Block]
    ) -> None:
        """Write several files from one pass over the items."""
        with closing(blocks):
            if not wishes:
                return
            async with shared(begun.frames(blocks), len(wishes)) as readers:
                await _all_of(*map(self._file, [wished_id(job.id, wish) for wish in wishes], readers))

    async def _file(self, export_id: str, items: ItemReader[Counted]) -> None:
        with closing(items):
            await self._exporter.make(export_id, items)


class BegunFiles:
    """The first items of a job, taken into its manifests and into frames for its exports. Useless after an exception.

    An item that has ended changes only by a redrive or after its job has ended, so what was taken stays true until the
    job is finished, unless its number of redrives has changed.
    """

    def __init__(self, store: Store, blobs: Blobs, job: Job) -> None:
        self._store = store
        self._blobs = blobs
        self._job_id = job.id
        self._redrives = job.redrives
        self._has_files = any(wish.type != "diff" for wish in job.exports)
        self._spool = FrameSpool()
        self.next = 0
        """Every item with a smaller number is taken."""
        self.manifests = ManifestWriter(blobs, job.id)

    def holds_for(self, job: Job) -> bool:
        """Whether what was taken is what `job`, as it is now, has in its files."""
        return job.status is JobStatus.FINISHING and job.redrives == self._redrives

    def close(self) -> None:
        """Forget what was taken. May be called twice."""
        self._spool.close()

    async def advance(self) -> int:
        """Take the items that have ended, up to the first that has not; returns how many. Raises ExportFailed if the
        object of a result is missing, Unavailable, OSError."""
        before = self.next
        async with aclosing(item_blocks(self._store.items, self._job_id, self.next)) as blocks:
            async for block in blocks:
                ended = list(takewhile(_has_ended, block))
                if ended:
                    await self._take(ended)
                if len(ended) < len(block) or self._spool.size > _MOST_SPOOLED:
                    break
        return self.next - before

    def rest(self) -> AsyncGenerator[Block, None]:
        """The items that are not taken yet."""
        return item_blocks(self._store.items, self._job_id, self.next)

    async def frames(self, rest: AsyncIterator[Block]) -> AsyncGenerator[Counted, None]:
        """Yield the frames of all items, of which `rest` are those that are not taken yet."""
        async for counted in self._spool.frames():
            yield counted
        async for counted in counted_frames(rest, self._blobs):
            yield counted

    async def _take(self, ended: Block) -> None:
        await self.manifests.add(ended)
        if self._has_files:
            async for frame, items in counted_frames(_once(ended), self._blobs):
                self._spool.add(frame, items)
        self.next = ended[-1].seq + 1


def _has_ended(item: Item) -> bool:
    return item.status in KINDS


async def _once(block: Block) -> AsyncIterator[Block]:
    yield block


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
