"""The frames a child may send, as types. Whatever does not fit one of these is a protocol error."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from scrapeyard_sdk.child import wire
from scrapeyard_sdk.context import MAX_LINE

Short = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=64 * 1024)]
Number = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=0, le=1e12)]
Status = Annotated[int, Meta(ge=0, le=999)]

Names = Annotated[tuple[Annotated[str, Meta(max_length=100)], ...], Meta(max_length=200)]
"""Modules a run imported."""


class _Numbered(Struct, kw_only=True):
    """What every frame has."""

    i: Number = 0
    """The number of the item it is for, as the worker gave it; 0 from a child that serves one run."""


class Ready(_Numbered, tag="ready", tag_field="t"):
    """The child waits for its run."""

    version: int


class Log(_Numbered, tag="log", tag_field="t"):
    """A line the script wrote."""

    stream: Literal["stdout", "stderr", "log"]
    text: Annotated[str, Meta(max_length=MAX_LINE)]
    at_ms: Amount = 0.0
    level: Literal["debug", "info", "warning", "error"] = "info"
    fields: dict[str, Any] = field(default_factory=dict)
    cut: bool = False


class Fetch(_Numbered, tag="fetch", tag_field="t"):
    """The script wants a page; the raw part is the request's body."""

    n: Number
    url: Annotated[str, Meta(max_length=16 * 1024)]
    method: Short = "GET"
    headers: dict[Short, Text] = field(default_factory=dict)
    timeout_seconds: Annotated[float, Meta(gt=0, le=3600)] | None = None
    follow_redirects: bool = True
    max_bytes: Number | None = None
    max_age_seconds: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    session: Annotated[str, Meta(max_length=64)] = ""
    profile: Annotated[str, Meta(max_length=64)] = ""
    proxy: Annotated[str, Meta(max_length=64)] = ""
    engine: Literal["auto", "http", "solver"] = "auto"
    certificate: Text = ""
    keep: Short = ""
    """The artifact that the page goes to; empty: the page comes back."""


class KeepArtifact(_Numbered, tag="artifact", tag_field="t"):
    """The script wants the raw part kept."""

    n: Number
    name: Short
    content_type: Short = "application/octet-stream"


class Record(_Numbered, tag="record", tag_field="t"):
    """One record of many; the raw part is its JSON."""


class Result(_Numbered, tag="result", tag_field="t"):
    """The script returned; the raw part is its JSON, or the records sent before are."""

    records: bool = False
    cpu_ms: Amount = 0.0
    peak_kb: Amount = 0.0
    imports: Names = ()
    spent: bool = False
    """The item left something behind: the child should serve no other."""


class Error(_Numbered, tag="error", tag_field="t"):
    """The script raised."""

    reason: Short
    type: Short = ""
    message: Text = ""
    traceback: Text = ""
    site_status: Status | None = None
    after: Annotated[float, Meta(ge=0, le=86400)] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    cpu_ms: Amount = 0.0
    peak_kb: Amount = 0.0
    imports: Names = ()
    spent: bool = False


Frame = Ready | Log | Fetch | KeepArtifact | Record | Result | Error

_decoder: msgspec.json.Decoder[Frame] = msgspec.json.Decoder(Frame)


def parse(packed: bytes) -> Frame:
    """A frame's head. Raises WireError when it is none of ours."""
    try:
        return _decoder.decode(packed)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise wire.WireError(f"not one of our frames: {error}") from None
