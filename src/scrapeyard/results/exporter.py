"""Writes the exports of jobs: claims one under a lease, streams it to the blob store, records the outcome.

The process may be killed at any moment: the lease ends, another process starts over, and the same rows give the same
bytes under the same key.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import ExportFailed, ScrapeyardError, Unavailable
from scrapeyard.model import new_id
from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import ExportWish, Job
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.results.comparison import compared_rows
from scrapeyard.results.exports import protocol
from scrapeyard.results.exports.process import file_process
from scrapeyard.results.exports.protocol import ExportProgress, Task, Written
from scrapeyard.results.feeding import (
    Counted,
    Fed,
    ItemReader,
    change_frames,
    counted_frames,
    item_blocks,
    item_frames,
    masked_frames,
)
from scrapeyard.results.masking import Masker, Masking
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("results")
LEASE_SECONDS: Final = 30.0
RENEW_SECONDS: Final = 1.0
"""Between two updates of the progress."""
MOST_ATTEMPTS: Final = 5
AT_ONCE: Final = 1
_REST_SECONDS: Final = 5.0
"""Pause after a service was away."""
_LOOK_SECONDS: Final = 0.5
CONTENT_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


class Exporter:
    """A MaintenanceTask. Exports are written in the background, one at a time. `stop` returns the one under way to the
    queue."""

    name = "exports"
    waits_after_outage = False

    def __init__(self, store: Store, blobs: Blobs, clock: Callable[[], float], masking: Masking | None = None) -> None:
        """`masking` masks personal data where policies ask for it; None: nothing is masked."""
        self._store = store
        self._masking = masking
        self._blobs = blobs
        self._clock = clock
        self._holder = new_id("exporter")
        self._tasks = Background()
        self._not_before = 0.0

    async def start(self) -> None:
        """Nothing to do: `run_once` starts exports."""

    async def run_once(self) -> None:
        """Run one round: start the oldest waiting export in the background, if there is room."""
        if self._clock() < self._not_before:
            return
        if len(self._tasks) < AT_ONCE and (export := await self._claim(None)) is not None:
            self._tasks.spawn(self._run_alone(export), name=f"export {export.id}")

    async def stop(self) -> None:
        """Return the export under way to the queue. May be called twice."""
        await self._tasks.stop()

    async def idle(self) -> None:
        """Wait until no export is being written."""
        await self._tasks.idle()

    async def make(self, export_id: str, items: ItemReader[Counted] | None = None) -> Export | None:
        """Write this export, or wait until another process has. None if there is no such export. Raises Unavailable.

        `items` is a shared reader of the job's items; it is closed here as soon as it is not needed.
        """
        while (export := await self._store.exports.get(export_id)) is not None and not export.state.is_final:
            claimed = await self._claim(export_id)
            if claimed is None:
                if items is not None:
                    items.close()
                await asyncio.sleep(_LOOK_SECONDS)
                continue
            if (await self._run(claimed, items)).state is ExportState.QUEUED:
                raise Unavailable("an export waits for a service that is away, or another took it over")
        return export

    async def _claim(self, export_id: str | None) -> Export | None:
        now = self._clock()
        return await self._store.exports.claim(export_id, self._holder, now, now + LEASE_SECONDS)

    async def _run_alone(self, export: Export) -> None:
        try:
            await self._run(export)
        except Unavailable as error:  # the store is away: its lease expires
            log.warning("results.export_waits", export=export.id, job=export.job_id, error=error.message)

    async def _run(self, export: Export, items: ItemReader[Counted] | None = None) -> Export:
        """Write it and record how that ended: DONE, FAILED, or QUEUED again if a service was away."""
        try:
            ended = await self._made(export, items)
        except asyncio.CancelledError:
            await asyncio.shield(self._store.exports.end(_given_back(export)))
            raise
        except Unavailable as error:
            log.warning("results.export_waits", export=export.id, job=export.job_id, error=error.message)
            self._not_before = self._clock() + _REST_SECONDS
            ended = _given_back(export)
        except ScrapeyardError as error:
            ended = self._failed(export, error.message)
        except Exception as error:
            log.error("results.export_broken", export=export.id, job=export.job_id, error=repr(error), exc_info=error)
            ended = self._failed(export, f"a fault of ours: {error!r}")
        finally:
            if items is not None:
                items.close()
        if await self._store.exports.end(ended) and ended.state.is_final:
            await self._told(ended)
        return ended

    async def _made(self, export: Export, items: ItemReader[Counted] | None) -> Export:
        if export.attempt > MOST_ATTEMPTS:
            raise ExportFailed(
                f"it was begun {MOST_ATTEMPTS} times and never ended; look at the logs, then ask for it anew"
            )
        job = await self._with_items(export.job_id)
        watch = _Watch(export.wish, job.counts.total)
        async with self._kept(export, watch):
            written = await self._write(export, job, watch, items)
        await self._with_items(export.job_id)
        return replace(
            export,
            state=ExportState.DONE,
            progress=1.0,
            rows=written.rows,
            bytes=written.bytes,
            digest=written.digest,
            key=_key(export),
            notes=written.notes,
            finished_at=self._clock(),
        )

    async def _write(self, export: Export, job: Job, watch: "_Watch", items: ItemReader[Counted] | None) -> Written:
        if export.wish.against:
            frames = self._comparison(export.wish.against, job, watch.fed)
        elif export.wish.type == "diff":
            frames = change_frames(self._blobs, export.job_id, watch.fed)
        elif items is not None and items.open:
            frames = item_frames(items, watch.fed)
        else:
            blocks = item_blocks(self._store.items, export.job_id)
            frames = item_frames(counted_frames(blocks, self._blobs), watch.fed)
        masker = None if self._masking is None else self._masking.of(job.policy.fetching)
        if masker is not None and masker.masks_exports:
            frames = masked_frames(frames, masker)
        async with file_process(watch.told) as file:
            pieces = file.pieces(Task(wish=export.wish, notes=notes_of(job)), frames)
            size = await self._blobs.put_stream(_key(export), pieces, CONTENT_TYPES[export.wish.format])
            if file.written is None or file.written.bytes != size:
                raise ExportFailed("the file did not arrive whole in the blob store; ask for it anew")
            return file.written if masker is None else _with_counts(file.written, masker)

    async def _comparison(self, against: str, job: Job, fed: Fed) -> AsyncIterator[bytes]:
        earlier = await self._with_items(against)
        async for rows in compared_rows(self._store.items, self._blobs, earlier, job):
            yield protocol.frame(protocol.ROWS, protocol.encode(rows))
            fed(len(rows))
        await self._with_items(against)

    async def _with_items(self, job_id: str) -> Job:
        """A job whose items are there. Asked before they are read and after: an archive may take them meanwhile."""
        job = await self._store.jobs.get(job_id)
        if job is None:
            raise ExportFailed(f"the job {job_id} is gone")
        if job.archive:
            raise ExportFailed(f"the job {job_id} is {job.archive}; restore it, then ask for the export anew")
        return job

    @asynccontextmanager
    async def _kept(self, export: Export, watch: "_Watch") -> AsyncIterator[None]:
        """Renew the lease during the block; abort the block with Unavailable if the lease is lost."""
        lost = asyncio.timeout(None)

        async def renew() -> None:
            until = export.lease_until or 0.0
            while True:
                await asyncio.sleep(RENEW_SECONDS)
                try:
                    now = self._clock()
                    held = await self._store.exports.renew(watch.shown(export, now + LEASE_SECONDS))
                    until = now + LEASE_SECONDS
                except Unavailable:
                    held = self._clock() < until
                if not held:
                    lost.reschedule(0)
                    return

        renewing = asyncio.create_task(renew())
        try:
            async with lost:
                yield
        except TimeoutError:
            if not lost.expired():
                raise
            log.warning("results.export_lost", export=export.id, job=export.job_id)
            raise Unavailable("another makes it now") from None
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    def _failed(self, export: Export, why: str) -> Export:
        return replace(export, state=ExportState.FAILED, error=why[:2000] or "unknown", finished_at=self._clock())

    async def _told(self, export: Export) -> None:
        facts = {"export": export.id, "job": export.job_id}
        if export.state is ExportState.DONE:
            wish = export.wish
            log.info(
                "results.export_done", **facts, type=wish.type, format=wish.format, rows=export.rows, bytes=export.bytes
            )
        else:
            log.warning("results.export_failed", **facts, error=export.error)
        await self._store.events.add(export.job_id, JobEventKind.EXPORT, msgspec.Raw(_event(export)), self._clock())


class _Watch:
    """Progress of one export."""

    def __init__(self, wish: ExportWish, total: int) -> None:
        is_table = wish.format not in ("json", "jsonl")
        self._spooled = wish.type in ("links", "pages") or (wish.type == "records" and is_table)
        self._total = max(total, 1)
        self._fed = 0
        self._told = ExportProgress()

    def fed(self, items: int) -> None:
        self._fed += items

    def told(self, told: ExportProgress) -> None:
        self._told = told

    def shown(self, export: Export, lease_until: float) -> Export:
        read = min(1.0, self._fed / self._total)
        progress = (read + self._told.share) / 2 if self._spooled else read
        return replace(export, progress=progress, rows=self._told.rows, lease_until=lease_until)


def notes_of(job: Job) -> tuple[str, ...]:
    """What readers of a job's files must know."""
    cancelled = ("the job was cancelled before it had read every page",) if job.counts.cancelled else ()
    return (*cancelled, *_answers(job), *job.warnings)


def _answers(job: Job) -> tuple[str, ...]:
    """How many pages answered with each status, if some answered with an error. Not while items still end."""
    if job.counts.done < job.counts.total or not any(status >= 400 for status in job.http_statuses):
        return ()
    counts = (f"{status}: {count:,}" for status, count in sorted(job.http_statuses.items()))
    return (f"HTTP statuses of the pages: {', '.join(counts)}",)


def _key(export: Export) -> str:
    return keys.export(export.job_id, export.id, f"{export.wish.type}.{export.wish.format}")


def _with_counts(written: Written, masker: Masker) -> Written:
    """With a note that says what was masked."""
    found = ", ".join(f"{kind} {count}" for kind, count in sorted(masker.found.items()))
    return replace(written, notes=(*written.notes, f"masked: {found}")) if found else written


def _given_back(export: Export) -> Export:
    return replace(export, state=ExportState.QUEUED, progress=0.0, rows=0)


def _event(export: Export) -> bytes:
    return msgspec.json.encode(
        {
            "id": export.id,
            "type": export.wish.type,
            "format": export.wish.format,
            "state": export.state.value,
            "rows": export.rows,
            "bytes": export.bytes,
            "error": export.error,
            "notes": export.notes,
        }
    )
