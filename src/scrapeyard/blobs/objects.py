"""Blobs in an object store, by obstore: a local folder, S3 and its kin."""

import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore

from scrapeyard.errors import BadRequest, BlobsUnavailable, NotFound

_KEY: Final = re.compile(r"(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
"""Plain segments; none is `.` or `..`."""
_MAX_KEY: Final = 1024
_PIECE: Final = 256 * 1024
_PARTS_AT_ONCE: Final = 2
_PROBES: Final = "probes/"


class ObjectBlobs:
    """Blobs over any obstore store. Keys are letters, digits, `.`, `_`, `-` and `/`; any other raises BadRequest.

    `content_types` says whether the store keeps them; a folder does not, and then they are dropped here: whoever needs
    one keeps it with the key.
    """

    def __init__(self, store: ObjectStore, *, content_types: bool) -> None:
        self._store = store
        self._content_types = content_types

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """Blobs in a folder, which is made when it is not there. Raises BlobsUnavailable when it cannot be."""
        with _translated(""):
            return cls(LocalStore(folder, automatic_cleanup=True, mkdir=True), content_types=False)

    async def put(self, key: str, data: bytes, content_type: str) -> None:
        """Write an object whole: a reader sees all of it or nothing. An existing one is replaced."""
        attributes = {"Content-Type": content_type} if self._content_types else None
        with _translated(key):
            await obstore.put_async(self._store, _checked(key), data, attributes=attributes, use_multipart=False)

    async def put_stream(self, key: str, pieces: AsyncIterator[bytes], content_type: str) -> int:
        """Write an object from pieces, some 10 MB of them in memory at once; how many bytes it has."""
        attributes = {"Content-Type": content_type} if self._content_types else None
        size = 0

        async def counted() -> AsyncIterator[bytes]:
            nonlocal size
            async for piece in pieces:
                size += len(piece)
                yield piece

        with _translated(key):
            await obstore.put_async(
                self._store, _checked(key), counted(), attributes=attributes, max_concurrency=_PARTS_AT_ONCE
            )
        return size

    async def size(self, key: str) -> int | None:
        """Bytes, or None when there is no such object."""
        try:
            with _translated(key):
                return int((await obstore.head_async(self._store, _checked(key)))["size"])
        except NotFound:
            return None

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """The object in pieces of some 256 KB. Raises NotFound on the first piece when there is none."""
        with _translated(key):
            found = await obstore.get_async(self._store, _checked(key))
            async for piece in found.stream(min_chunk_size=_PIECE):
                yield bytes(piece)

    async def get(self, key: str) -> bytes:
        """The whole object; for small ones. Raises NotFound."""
        with _translated(key):
            found = await obstore.get_async(self._store, _checked(key))
            return bytes(await found.bytes_async())

    async def delete_prefix(self, prefixes: Sequence[str]) -> None:
        """Remove every object under each of these prefixes, which end at a `/`. One without objects is no error."""
        for prefix in prefixes:
            with _translated(prefix):
                await self._delete_under(_checked(prefix.removesuffix("/")) + "/")

    async def ping(self) -> float:
        """Write, read and remove a small object; milliseconds."""
        key, began = f"{_PROBES}{secrets.token_hex(8)}", time.perf_counter()
        await self.put(key, b"ping", "text/plain")
        if await self.get(key) != b"ping":
            raise BlobsUnavailable("the blob store returned other bytes than were written; check what stands behind it")
        with _translated(key):
            await obstore.delete_async(self._store, key)
        return (time.perf_counter() - began) * 1000

    async def _delete_under(self, prefix: str) -> None:
        async for found in obstore.list(self._store, prefix=prefix):
            await obstore.delete_async(self._store, [meta["path"] for meta in found])


def _checked(key: str) -> str:
    if len(key) > _MAX_KEY or not _KEY.fullmatch(key):
        raise BadRequest(f"{key[:100]!r} is not a blob key")
    return key


@contextmanager
def _translated(key: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"no blob {key}") from None
    except (BaseError, OSError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise BlobsUnavailable(f"the blob store does not answer ({reason}); check the data directory") from error
