"""Stored objects of jobs as responses, whole or a range. Always an attachment, never rendered in our origin."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import Refusal
from scrapeyard.results import artifacts

_ONE = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})", re.IGNORECASE)


def wanted_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last; None for the whole object. Raises Refusal (416) if the range is empty."""
    found = _ONE.fullmatch(header.replace(" ", "")) if header else None
    if found is None or found[1] == found[2] == "":
        return None
    if not found[1]:
        first, end = max(0, size - int(found[2])), size
    else:
        first, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
        if found[2] and int(found[2]) < first:
            return None
    if first >= size:
        raise Refusal("bad_range", 416, f"the file has {size} bytes, so there is nothing from {first} on")
    return first, end


_CONTENT_TYPE = re.compile(
    r"^[a-zA-Z0-9!#$&^_.+-]{1,100}/[a-zA-Z0-9!#$&^_.+-]{1,100}(\s*;\s*[a-zA-Z0-9-]{1,50}=[\w.-]{1,50})?$"
)
_PLAIN_NAME = re.compile(r"^[A-Za-z0-9._-]{1,255}$")

_BYTES = {"schema": {"type": "string", "format": "binary"}}
BYTES: dict[str, Any] = {"application/octet-stream": _BYTES, "application/json": {"schema": {}}, "*/*": _BYTES}
"""OpenAPI description of a download's content. The first is what generated clients read: many do not know `*/*`."""


class AnyResponse(Response):
    """Gives the OpenAPI document the media type."""

    media_type = "*/*"


def attachment(name: str) -> dict[str, str]:
    """Headers of a download. The file name appears twice, since some clients read only the plain form."""
    plain = f' filename="{name}";' if _PLAIN_NAME.match(name) else ""
    return {
        "Content-Disposition": f"attachment;{plain} filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
    }


def safe_type(content_type: str) -> str:
    """The content type, or `application/octet-stream` if it is not safe in a header."""
    return content_type if _CONTENT_TYPE.match(content_type) else "application/octet-stream"


async def kept_object(blobs: Blobs, key: str, content_type: str, accepts: str, headers: dict[str, str]) -> Response:
    """An object of an item or manifest, sent compressed as stored if the caller accepts gzip. Raises NotFound."""
    stored = await artifacts.opened(blobs, key)
    headers = headers | {"Vary": "Accept-Encoding"}
    if stored.encoding and takes_gzip(accepts):
        headers["Content-Encoding"] = stored.encoding
        pieces = stored.pieces
    else:
        pieces = artifacts.decoded(stored)
    return StreamingResponse(await begun(pieces), headers=headers, media_type=safe_type(content_type))


def takes_gzip(accepts: str) -> bool:
    """Whether `Accept-Encoding` allows gzip."""
    for part in accepts.lower().split(","):
        name, _, quality = part.partition(";")
        if name.strip() in ("gzip", "x-gzip") and quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            return True
    return False


async def begun(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same chunks, with the first already read: an unreachable store then gives a 503, not a truncated response."""
    first = await anext(pieces, b"")

    async def chained() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return chained()
