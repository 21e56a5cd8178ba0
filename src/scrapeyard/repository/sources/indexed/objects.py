"""Objects of a web server, an S3-compatible store or a folder, through obstore: bounded; errors say what to do."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import obstore
from msgspec import Struct
from obstore.exceptions import (
    BaseError,
    NotModifiedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore

from scrapeyard.errors import SourceUnavailable

if TYPE_CHECKING:
    from obstore import GetOptions

_CODE: Final = re.compile(r"<Code>([A-Za-z0-9]{1,64})</Code>")
_STATUS: Final = re.compile(r"status code: (\d{3})")
_REGION: Final = "the bucket is in another region; check S3_REGION"
_CODES: Final = {
    "NoSuchBucket": "there is no such bucket; check S3_BUCKET_NAME",
    "InvalidAccessKeyId": "the access key is not known there; check S3_ACCESS_KEY",
    "SignatureDoesNotMatch": "the secret key is not the access key's; check S3_SECRET_KEY",
    "AccessDenied": "access is denied; the key must be allowed to get and list objects of this bucket and prefix",
    "PermanentRedirect": _REGION,
    "TemporaryRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "NotImplemented": "it does not know conditional writes, which publishing needs",
    "RequestTimeTooSkewed": "its clock and this machine's differ; set the clock",
}
_WORDS: Final = (
    ("Unable to canonicalize", "the folder is not there"),
    ("without LOCATION", _REGION),
    ("169.254.", "no credentials; set S3_ACCESS_KEY and S3_SECRET_KEY"),
    ("error following redirect", "redirects in a circle, or more than ten times"),
    ("Content-Length Header missing", "the server does not say how long its files are; serve them as plain files"),
    ("TimedOut", "the answer did not come in time"),
    ("Timeout", "the answer did not come in time"),
    ("body error", "the transfer broke off"),
    ("error sending request", "cannot be reached; check the address, and that the server runs"),
)


class Absent(Exception):
    """There is no such object."""


def explain(error: Exception) -> str | None:
    """The error in one line; None if the object does not exist, which may be no error."""
    text = str(error)
    code = found[1] if (found := _CODE.search(text)) else ""
    if code in _CODES:
        return _CODES[code]
    if isinstance(error, FileNotFoundError):
        return None
    if isinstance(error, PreconditionError):
        return "it changed while it was read; look again"
    status = found[1] if (found := _STATUS.search(text)) else ""
    if isinstance(error, UnauthenticatedError) or status == "401":
        return "refuses our credentials (401); check the token or keys"
    if isinstance(error, PermissionDeniedError) or status == "403":
        return "access is denied (403); check the token or keys, and what they are allowed"
    if status:
        return f"answers {status} {code}".strip()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    words = (words for part, words in _WORDS if part in text)
    return next(words, f"cannot be used ({type(error).__name__})")


PIECE: Final = 256 * 1024
_ETAG: Final = re.compile(r"[\x21-\x7e]{1,200}")
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_SETTLED: Final = timedelta(minutes=1)


class Meta(Struct, frozen=True, kw_only=True):
    """Metadata of one object, as its store reports it."""

    path: str
    size: int
    etag: str
    """Entity tag; empty if there is none that can be sent back."""
    modified: datetime | None
    """None if the store does not say."""


class TooLarge(SourceUnavailable):
    """An object is larger than the caller's limit."""


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
        """Pass an object to `take` in chunks as they arrive; never more than `limit` bytes. Raises as `read` does."""
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
        """All objects below a prefix; an empty prefix means all. Raises SourceUnavailable beyond `limit`."""
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
        """The store, for use within the timeout. Converts errors to Absent or SourceUnavailable, except
        NotModifiedError."""
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
    """Convert obstore's metadata."""
    etag = meta.get("e_tag") or ""
    modified = meta["last_modified"]
    return Meta(
        path=meta["path"],
        size=int(meta["size"]),
        etag=etag if _ETAG.fullmatch(etag) else "",
        modified=modified if modified and modified > _EPOCH else None,
    )


def condition(mark: str) -> "GetOptions":
    """Options for a conditional request since `mark`; empty if `mark` cannot be used for one."""
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
    """The mark for the next poll: entity tag, else date, else `otherwise`. A date is used once it is a minute old:
    dates are whole seconds, so an object that has just changed may change again under the same date."""
    if meta.etag:
        return f"etag:{meta.etag}"
    settled = meta.modified is not None and datetime.now(UTC) - meta.modified > _SETTLED
    return f"date:{meta.modified.isoformat()}" if meta.modified and settled else otherwise
