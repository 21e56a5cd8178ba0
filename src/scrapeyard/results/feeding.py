"""Reads a job's items once for several files, as frames for the processes that write them."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from scrapeyard import zstd
from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import ExportFailed, NotFound
from scrapeyard.framed_process import HEAD
from scrapeyard.model.job import Item
from scrapeyard.results import artifacts
from scrapeyard.results.changes import ChangesMetadata
from scrapeyard.results.exports import protocol
from scrapeyard.results.exports.protocol import Line, line_of
from scrapeyard.results.masking import Masker
from scrapeyard.store.ports.jobs import ItemFilter, ItemStore

_ITEMS: Final = 250
"""Items per frame: encoding one must not block the event loop."""
_BYTES: Final = 16 * 1024 * 1024
"""Bytes of results read from objects at once; a single one may be larger."""
_READS: Final = 16

Fed = Callable[[int], None]
"""Called with the number of items each time some were passed on."""
Block = Sequence[Item]
Counted = tuple[bytes, int]
"""A frame, and how many items it holds."""


def item_blocks(items: ItemStore, job_id: str, first: int = 0) -> AsyncGenerator[Block, None]:
    """All items of a job from this number on, in order."""
    return items.stream(job_id, ItemFilter(first=first))


async def counted_frames(blocks: AsyncIterator[Block], blobs: Blobs) -> AsyncGenerator[Counted, None]:
    """Yield frames of those items. Raises ExportFailed if an object is missing."""
    async for block in blocks:
        for group in _groups(block):
            yield protocol.frame(protocol.LINES, protocol.encode(await lines_of(blobs, group))), len(group)


class FrameSpool:
    """Frames of a job's first items, compressed in an anonymous file, which vanishes with the process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this does
        self._parts: list[tuple[int, int]] = []
        self.size = 0

    def add(self, frame: bytes, items: int) -> None:
        """Add a frame. Raises OSError if the disk is full."""
        packed = zstd.compress(frame, 1)
        self._file.write(packed)
        self._parts.append((len(packed), items))
        self.size += len(packed)

    def close(self) -> None:
        """Forget all of them. May be called twice."""
        self._file.close()

    async def frames(self) -> AsyncGenerator[Counted, None]:
        """Yield all of them, in order. May be called again."""
        self._file.flush()
        place = 0
        for size, items in self._parts:
            yield zstd.decompress(os.pread(self._file.fileno(), size, place)), items
            place += size


async def item_frames(counted: AsyncIterator[Counted], fed: Fed) -> AsyncIterator[bytes]:
    """Yield the frames alone; `fed` is called after each was passed on."""
    async for frame, items in counted:
        yield frame
        fed(items)


async def masked_frames(frames: AsyncIterator[bytes], masker: Masker) -> AsyncIterator[bytes]:
    """The same frames with personal data masked, in a thread: keys of items stay as they are."""
    async for frame in frames:
        yield await asyncio.to_thread(_masked, frame, masker)


def _masked(frame: bytes, masker: Masker) -> bytes:
    letter, body = frame[HEAD - 1 : HEAD], frame[HEAD:]
    if letter == protocol.LINES:
        masked: object = [_masked_line(line, masker) for line in protocol.decode_lines(body)]
    else:
        masked = masker.value(protocol.decode_rows(body))
    return protocol.frame(letter, protocol.encode(masked))


def _masked_line(line: Line, masker: Masker) -> Line:
    return replace(
        line,
        input=masker.json(line.input),
        result=masker.json(line.result) if line.result else b"",
        error=masker.text(line.error),
        referrer=masker.text(line.referrer),
    )


async def change_frames(blobs: Blobs, job_id: str, fed: Fed) -> AsyncIterator[bytes]:
    """Yield the changes a job found, in order. Raises ExportFailed if it was not compared with an earlier crawl."""
    try:
        metadata = msgspec.json.decode(await artifacts.read(blobs, keys.changes_metadata(job_id)), type=ChangesMetadata)
    except NotFound:
        raise ExportFailed(
            "the job's pages were not compared with an earlier crawl; give it policy.snapshots, or wish for the diff "
            "when it is created"
        ) from None
    for part in range(1, metadata.parts + 1):
        rows = msgspec.json.decode(await artifacts.read(blobs, keys.changes(job_id, part)), type=list[list[object]])
        yield protocol.frame(protocol.ROWS, protocol.encode(rows))
        fed(len(rows))


async def results_of(blobs: Blobs, items: Sequence[Item]) -> list[bytes | None]:
    """The results stored as objects, each read whole; None for the others."""
    room = asyncio.Semaphore(_READS)

    async def read(item: Item) -> bytes | None:
        if not item.result_key or item.partial:
            return None
        async with room:
            return await artifacts.read(blobs, item.result_key)

    if not any(item.result_key for item in items):
        return [None] * len(items)
    return await asyncio.gather(*(read(item) for item in items))


async def lines_of(blobs: Blobs, items: Sequence[Item]) -> list[Line]:
    """The items as exports show them. Raises ExportFailed if the object of a result is missing."""
    try:
        results = await results_of(blobs, items)
    except NotFound as error:
        raise ExportFailed(f"the result of an item is missing: {error.message}; run the item again") from None
    return [line_of(item, result) for item, result in zip(items, results, strict=True)]


def _groups(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    first = size = 0
    for place, item in enumerate(items):
        size += item.result_bytes if item.result_key else 0
        if place > first and (place - first >= _ITEMS or size > _BYTES):
            yield items[first:place]
            first, size = place, item.result_bytes if item.result_key else 0
    if items:
        yield items[first:]


Read = TypeVar("Read")

_AHEAD: Final = 1
"""Values buffered per reader. All readers advance at the pace of the slowest."""


class ItemReader(AsyncIterator[Read], Generic[Read]):
    """The values for one file. A reader that stops early must close it, since the others wait for it."""

    def __init__(self) -> None:
        self.open = True
        self._waiting: asyncio.Queue[Read | Exception | None] = asyncio.Queue(_AHEAD)

    def close(self) -> None:
        """Accept no more values. May be called twice."""
        self.open = False
        while not self._waiting.empty():
            self._waiting.get_nowait()

    async def give(self, given: Read | Exception | None) -> None:
        """Pass on the next value, an exception, or None at the end. Waits until there is room."""
        if self.open:
            await self._waiting.put(given)

    async def __anext__(self) -> Read:
        found = await self._waiting.get()
        if found is None:
            raise StopAsyncIteration
        if isinstance(found, Exception):
            raise found
        return found


@asynccontextmanager
async def shared(source: AsyncGenerator[Read, None], readers: int) -> AsyncIterator[list[ItemReader[Read]]]:
    """Share one source between several readers, for the duration of the block."""
    made: list[ItemReader[Read]] = [ItemReader() for _ in range(readers)]
    handing = asyncio.create_task(_hand_out(source, made))
    try:
        yield made
    finally:
        handing.cancel()
        await asyncio.gather(handing, return_exceptions=True)


async def _hand_out(source: AsyncGenerator[Read, None], readers: list[ItemReader[Read]]) -> None:
    end: Exception | None = None
    try:
        async with aclosing(source) as given:
            async for one in given:
                for reader in readers:
                    await reader.give(one)
    except Exception as error:  # noqa: BLE001 - each reader raises it
        end = error
    for reader in readers:
        await reader.give(end)
