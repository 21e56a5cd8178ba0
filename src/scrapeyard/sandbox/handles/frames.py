"""The frames that a child may send, as types; its fetches as requests; the check of its result."""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from scrapeyard.engines.browser.operations import MAX_SELECTOR, AnyOperation, LoadState, read_operation
from scrapeyard.engines.browser.port import Blocked, ContextOptions
from scrapeyard.engines.headers import AnswerHeaders
from scrapeyard.engines.port import BrowserWish, FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard_sdk import wire
from scrapeyard_sdk.context import MAX_LINE, MAX_NOTE
from scrapeyard_sdk.state import STATE_KEY

Short = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=64 * 1024)]
Number = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=0, le=1e12)]
Status = Annotated[int, Meta(ge=0, le=999)]

Names = Annotated[tuple[Annotated[str, Meta(max_length=100)], ...], Meta(max_length=200)]
"""Modules a run imported."""
Left = Annotated[tuple[Annotated[str, Meta(max_length=40)], ...], Meta(max_length=20)]
"""Names of what an item left behind."""


class _Numbered(Struct, kw_only=True):
    """What every frame has."""

    i: Number = 0
    """The number of the item it is for, as the worker gave it; 0 from a child that serves one run."""


class Ready(_Numbered, tag="ready", tag_field="t"):
    """The child waits for its run."""

    version: int


class LogFrame(_Numbered, tag="log", tag_field="t"):
    """A line the script wrote."""

    stream: Literal["stdout", "stderr", "log"]
    text: Annotated[str, Meta(max_length=MAX_LINE)]
    at_ms: Amount = 0.0
    level: Literal["debug", "info", "warning", "error"] = "info"
    fields: dict[str, Any] = field(default_factory=dict)
    cut: bool = False


class WishFrame(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a browser opens the page of a fetch."""

    wait_for: Annotated[str, Meta(max_length=MAX_SELECTOR)] = ""
    wait_until: LoadState = "load"
    scroll: Annotated[int, Meta(ge=0, le=1000)] = 0
    screenshot: Short = ""
    """The artifact to save a picture of the page to; empty: none is made."""
    full_page: bool = False
    device: Short = ""
    locale: Short = ""
    timezone: Short = ""
    block: tuple[Blocked, ...] = ()


class FetchFrame(_Numbered, tag="fetch", tag_field="t"):
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
    engine: Literal["auto", "http", "browser", "light", "solver"] = "auto"
    browser: WishFrame | None = None
    certificate: Text = ""
    keep: Short = ""
    """The artifact to save the page to; if empty, the page is sent back."""

    @property
    def head_size(self) -> int:
        """About how many bytes it takes without the raw part."""
        headers = sum(len(name) + len(value) for name, value in self.headers.items()) if self.headers else 0
        return len(self.url) + len(self.certificate) + headers


class BrowserFrame(_Numbered, tag="browser", tag_field="t"):
    """The script opens, uses or closes a page in a browser. The raw part begins with JSON: the options, the step, or
    the captcha to solve; files that the step uploads follow."""

    n: Number
    act: Literal["open", "do", "solve", "close"]
    size: Number = 0
    """Bytes of the JSON."""
    b: Number = 0
    """The number of the context, as the answer to `open` gave it."""


class WidgetCall(Struct, kw_only=True, forbid_unknown_fields=True):
    """The captcha of a page is to be solved."""

    tab: Annotated[int, Meta(ge=0, le=100)] = 0
    timeout: Annotated[float, Meta(gt=0, le=3600)] | None = None


class SolveFrame(_Numbered, tag="solve", tag_field="t"):
    """The script wants a picture of text read; it is the raw part."""

    n: Number


class ExtractFrame(_Numbered, tag="extract", tag_field="t"):
    """The script wants data of a page; the raw part is an input of `builtin/extract`, as JSON."""

    n: Number


class KeepArtifact(_Numbered, tag="artifact", tag_field="t"):
    """The script wants the raw part saved as an artifact."""

    n: Number
    name: Short
    content_type: Short = "application/octet-stream"


class StateCall(_Numbered, tag="state", tag_field="t"):
    """The script reads or changes its state; the raw part is the value, or the old and the new one in a list."""

    n: Number
    action: Literal["get", "set", "delete", "update"]
    key: Annotated[str, Meta(pattern=STATE_KEY)]


class ProgressFrame(_Numbered, tag="progress", tag_field="t"):
    """How far the script is."""

    done: Amount
    total: Amount | None = None
    message: Annotated[str, Meta(max_length=MAX_NOTE)] = ""


class EnqueueFrame(_Numbered, tag="enqueue", tag_field="t"):
    """The script found an item; the raw part is its input, or a URL as a JSON string."""

    n: Number
    item_id: Annotated[str, Meta(max_length=128)] = ""


class Record(_Numbered, tag="record", tag_field="t"):
    """One record of many; the raw part is its JSON."""


class Result(_Numbered, tag="result", tag_field="t"):
    """The script returned; the raw part is its JSON, or the records sent before are."""

    records: bool = False
    cpu_ms: Amount = 0.0
    peak_kb: Amount = 0.0
    imports: Names = ()
    left: Left = ()
    """What the item left behind, so that the child should serve no other: `files`, `threads`, …"""


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
    left: Left = ()


Request = FetchFrame | BrowserFrame | SolveFrame | ExtractFrame | KeepArtifact | StateCall | EnqueueFrame
"""What the script waits for an answer to."""
Frame = Ready | LogFrame | ProgressFrame | Request | Record | Result | Error

_decoder: msgspec.json.Decoder[Frame] = msgspec.json.Decoder(Frame)


def parse(packed: bytes) -> Frame:
    """A frame's head. Raises WireError if it is not a known frame."""
    try:
        return _decoder.decode(packed)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise wire.WireError(f"not one of our frames: {error}") from None


def request_of(frame: FetchFrame, body: bytes) -> FetchRequest:
    """What the script asks for."""
    return FetchRequest(
        url=frame.url,
        method=frame.method,
        headers=frame.headers,
        body=body,
        timeout_seconds=frame.timeout_seconds,
        follow_redirects=frame.follow_redirects,
        max_bytes=frame.max_bytes,
        max_age_seconds=frame.max_age_seconds,
        session=frame.session,
        profile=frame.profile,
        proxy=frame.proxy,
        engine=frame.engine,
        browser=None if frame.browser is None else _wish_of(frame.browser),
        certificate=frame.certificate,
    )


def _wish_of(wish: WishFrame) -> BrowserWish:
    return BrowserWish(
        wait_for=wish.wait_for,
        wait_until=wish.wait_until,
        scroll=wish.scroll,
        screenshot=bool(wish.screenshot),
        full_page=wish.full_page,
        device=wish.device,
        locale=wish.locale,
        timezone=wish.timezone,
        block=wish.block,
    )


BrowserCall = ContextOptions | AnyOperation | WidgetCall | None
"""What comes with a browser frame: options to open with, a step, a captcha to solve, or nothing to close."""


def browser_call(frame: BrowserFrame, raw: bytes) -> BrowserCall:
    """What comes with the frame. Raises BadRequest."""
    if frame.act == "close":
        return None
    packed = raw[: frame.size]
    try:
        return read_operation(packed) if frame.act == "do" else _calls[frame.act].decode(packed)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise BadRequest(f"the browser cannot do this: {error}") from None


_calls: dict[str, msgspec.json.Decoder[Any]] = {
    "open": msgspec.json.Decoder(ContextOptions),
    "solve": msgspec.json.Decoder(WidgetCall),
}


class PageHead(Struct, kw_only=True, tag="page", tag_field="t"):
    """The head of the frame that brings a page; its body is the raw part."""

    i: int = 0
    n: int
    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    encoding: str
    elapsed_ms: float
    redirects: tuple[str, ...]
    age_seconds: float | None
    way: str
    kept: int | None


Head = dict[str, Any] | PageHead
"""Of a frame to the child."""


def page_head(number: int, page: FetchResponse) -> PageHead:
    """The head of the frame that brings a page."""
    headers = page.headers
    return PageHead(
        n=number,
        url=page.url,
        status=page.status,
        headers=headers.pairs if type(headers) is AnswerHeaders else tuple(headers),
        encoding=page.encoding,
        elapsed_ms=page.elapsed_ms,
        redirects=page.redirects,
        age_seconds=page.age_seconds,
        way=page.way,
        kept=page.kept,
    )


def failure_head(number: int, failure: FetchFailed) -> dict[str, Any]:
    """The frame that says why there is no page."""
    return {
        "t": "page_error",
        "n": number,
        "reason": failure.reason.value,
        "message": failure.message,
        "site_status": failure.site_status,
        "retry_after": failure.details.get("retry_after"),
    }


def solved_head(number: int, text: str) -> dict[str, Any]:
    """The frame with the text of a picture."""
    return {"t": "solved", "n": number, "text": text}


MAX_DEPTH = 200
"""Maximum nesting of lists and objects. Deeper ones would break recursive readers, including ours."""

_SHAPE = bytes.maketrans(b"123456789E", b"000000000e")
_SUSPECT = (b"0" * 400, b"0e000", b"0e+000")
"""Numbers that a reader may not be able to represent. Text may match too; then full parsing decides."""
_TEXT = re.compile(rb'"[^"]*"')
_REST = bytes(set(range(256)) - set(b'[]{}"'))
_TOO_DEEP = f"it is nested more than {MAX_DEPTH} deep"
_raw = msgspec.json.Decoder(msgspec.Raw)


def fault_of(raw: bytes) -> tuple[ExitReason, str] | None:
    """None if the bytes are a valid result; otherwise how the run ends, and why.

    Objects are not built, so that a result costs no more memory than its bytes, unless a number looks suspicious.
    """
    try:
        raw.decode("utf-8")
        _raw.decode(raw)
        shape = raw.translate(_SHAPE)
        if any(suspect in shape for suspect in _SUSPECT):
            msgspec.json.decode(raw)
    except RecursionError:
        return ExitReason.BAD_RESULT, _TOO_DEEP
    except (msgspec.MsgspecError, ValueError) as error:
        return ExitReason.PROTOCOL_ERROR, f"the child sent a result that is not JSON: {error}"
    return (ExitReason.BAD_RESULT, _TOO_DEEP) if _too_deep(raw) else None


def _too_deep(raw: bytes) -> bool:
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _brackets(raw)
    for _ in range(4):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    depth = 4
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def _brackets(raw: bytes) -> bytes:
    """The brackets outside strings. Removes escapes first, so that every remaining quote begins or ends a string."""
    quoted = raw.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _REST).replace(b'""', b"")
    return _TEXT.sub(b"", quoted)


CLAIMABLE = frozenset(ExitReason) - {
    ExitReason.SUCCEEDED,
    ExitReason.GONE,
    ExitReason.TIMEOUT,
    ExitReason.CPU_LIMIT,
    ExitReason.CANCELLED,
    ExitReason.LOST_WORKER,
    ExitReason.INTERNAL_ERROR,
    ExitReason.SCRAPER_NOT_FOUND,
}
"""Exit reasons that a child may report itself; only the worker can determine the others."""
