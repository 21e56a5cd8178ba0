"""Lists sent as a request body: streamed, plain or as the file of a form, with parameters in the query."""

import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from email.message import Message
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.types import Scope

from scrapeyard.errors import BadRequest, Refusal
from scrapeyard.gateway.http.openapi import TRACEPARENT, Responses, parameter
from scrapeyard.gateway.http.patterns import KEY_PATTERN
from scrapeyard.gateway.jobs.calls import AppendOptions, JobOptions, ShapeOptions
from scrapeyard.gateway.jobs.create import Upload
from scrapeyard.inputs.lists import MAX_LIST

MAX_HEAD = 16 * 1024
"""Maximum bytes before the file's first byte."""
MAX_NAME = 200
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_HOW = "send one file, as `curl -F file=@items.csv` does; parameters go into the query"


def boundary_of(content_type: str) -> bytes:
    """The boundary between parts. Raises BadRequest if the header names none."""
    message = Message()
    message["content-type"] = content_type
    given = message.get_param("boundary")
    if not isinstance(given, str) or not _BOUNDARY.fullmatch(given):
        raise BadRequest(f"Content-Type names no boundary; {_HOW}")
    return b"--" + given.encode("ascii")


class FormFile:
    """Parses a multipart body. `open` finds the file and its name; then `chunks` yields its bytes, once."""

    def __init__(self, body: AsyncIterator[bytes], boundary: bytes) -> None:
        self._body = body
        self._boundary = boundary
        self._held = b""
        self.name = ""
        """The file name the sender gave, for people; empty if none."""

    async def open(self) -> None:
        """Read up to the file's first byte. Raises BadRequest."""
        while b"\r\n\r\n" not in self._held:
            if len(self._held) > MAX_HEAD or not await self._more():
                raise BadRequest(f"the form is not one that browsers send; {_HOW}")
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        before, found, fields = (b"\r\n" + head).partition(b"\r\n" + self._boundary + b"\r\n")
        if not found or before.strip():
            raise BadRequest(f"the form does not begin with its boundary; {_HOW}")
        self.name = _file_name(fields)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The file. Raises BadRequest when the form breaks off or has more parts."""
        end = b"\r\n" + self._boundary
        self._held = b"\r\n" + self._held  # an empty file is followed by its boundary at once
        skip = 2
        while (at := self._held.find(end)) < 0:
            safe = max(0, len(self._held) - len(end) + 1)
            if safe > skip:
                yield self._held[skip:safe]
                self._held, skip = self._held[safe:], 0
            if not await self._more():
                raise BadRequest("the form breaks off before its end; send it again")
        if at > skip:
            yield self._held[skip:at]
        self._held = self._held[at + len(end) :]
        await self._close()

    async def _close(self) -> None:
        while len(self._held) < 2 and await self._more():
            pass
        if not self._held.startswith(b"--"):
            raise BadRequest(f"the form has more than one part; {_HOW}")
        while len(self._held) < MAX_HEAD and await self._more():  # anything after the end is ignored
            self._held = self._held[:2]

    async def _more(self) -> bool:
        """Read more; whether there was any."""
        async for chunk in self._body:
            if chunk:
                self._held += chunk
                return True
        return False


def _file_name(fields: bytes) -> str:
    message = Message()
    for line in fields.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            message["content-disposition"] = value.strip()
    kind, given = message.get_content_disposition(), message.get_param("name", header="content-disposition")
    if kind != "form-data" or given != "file":
        raise BadRequest(f"the form's part is not called `file`; {_HOW}")
    return _name_in(message)


def _name_in(message: Message) -> str:
    """The last part of the file name, without what cannot be printed; empty if there is none that can be read."""
    try:
        given = message.get_filename() or ""
    except (UnicodeError, ValueError):  # a charset such as idna takes no replacements
        return ""
    name = given.replace("\\", "/").rpartition("/")[2][:MAX_NAME]
    return "".join(each for each in name if each.isprintable())


def _body_name(disposition: str) -> str:
    """The file name that a plain body's Content-Disposition gives, for people; empty if there is none."""
    message = Message()
    message["content-disposition"] = disposition
    return _name_in(message)


FORMATS = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "text/plain": "auto",
    "application/gzip": "auto",
    "multipart/form-data": "auto",
}
"""Accepted content types, and the default format of each."""
OBJECTS = frozenset({"names", "columns", "input", "policy", "exports", "sinks", "webhook"})
"""Parameters written as JSON."""
SHORT = frozenset({"exports"})
"""Those of them that may also be written as `full:csv,seo:xlsx`."""
Options = TypeVar("Options", bound=ShapeOptions)


_PATH = re.compile(r"/api/jobs(?:/[^/]+/items)?")


def takes_upload(scope: Scope) -> bool:
    """Whether a request may carry a list that is larger than other bodies."""
    if not _PATH.fullmatch(scope["path"]):
        return False
    return any(
        name == b"content-type" and _media(value.decode("latin-1")) in FORMATS for name, value in scope["headers"]
    )


def media_type(request: Request) -> str:
    """Media type of the body, without parameters."""
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


async def open_upload(request: Request, media: str) -> Upload:
    """The list of a request whose body has not been read. Raises BadRequest, or Refusal (415)."""
    if media not in FORMATS:
        raise Refusal("not_a_list", 415, f"{media[:100] or 'no Content-Type'} is neither JSON nor a list")
    digest = hashlib.sha256(media.encode() + b"\n" + _canonical(request.query_params))
    chunks, name = _noted(request.stream(), digest), _body_name(request.headers.get("content-disposition", ""))
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
    """Parse an export given as `type:format`. The model reports what is missing or unknown."""
    kind, colon, form = text.strip().partition(":")
    return {"type": kind, "format": form} if colon else {"type": kind}


def _decoded(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadRequest(f"{name} is written as JSON in the query, and this is not: {error}") from None


_KEY = parameter(
    "Idempotency-Key", "header", "The same key and body are one.", {"type": "string", "pattern": KEY_PATTERN}
)


_TEXT = {"type": "string", "format": "binary", "description": "The list, streamed."}


_FORM = {"type": "object", "properties": {"file": _TEXT}, "required": ["file"], "additionalProperties": False}


CREATED: Responses = {
    201: {
        "description": "Made; it is durable.",
        "headers": {
            "Location": {"description": "Where to look the job up.", "schema": {"type": "string"}},
            "Idempotency-Replayed": {"description": "`true` on a replay.", "schema": {"type": "string"}},
        },
    }
}


def _request(json_schema: str, options: type[BaseModel], *headers: dict[str, Any]) -> dict[str, Any]:
    kinds: dict[str, Any] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{json_schema}"}}}
    for media in FORMATS:
        kinds[media] = {"schema": _FORM if media == "multipart/form-data" else _TEXT}
    return {"requestBody": {"required": True, "content": kinds}, "parameters": [_KEY, *headers, *_query(options)]}


def _query(options: type[BaseModel]) -> list[dict[str, Any]]:
    """Every field of the options as a parameter for uploads; objects and lists as JSON."""
    whole = options.model_json_schema()
    found = []
    for name, schema in whole["properties"].items():
        said = f"For an upload. {schema.get('description', '')}"
        if name in OBJECTS:
            short = " Or as `type:format`, parted by commas: `full:csv,seo:xlsx`." if name in SHORT else ""
            found.append(parameter(name, "query", f"{said} Written as JSON.{short}", {"type": "string"}))
        else:
            found.append(parameter(name, "query", said, _plain(schema, whole.get("$defs", {}))))
    return found


def _plain(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a single plain value: without null, which a query cannot express, and without references."""
    choices = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    kept = {key: value for key, value in choices[0].items() if key not in ("description", "title", "default", "$ref")}
    if reference := choices[0].get("$ref"):
        kept |= {key: value for key, value in definitions[reference.rpartition("/")[2]].items() if key != "description"}
    return kept


CREATE = _request("JobCall", JobOptions, TRACEPARENT)


APPEND = _request("AppendCall", AppendOptions)
