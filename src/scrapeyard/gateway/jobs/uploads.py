"""Lists that come as the body of a call: streamed, with their parameters in the query."""

import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.types import Scope

from scrapeyard.errors import BadRequest
from scrapeyard.gateway.http.origins import Origins
from scrapeyard.gateway.http.problems import Refusal
from scrapeyard.gateway.jobs.calls import ShapeOptions
from scrapeyard.gateway.jobs.create import Upload
from scrapeyard.gateway.jobs.multipart import FormFile, boundary_of
from scrapeyard.inputs.formats.lists import MAX_LIST

FORMATS = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "text/plain": "auto",
    "application/gzip": "auto",
    "multipart/form-data": "auto",
}
"""What is taken as a list, by content type, and its format unless the query says."""
OBJECTS = frozenset({"names", "columns", "input", "policy", "exports", "webhook"})
"""Parameters that are written as JSON."""
SHORT = frozenset({"exports"})
"""Those of them that may also be written as `full:csv,seo:xlsx`."""
Options = TypeVar("Options", bound=ShapeOptions)


_PATH = re.compile(r"/api/jobs(?:/[^/]+/items)?")


def takes_upload(scope: Scope) -> bool:
    """Whether a request may bring a list that is larger than other bodies."""
    if not _PATH.fullmatch(scope["path"]):
        return False
    return any(
        name == b"content-type" and _media(value.decode("latin-1")) in FORMATS for name, value in scope["headers"]
    )


def media_type(request: Request) -> str:
    """What the body says it is, without parameters."""
    return _media(request.headers.get("content-type", ""))


def options_of(query: QueryParams, kind: type[Options], media: str) -> Options:
    """The parameters of an upload. Raises BadRequest, or pydantic's ValidationError."""
    given: dict[str, Any] = {"format": FORMATS[media]}
    for name in query:
        values = query.getlist(name)
        if len(values) > 1:
            raise BadRequest(f"{name} is given {len(values)} times in the query; give it once")
        given[name] = _value(name, values[0])
    return kind.model_validate(given)


class Uploads:
    """Opens uploads."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    async def open(self, request: Request, media: str) -> Upload:
        """The list of a call whose body was not read. Raises BadRequest, or Refusal for a page from elsewhere."""
        if media not in FORMATS:
            raise Refusal("not_a_list", 415, f"{media[:100] or 'no Content-Type'} is neither JSON nor a list")
        self._origins.check(request)
        digest = hashlib.sha256(media.encode() + b"\n" + _canonical(request.query_params))
        chunks, name = _noted(request.stream(), digest), ""
        if media == "multipart/form-data":
            form = FormFile(request.stream(), boundary_of(request.headers["content-type"]))
            await form.open()
            chunks, name = _noted(form.chunks(), digest), form.name
        return Upload(chunks=chunks, digest=digest.hexdigest, name=name, limit=MAX_LIST)


def _media(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


async def _noted(chunks: AsyncIterator[bytes], digest: "hashlib._Hash") -> AsyncIterator[bytes]:
    async for chunk in chunks:
        if chunk:
            digest.update(chunk)
            yield chunk


def _canonical(query: Mapping[str, str]) -> bytes:
    return msgspec.json.encode(dict(query), order="sorted")


def _value(name: str, text: str) -> Any:
    if name in SHORT and not text.lstrip().startswith(("[", "{")):
        return [_wish(each) for each in text.split(",")]
    return _decoded(name, text) if name in OBJECTS else text


def _wish(text: str) -> dict[str, str]:
    """A file as `type:format`; what is missing or unknown is told by the model."""
    kind, colon, form = text.strip().partition(":")
    return {"type": kind, "format": form} if colon else {"type": kind}


def _decoded(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadRequest(f"{name} is written as JSON in the query, and this is not: {error}") from None
