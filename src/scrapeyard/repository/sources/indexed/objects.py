"""Objects of a web server, an S3-compatible store or a folder, by obstore: bounded in size and time."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import obstore
from msgspec import Struct
from obstore.exceptions import BaseError, NotModifiedError
from obstore.store import ObjectStore

from scrapeyard.errors import SourceUnavailable
from scrapeyard.repository.sources.indexed.faults import Absent, explain

if TYPE_CHECKING:
    from obstore import GetOptions

PIECE: Final = 256 * 1024
_ETAG: Final = re.compile(r"[\x21-\x7e]{1,200}")
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Meta(Struct, frozen=True, kw_only=True):
    """One object as its store tells."""

    path: str
    size: int
    etag: str
    """Empty when it has none that can be sent back."""
    modified: datetime | None
    """None when it does not say."""


class TooLarge(SourceUnavailable):
    """An object has more bytes than were to be taken."""


class Objects:
    """Reads of one store. Each call ends within `timeout_seconds`. `place` names it in messages, without secrets.

    The store is opened on first use, because opening a folder that is not there fails.
    """

    def __init__(self, open_store: Callable[[], ObjectStore], place: str, timeout_seconds: float) -> None:
        self.place = place
        self._open_store = open_store
        self._store: ObjectStore | None = None
        self._timeout_seconds = timeout_seconds

    async def read(self, path: str, limit: int, options: "GetOptions | None" = None) -> tuple[Meta, bytes]:
        """A whole object; for small ones. Raises Absent, NotModifiedError as asked by `options`, SourceUnavailable."""
        pieces: list[bytes] = []
        meta = await self.stream(path, limit, pieces.append, options)
        return meta, b"".join(pieces)

    async def stream(
        self, path: str, limit: int, take: Callable[[bytes], object], options: "GetOptions | None" = None
    ) -> Meta:
        """Hands an object on, piece by piece, as it comes; never more than `limit` bytes. Raises as `read` does."""
        async with self.opened(path) as store:
            found = await obstore.get_async(store, path, options=options)
            meta, seen = meta_of(found.meta), 0
            if meta.size > limit:
                raise TooLarge(f"{self.place}: {path} has {meta.size} bytes; at most {limit} are taken")
            async for piece in found.stream(min_chunk_size=PIECE):
                seen += len(piece)
                if seen > limit:
                    raise TooLarge(f"{self.place}: {path} goes on beyond {limit} bytes")
                take(bytes(piece))
        if seen != meta.size:
            raise SourceUnavailable(f"{self.place}: {path} broke off after {seen} of {meta.size} bytes")
        return meta

    async def under(self, prefix: str, limit: int) -> list[Meta]:
        """All objects below a prefix; the empty one is all there are. Raises SourceUnavailable beyond `limit`."""
        found: list[Meta] = []
        async with self.opened(prefix) as store:
            async for some in obstore.list(store, prefix=prefix or None, chunk_size=1000):
                found.extend(meta_of(meta) for meta in some)
                if len(found) > limit:
                    raise SourceUnavailable(
                        f"{self.place}: more than {limit} objects; use another prefix, or publish with an index"
                    )
        return found

    @asynccontextmanager
    async def opened(self, path: str) -> AsyncIterator[ObjectStore]:
        """The store. What is done with it must end in time; faults become Absent or SourceUnavailable, but for
        NotModifiedError, which passes."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                self._store = self._store or self._open_store()
                yield self._store
        except TimeoutError:
            raise SourceUnavailable(f"{self.place}: no answer within {self._timeout_seconds:g} s") from None
        except NotModifiedError:
            raise
        except (BaseError, OSError, RuntimeError, ValueError) as error:
            told = explain(error)
            if told is None:
                raise Absent(f"{self.place}: there is no {path}") from None
            raise SourceUnavailable(f"{self.place}: {told}") from None


def meta_of(meta: Any) -> Meta:
    """What obstore tells of an object."""
    etag = meta.get("e_tag") or ""
    modified = meta["last_modified"]
    return Meta(
        path=meta["path"],
        size=int(meta["size"]),
        etag=etag if _ETAG.fullmatch(etag) else "",
        modified=modified if modified and modified > _EPOCH else None,
    )


def condition(mark: str) -> "GetOptions":
    """The options that ask only for what changed since `mark`; empty when it cannot be asked."""
    kind, _, value = mark.partition(":")
    if kind == "etag" and _ETAG.fullmatch(value):
        return {"if_none_match": value}
    if kind == "date":
        try:
            return {"if_modified_since": datetime.fromisoformat(value)}
        except ValueError:
            return {}
    return {}


def mark_of(meta: Meta, otherwise: str) -> str:
    """What to ask with the next time: entity tag, else date, else `otherwise`."""
    if meta.etag:
        return f"etag:{meta.etag}"
    return f"date:{meta.modified.isoformat()}" if meta.modified else otherwise
