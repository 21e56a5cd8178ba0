"""Stores what items leave behind, under the key layout, compressed where it pays.

An object that starts with gzip's magic bytes was always compressed here: data that itself starts with them is
compressed once more. So a reader needs only the object, even from a folder, which stores no headers; a bucket also has
`Content-Encoding: gzip` for other readers.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Final, Literal

from msgspec import Struct

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import BlobsUnavailable
from scrapeyard.model.run import Artifact

COMPRESS_ABOVE: Final = 1024
"""Bytes."""
_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = 31
"""zlib's window bits for gzip, without name and time in the header, so that equal data gives equal bytes."""
_LEVEL: Final = 4
_IN_THREAD: Final = 64 * 1024
"""Larger data is compressed in a thread: it would block the event loop too long."""
_STEP: Final = 256 * 1024

Encoding = Literal["", "gzip"]


class Stored(Struct, frozen=True, kw_only=True):
    """A stored object: send it as it is with `Content-Encoding`, or through `decoded`."""

    encoding: Encoding
    pieces: AsyncIterator[bytes]


async def keep(  # noqa: PLR0917 - the parts of a key, in its order
    blobs: Blobs, job_id: str, item: str, name: str, data: bytes, content_type: str, *, script: bool = False
) -> Artifact:
    """Store bytes of an item. `name` is one of keys.ITEM_OBJECTS, or, with `script`, a name the script chose.

    Repeating it replaces the object. The returned `size` is before compression.
    """
    key = (keys.item_artifact if script else keys.item_object)(job_id, item, name)
    await put(blobs, key, data, content_type)
    return Artifact(name=name, content_type=content_type, size=len(data), key=key)


async def keep_stream(  # noqa: PLR0917
    blobs: Blobs, job_id: str, item: str, name: str, pieces: AsyncIterator[bytes], content_type: str
) -> Artifact:
    """Store what a script sends in chunks, never holding all of them. Exceptions from `pieces` propagate."""
    key = keys.item_artifact(job_id, item, name)
    size = 0

    async def counted() -> AsyncIterator[bytes]:
        nonlocal size
        async for piece in pieces:
            size += len(piece)
            yield piece

    source = counted()
    head = await _first(source, COMPRESS_ABOVE + 1)
    if len(head) <= COMPRESS_ABOVE:
        await put(blobs, key, head, content_type)
    else:
        await blobs.put_stream(key, _compressed(head, source), content_type, "gzip")
    return Artifact(name=name, content_type=content_type, size=size, key=key)


async def put(blobs: Blobs, key: str, data: bytes, content_type: str) -> int:
    """Write an object, compressed above COMPRESS_ABOVE; returns its stored size in bytes."""
    encoding: Encoding = ""
    if len(data) > COMPRESS_ABOVE or data.startswith(_MAGIC):
        data = await asyncio.to_thread(_gzip, data) if len(data) > _IN_THREAD else _gzip(data)
        encoding = "gzip"
    await blobs.put(key, data, content_type, encoding)
    return len(data)


async def read(blobs: Blobs, key: str) -> bytes:
    """The whole object, decompressed; for small ones. Raises NotFound."""
    return b"".join([piece async for piece in stream(blobs, key)])


async def stream(blobs: Blobs, key: str) -> AsyncIterator[bytes]:
    """Yield the object in chunks, decompressed. Raises NotFound on the first chunk if there is none."""
    stored = await opened(blobs, key)
    async for piece in decoded(stored):
        yield piece


async def opened(blobs: Blobs, key: str) -> Stored:
    """The object as stored. Raises NotFound."""
    pieces = blobs.stream(key)
    first = await anext(pieces, b"")
    while len(first) < len(_MAGIC) and (more := await anext(pieces, b"")):
        first += more
    return Stored(encoding="gzip" if first.startswith(_MAGIC) else "", pieces=_chain(first, pieces))


async def decoded(stored: Stored) -> AsyncIterator[bytes]:
    """Yield the decompressed chunks, each of at most 256 KB if they were compressed.

    Raises BlobsUnavailable if the object is damaged or truncated.
    """
    if not stored.encoding:
        async for piece in stored.pieces:
            yield piece
        return
    decoder = zlib.decompressobj(_GZIP)
    async for piece in stored.pieces:
        left = piece
        while left and not decoder.eof:
            yield _inflated(decoder, left)
            left = decoder.unconsumed_tail
    if not decoder.eof:
        raise BlobsUnavailable("the object is cut off in the blob store; remove it and make it again")


def _inflated(decoder: "zlib._Decompress", piece: bytes) -> bytes:
    try:
        return decoder.decompress(piece, _STEP)
    except zlib.error as error:
        raise BlobsUnavailable(f"the object is damaged in the blob store ({error}); make it again") from None


def _gzip(data: bytes) -> bytes:
    return zlib.compress(data, _LEVEL, _GZIP)


async def _compressed(head: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    encoder = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    async for piece in _chain(head, rest):
        if packed := await asyncio.to_thread(encoder.compress, piece):
            yield packed
    yield encoder.flush()


async def _first(pieces: AsyncIterator[bytes], size: int) -> bytes:
    head = b""
    while len(head) < size and (piece := await anext(pieces, b"")):
        head += piece
    return head


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in rest:
        yield piece
