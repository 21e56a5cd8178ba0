"""Blobs in an object store, through obstore: a local folder or a bucket."""

import asyncio
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore

from scrapeyard.blobs.buckets import Bucket, open_bucket
from scrapeyard.errors import BadRequest, BlobsUnavailable, NotFound, refuses_certificate
from scrapeyard.settings import BlobSettings
from scrapeyard.telemetry.events import get_log

log = get_log("blobs")
if TYPE_CHECKING:
    from obstore import GetOptions

_KEY: Final = re.compile(r"(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*")
"""Plain segments; none is `.` or `..`."""
_MAX_KEY: Final = 1024
_PIECE: Final = 256 * 1024
_PARTS_AT_ONCE: Final = 2
_PROBES: Final = "probes/"
_FOLDER_REMEDY: Final = "check the data directory"
_UNTRUSTED: Final = "name the authority that signed it in blobs.ca_file; the endpoint must be a name of the certificate"
_BUCKET_REMEDY: Final = "check blobs.url, its endpoint and keys, and the server behind them"
_WINDOW: Final = 8 * 1024 * 1024
"""Bytes per request when reading large objects: each request must end in time, however slow the reader is."""
_RETRIES: Final = 3
_PATIENCE_SECONDS: Final = 20.0
"""For one request, and for all its retries: it is better to report early that the store is away."""


class ObjectBlobs:
    """Blobs over any obstore store. Keys are letters, digits, `.`, `_`, `-`, `~` and `/`; any other raises BadRequest.

    `content_types` says whether the store saves them. A folder does not, and they are dropped here: callers that need
    one must save it with the key. `window`: bytes read by one request; None to read all at once.
    """

    def __init__(
        self, store: ObjectStore, *, content_types: bool, remedy: str = _FOLDER_REMEDY, window: int | None = None
    ) -> None:
        self._store = store
        self._content_types = content_types
        self._remedy = remedy
        self._window = window
        self._folder: Path | None = None
        self._unwritable = False

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """Blobs in a folder, created if missing. Raises BlobsUnavailable if that fails."""
        with _translated("", _FOLDER_REMEDY):
            blobs = cls(LocalStore(folder, automatic_cleanup=True, mkdir=True), content_types=False)
            blobs._folder = folder
            return blobs

    @classmethod
    def in_bucket(cls, settings: BlobSettings) -> Self:
        """Blobs in the bucket of the settings. Does not contact the server yet."""
        bucket = Bucket(
            url=settings.url,
            endpoint=settings.endpoint,
            region=settings.region,
            access_key=settings.access_key.get_secret_value(),
            secret_key=settings.secret_key.get_secret_value(),
            ca_file=settings.ca_file,
        )
        store = open_bucket(bucket, timeout_seconds=_PATIENCE_SECONDS, retries=_RETRIES)
        return cls(store, content_types=True, remedy=_BUCKET_REMEDY, window=_WINDOW)

    async def put(self, key: str, data: bytes, content_type: str, content_encoding: str = "") -> None:
        """Write an object atomically: a reader sees all of it or nothing. Replaces an existing one."""
        attributes = self._attributes(content_type, content_encoding)
        with self._writing(key):
            put = obstore.put_async(self._store, _checked(key), data, attributes=attributes, use_multipart=False)
            await self._written(put)

    async def put_stream(
        self, key: str, pieces: AsyncIterator[bytes], content_type: str, content_encoding: str = ""
    ) -> int:
        """Write an object from chunks, holding about 10 MB in memory; returns its size in bytes."""
        attributes = self._attributes(content_type, content_encoding)
        asked = _Asked(pieces)
        try:
            with self._writing(key):
                put = obstore.put_async(
                    self._store, _checked(key), asked, attributes=attributes, max_concurrency=_PARTS_AT_ONCE
                )
                await self._written(put, asked.stop)
        finally:
            await asked.stop()
        return asked.size

    async def size(self, key: str) -> int | None:
        """Size in bytes; None if there is no such object."""
        try:
            with _translated(key, self._remedy):
                return int((await obstore.head_async(self._store, _checked(key)))["size"])
        except NotFound:
            return None

    async def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the object, or a part of it, in chunks of about 256 KB. Raises NotFound on the first if missing."""
        with _translated(key, self._remedy):
            if self._window is None:
                some: GetOptions | None = {"range": {"offset": start} if end is None else (start, end)}
                some = some if start or end is not None else None  # an empty object has no range
                found = await obstore.get_async(self._store, _checked(key), options=some)
                async for piece in found.stream(min_chunk_size=_PIECE):
                    yield bytes(piece)
                return
            meta = await obstore.head_async(self._store, _checked(key))
            until = meta["size"] if end is None else min(end, meta["size"])
            for first in range(start, until, self._window):
                last = min(first + self._window, until)
                options: GetOptions = {"range": (first, last), "if_match": meta["e_tag"]}
                found = await obstore.get_async(self._store, key, options=options)
                async for piece in found.stream(min_chunk_size=_PIECE):
                    yield bytes(piece)

    async def get(self, key: str) -> bytes:
        """The whole object; for small ones. Raises NotFound."""
        with _translated(key, self._remedy):
            found = await obstore.get_async(self._store, _checked(key))
            return bytes(await found.bytes_async())

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove these objects. Missing ones are no error."""
        if self._folder is None and len(keys) > 1:  # most buckets remove many by one request
            with suppress(NotFound), _translated(keys[0], self._remedy):
                await obstore.delete_async(self._store, [_checked(key) for key in keys])
                return
        for key in keys:
            with suppress(NotFound), _translated(key, self._remedy):
                await obstore.delete_async(self._store, _checked(key))

    async def delete_prefix(self, prefixes: Sequence[str]) -> None:
        """Remove every object under these prefixes, which end with `/`. A prefix without objects is no error."""
        for prefix in prefixes:
            with _translated(prefix, self._remedy):
                await self._delete_under(_checked(prefix.removesuffix("/")) + "/")

    async def folders(self, prefix: str) -> list[str]:
        """Names of the folders right below a prefix, in order."""
        with _translated(prefix, self._remedy):
            found = await obstore.list_with_delimiter_async(self._store, prefix or None)
        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in found["common_prefixes"])

    async def ping(self) -> float:
        """Write, read and remove a small object; returns milliseconds."""
        key, began = f"{_PROBES}{secrets.token_hex(8)}", time.perf_counter()
        await self.put(key, b"ping", "text/plain")
        if await self.get(key) != b"ping":
            raise BlobsUnavailable("the blob store returned other bytes than were written; check what stands behind it")
        with _translated(key, self._remedy):
            await obstore.delete_async(self._store, key)
        return (time.perf_counter() - began) * 1000

    async def _written(self, put: Awaitable[Any], on_cancel: Callable[[], Awaitable[None]] | None = None) -> None:
        """Await a put. In a folder a thread goes on writing when the caller is cancelled: wait for its end, so that no
        file appears later. The request to a bucket is given up."""
        task = asyncio.ensure_future(put)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if on_cancel is not None:
                await on_cancel()
            if self._folder is None:
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise

    @contextmanager
    def _writing(self, key: str) -> Iterator[None]:
        """Raises as `_translated`. Logs when writing begins to fail, and when it works again."""
        try:
            with _translated(key, self._remedy):
                yield
        except BlobsUnavailable as error:
            if not self._unwritable:
                log.warning("blobs.unwritable", error=error.message)
            self._unwritable = True
            raise
        if self._unwritable:
            log.info("blobs.writable")
        self._unwritable = False

    def _attributes(self, content_type: str, content_encoding: str) -> dict[str, str] | None:
        if not self._content_types:
            return None
        return {"Content-Type": content_type} | ({"Content-Encoding": content_encoding} if content_encoding else {})

    async def _delete_under(self, prefix: str) -> None:
        with suppress(FileNotFoundError):  # another process removes the same; the rest of a folder goes below
            async for found in obstore.list(self._store, prefix=prefix):
                await obstore.delete_async(self._store, [meta["path"] for meta in found])
        if self._folder is not None:  # a write that was killed leaves a file that listings do not show
            await asyncio.to_thread(shutil.rmtree, self._folder / prefix, ignore_errors=True)


def _checked(key: str) -> str:
    if len(key) > _MAX_KEY or not _KEY.fullmatch(key):
        raise BadRequest(f"{key[:100]!r} is not a blob key")
    return key


@contextmanager
def _translated(key: str, remedy: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"no blob {key}") from None
    except (BaseError, OSError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        if refuses_certificate(error):
            reason, remedy = "its certificate is not trusted", _UNTRUSTED
        raise BlobsUnavailable(f"the blob store does not answer ({reason}); {remedy}") from error


class _Asked:
    """Chunks for obstore, which requests each in its own task. That task continues when the writer is cancelled, so the
    chunks must be stopped before their owner closes them."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self.size = 0
        self._pieces = pieces
        self._next: asyncio.Task[bytes | None] | None = None
        self._is_stopped = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._is_stopped:
            raise BlobsUnavailable("the object was given up before its end")
        self._next = asyncio.ensure_future(anext(self._pieces, None))
        piece = await self._next
        if piece is None:
            raise StopAsyncIteration
        self.size += len(piece)
        return piece

    async def stop(self) -> None:
        """Stop: no chunk is being produced any more, and none will be."""
        self._is_stopped = True
        if self._next is not None and not self._next.done():
            self._next.cancel()
            await asyncio.wait([self._next])
