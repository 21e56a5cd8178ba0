"""Blobs: bytes by key. Large results and artifacts."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol


class Blobs(Protocol):
    """A flat store of immutable objects. Every method raises BlobsUnavailable when the store does not answer."""

    async def put(self, key: str, data: bytes, content_type: str, content_encoding: str = "") -> None:
        """Write an object atomically: a reader sees all of it or nothing. Replaces an existing one.

        `content_encoding` declares to other readers that `data` is encoded (`gzip`); it is saved where the store saves
        content types. Reading returns the bytes as they were given.
        """

    async def put_stream(
        self, key: str, pieces: AsyncIterator[bytes], content_type: str, content_encoding: str = ""
    ) -> int:
        """Write an object from chunks, never holding all of them; returns its size in bytes. Replaces an existing one.

        A reader sees all of it or nothing. Exceptions from `pieces` propagate, and nothing is then written.
        """

    async def size(self, key: str) -> int | None:
        """Size in bytes; None if there is no such object."""

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the object in chunks, or its bytes from `start` up to but excluding `end`; both lie within it. Raises
        NotFound on the first chunk if there is none."""

    async def get(self, key: str) -> bytes:
        """The whole object; for small ones. Raises NotFound."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove these objects. Missing ones are no error."""

    async def delete_prefix(self, prefixes: Sequence[str]) -> None:
        """Remove every object under each of these prefixes."""

    async def folders(self, prefix: str) -> list[str]:
        """Names of the folders right below a prefix, which is empty or ends with `/`, in order."""

    async def ping(self) -> float:
        """Write, read and remove a small object; returns milliseconds."""
