"""Moves the items of ended jobs from the database into the blob store, and back.

The archive is written whole before the first row is removed, and checked whole before the first is put back. Each step
may be repeated: after a crash the job is still marked, and the step is done again.
"""

import struct
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec
from msgspec import Raw

from scrapeyard import zstd
from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import NotFound
from scrapeyard.model import new_id
from scrapeyard.model.job import ArchiveState, Job
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.settings import Settings
from scrapeyard.store.ports.archives import RowBlock
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")
EVERY_SECONDS: Final = 5.0
AT_ONCE: Final = 20
DAY: Final = 86_400.0
MAGIC: Final = b"scrapeyard-archive-1\n"
MAX_BLOCK: Final = 1 << 30
"""Maximum bytes of one block in an archive."""
_END: Final = struct.pack(">I", 0)
_blocks: Final = msgspec.msgpack.Decoder(RowBlock)


class DamagedArchive(Exception):
    """It breaks off, was changed, or is none."""


class Archiving:
    """Archives jobs that are old enough or marked, and restores those marked for it."""

    name = "archiving"
    waits_after_outage = False

    def __init__(self, settings: Settings, store: Store, blobs: Blobs, clock: Callable[[], float]) -> None:
        self._days = settings.retention.archive_days
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._next = 0.0

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._next:
            return
        if self._days is not None:
            for job_id in await self._store.archives.older(now - self._days * DAY, AT_ONCE):
                await self._store.archives.begin(job_id)
        for job in await self._store.archives.due(AT_ONCE):
            await (self._restore(job) if job.archive is ArchiveState.RESTORING else self._archive(job))
        self._next = self._clock() + EVERY_SECONDS

    async def _archive(self, job: Job) -> None:
        marked = job if job.archive is ArchiveState.REMOVING else await self._written(job)
        if marked is not None and await self._store.archives.remove_rows(marked):
            log.info("jobs.archived", job=job.id, items=job.counts.total)
            await self._tell(job, "archived")

    async def _written(self, job: Job) -> Job | None:
        """The job with its archive; None if another dispatcher was faster, whose archive then counts."""
        key = keys.archive(job.id, new_id("archive"))
        await self._blobs.put_stream(key, packed(self._store.archives.rows(job)), "application/zstd")
        marked = await self._store.archives.written(job, key)
        if marked is None:
            await self._blobs.delete([key])
        return marked

    async def _restore(self, job: Job) -> None:
        try:
            async for _ in unpacked(self._blobs.stream(job.archive_key)):
                pass
            async for block in unpacked(self._blobs.stream(job.archive_key)):
                await self._store.archives.add_rows(job, block)
        except (DamagedArchive, NotFound, ValueError) as error:
            log.error("jobs.archive_damaged", job=job.id, error=str(error))
            await self._store.archives.end_restore(job, False)
            await self._tell(job, "damaged")
            return
        if await self._store.archives.end_restore(job, True):
            await self._blobs.delete([job.archive_key])
            log.info("jobs.restored", job=job.id, items=job.counts.total)
            await self._tell(job, "restored")

    async def _tell(self, job: Job, state: str) -> None:
        await self._store.events.add(
            job.id, JobEventKind.ARCHIVE, Raw(msgspec.json.encode({"state": state})), self._clock()
        )


async def packed(blocks: AsyncIterator[RowBlock]) -> AsyncIterator[bytes]:
    """An archive, piece by piece, with a checksum: bytes that changed are noticed before a row is put back."""
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.checksum_flag: 1})
    yield compressor.compress(MAGIC)
    async for block in blocks:
        data = msgspec.msgpack.encode(block)
        yield compressor.compress(struct.pack(">I", len(data)) + data)
    yield compressor.compress(_END) + compressor.flush()


async def unpacked(pieces: AsyncIterator[bytes]) -> AsyncIterator[RowBlock]:
    """The blocks of an archive. Raises DamagedArchive."""
    decompressor, held, began, ended = zstd.ZstdDecompressor(), bytearray(), False, False
    async for piece in pieces:
        try:
            held += decompressor.decompress(piece)
        except (zstd.ZstdError, EOFError) as error:
            raise DamagedArchive(f"it cannot be decompressed: {error}") from None
        if not began and len(held) >= len(MAGIC):
            began = held.startswith(MAGIC)
            if not began:
                raise DamagedArchive("it does not begin as an archive")
            del held[: len(MAGIC)]
        while began and not ended and (data := _taken(held)) is not None:
            ended = not data
            if data:
                yield _block(data)
    if not ended:
        raise DamagedArchive("it breaks off")


def _taken(held: bytearray) -> bytes | None:
    """The next block, taken off; None if more must come first."""
    if len(held) < 4:
        return None
    (size,) = struct.unpack(">I", held[:4])
    if size > MAX_BLOCK:
        raise DamagedArchive(f"a block of {size} bytes")
    if len(held) < 4 + size:
        return None
    data = bytes(held[4 : 4 + size])
    del held[: 4 + size]
    return data


def _block(data: bytes) -> RowBlock:
    try:
        return _blocks.decode(data)
    except msgspec.MsgspecError as error:
        raise DamagedArchive(f"a block that cannot be read: {error}") from None
