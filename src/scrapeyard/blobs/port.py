"""Blobs: bytes by key. Large results and artifacts."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol


class Blobs(Protocol):
    """A flat store of immutable objects. Every method raises BlobsUnavailable when the store does not answer."""

    async def put(self, key: str, data: bytes, content_type: str) -> None:
        """Write an object whole: a reader sees all of it or nothing. An existing one is replaced."""

    async def put_stream(self, key: str, pieces: AsyncIterator[bytes], content_type: str) -> int:
        """Write an object from pieces, never holding all of them; how many bytes it has. An existing one is replaced.

        A reader sees all of it or nothing. What `pieces` raises leaves as it is, and nothing is then written.
        """

    async def size(self, key: str) -> int | None:
        """Bytes, or None when there is no such object."""

    def stream(self, key: str) -> AsyncIterator[bytes]:
        """The object in pieces. Raises NotFound on the first piece when there is none."""

    async def get(self, key: str) -> bytes:
        """The whole object; for small ones. Raises NotFound."""

    async def delete_prefix(self, prefixes: Sequence[str]) -> None:
        """Remove every object under each of these prefixes."""

    async def ping(self) -> float:
        """Write, read and remove a small object; milliseconds."""
