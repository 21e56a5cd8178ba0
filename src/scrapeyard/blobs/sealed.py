"""Blobs that are encrypted before they leave the process.

An object begins with a head: MAGIC, then a key of its own, which the platform's data key has sealed for this blob key.
Chunks of CHUNK bytes follow, each encrypted with AES-256-GCM under the object's key; the nonce is the chunk's number
and whether it is the last. So chunks cannot be cut off, swapped or moved to another object, and any range can be read.
A new master key changes nothing here: it wraps the data keys alone. Objects in clear are read as they are.
"""

import os
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final

from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import BlobsUnavailable, NotFound, SealBroken
from scrapeyard.sealing.sealer import KEY_BYTES, OVERHEAD, Sealer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC: Final = b"\x00syblob1"
"""Begins an encrypted object. Neither gzip, JSON, HTML nor text begins so."""
HEAD: Final = len(MAGIC) + KEY_BYTES + OVERHEAD
CHUNK: Final = 64 * 1024
_TAG: Final = 16
_WHOLE: Final = CHUNK + _TAG
_TYPE: Final = "application/octet-stream"


class SealedBlobs:
    """Blobs over another store. With `encrypts` new objects are encrypted; either way, encrypted ones are read."""

    def __init__(self, inner: Blobs, sealer: Sealer, *, encrypts: bool) -> None:
        self._inner = inner
        self._sealer = sealer
        self._encrypts = encrypts

    async def put(self, key: str, data: bytes, content_type: str, content_encoding: str = "") -> None:
        """Write an object atomically: a reader sees all of it or nothing. Replaces an existing one."""
        if not self._encrypts:
            await self._inner.put(key, data, content_type, content_encoding)
            return
        head, cipher = self._new_head(key)
        last = max(0, len(data) - 1) // CHUNK
        chunks = [
            cipher.encrypt(_nonce(n, n == last), data[n * CHUNK : (n + 1) * CHUNK], None) for n in range(last + 1)
        ]
        await self._inner.put(key, b"".join([head, *chunks]), _TYPE)

    async def put_stream(
        self, key: str, pieces: AsyncIterator[bytes], content_type: str, content_encoding: str = ""
    ) -> int:
        """Write an object from chunks; returns its size in bytes, before encryption."""
        if not self._encrypts:
            return await self._inner.put_stream(key, pieces, content_type, content_encoding)
        size = 0

        async def counted() -> AsyncIterator[bytes]:
            nonlocal size
            async for piece in pieces:
                size += len(piece)
                yield piece

        await self._inner.put_stream(key, self._encrypted(key, counted()), _TYPE)
        return size

    async def size(self, key: str) -> int | None:
        """Size in bytes, decrypted; None if there is no such object."""
        stored = await self._inner.size(key)
        if stored is None or stored < HEAD or await self._head(key) is None:
            return stored
        return _plain_size(stored)

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the object, or a part of it, decrypted. Raises NotFound on the first chunk if there is none, and
        BlobsUnavailable if the object was changed, cut off or moved."""
        return self._whole(key) if start == 0 and end is None else self._part(key, start, end)

    async def get(self, key: str) -> bytes:
        """The whole object; for small ones. Raises NotFound."""
        data = await self._inner.get(key)
        return b"".join([piece async for piece in self._decrypted(key, _once(data))]) if _is_sealed(data) else data

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove these objects. Missing ones are no error."""
        await self._inner.delete(keys)

    async def delete_prefix(self, prefixes: Sequence[str]) -> None:
        """Remove every object under each of these prefixes."""
        await self._inner.delete_prefix(prefixes)

    async def folders(self, prefix: str) -> list[str]:
        """Names of the folders right below a prefix, in order."""
        return await self._inner.folders(prefix)

    async def ping(self) -> float:
        """Write, read and remove a small object; returns milliseconds."""
        return await self._inner.ping()

    def _new_head(self, key: str) -> "tuple[bytes, AESGCM]":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - loads slowly

        if not self._sealer.has_keys:
            raise BlobsUnavailable("blobs.encrypt is on, and this process has no data key; start it with the database")
        secret = os.urandom(KEY_BYTES)
        return MAGIC + self._sealer.seal(secret, f"blobs/{key}"), AESGCM(secret)

    def _cipher(self, key: str, head: bytes) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

        try:
            return AESGCM(self._sealer.open(head[len(MAGIC) :], f"blobs/{key}"))
        except (SealBroken, ValueError):
            raise _damaged(key) from None

    async def _head(self, key: str) -> bytes | None:
        """The head of an encrypted object; None if it is in clear."""
        head = b"".join([piece async for piece in self._inner.stream(key, 0, HEAD)])
        return head if _is_sealed(head) else None

    async def _encrypted(self, key: str, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        head, cipher = self._new_head(key)
        yield head
        held, number = bytearray(), 0
        async for piece in pieces:
            held += piece
            while len(held) > CHUNK:  # the last chunk is known at the end alone
                yield cipher.encrypt(_nonce(number, False), bytes(held[:CHUNK]), None)
                del held[:CHUNK]
                number += 1
        yield cipher.encrypt(_nonce(number, True), bytes(held), None)

    async def _whole(self, key: str) -> AsyncIterator[bytes]:
        pieces = self._inner.stream(key)
        first = await anext(pieces, b"")
        while 0 < len(first) < HEAD and (more := await anext(pieces, b"")):
            first += more
        chained = _chain(first, pieces)
        async for piece in self._decrypted(key, chained) if _is_sealed(first) else chained:
            yield piece

    async def _decrypted(self, key: str, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        held, number = bytearray(), 0
        cipher: AESGCM | None = None
        async for piece in pieces:
            held += piece
            if cipher is None and len(held) >= HEAD:
                cipher = self._cipher(key, bytes(held[:HEAD]))
                del held[:HEAD]
            while cipher is not None and len(held) > _WHOLE:
                yield _opened(cipher, key, number, bytes(held[:_WHOLE]), is_last=False)
                del held[:_WHOLE]
                number += 1
        if cipher is None:
            raise _damaged(key)
        if last := _opened(cipher, key, number, bytes(held), is_last=True):
            yield last

    async def _part(self, key: str, start: int, end: int | None) -> AsyncIterator[bytes]:
        stored = await self._inner.size(key)
        if stored is None:
            raise NotFound(f"no blob {key}")
        head = await self._head(key) if stored >= HEAD else None
        if head is None:
            async for piece in self._inner.stream(key, start, end):
                yield piece
            return
        size = _plain_size(stored)
        until = size if end is None else min(end, size)
        if start < until:
            async for piece in self._chunks(key, self._cipher(key, head), stored, start, until):
                yield piece

    async def _chunks(self, key: str, cipher: "AESGCM", stored: int, start: int, until: int) -> AsyncIterator[bytes]:
        """Bytes of a range: whole chunks are read, and what lies before and after it is cut off."""
        number, last = start // CHUNK, (until - 1) // CHUNK
        final = max(0, _plain_size(stored) - 1) // CHUNK
        held = bytearray()
        async for piece in self._inner.stream(key, HEAD + number * _WHOLE, min(stored, HEAD + (last + 1) * _WHOLE)):
            held += piece
            while len(held) >= _WHOLE or (number == final and len(held) == stored - HEAD - final * _WHOLE):
                plain = _opened(cipher, key, number, bytes(held[:_WHOLE]), is_last=number == final)
                del held[:_WHOLE]
                first = number * CHUNK
                yield plain[max(0, start - first) : until - first]
                number += 1
        if number <= last:
            raise _damaged(key)


def _plain_size(stored: int) -> int:
    body = stored - HEAD
    return body - _TAG * -(-body // _WHOLE)


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


def _opened(cipher: "AESGCM", key: str, number: int, chunk: bytes, *, is_last: bool) -> bytes:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - loads slowly

    try:
        return cipher.decrypt(_nonce(number, is_last), chunk, None)
    except (InvalidTag, ValueError):
        raise _damaged(key) from None


def _damaged(key: str) -> BlobsUnavailable:
    return BlobsUnavailable(f"blob {key} was changed, cut off or moved, or its data key is missing; make it again")


def _is_sealed(data: bytes) -> bool:
    return data.startswith(MAGIC)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in rest:
        yield piece
