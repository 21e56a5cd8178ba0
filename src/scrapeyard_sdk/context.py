"""What a script is given: its input, its clock, its voice, and the engines."""

import json
import math
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from scrapeyard_sdk.channel import Answer, Channel
from scrapeyard_sdk.outcomes import ArtifactError, FetchError
from scrapeyard_sdk.page import Page

_LEVELS = ("debug", "info", "warning", "error")
MAX_LINE = 32 * 1024
"""Characters in one line of the log; a longer line becomes several."""
_MAX_FIELDS = 20
_TYPES = {
    "csv": "text/csv",
    "gif": "image/gif",
    "gz": "application/gzip",
    "htm": "text/html",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "webp": "image/webp",
    "xml": "application/xml",
    "zip": "application/zip",
}
"""By the end of an artifact's name. The system's own table lies in files that a walled script cannot read."""


class BaseContext:
    """What async and plain scripts share."""

    def __init__(self, channel: Channel, start: dict[str, Any], log_room: "LogRoom") -> None:
        self._channel = channel
        self._ends = time.monotonic() + float(start["seconds"])
        self._room = log_room
        self.run_id: str = start["run_id"]
        self.attempt: int = start["attempt"]
        self.input: dict[str, Any] = start["input"]
        self.config: dict[str, Any] = start["config"]

    def seconds_left(self) -> float:
        """Until the run is ended from outside; never negative."""
        return max(0.0, self._ends - time.monotonic())

    @property
    def deadline(self) -> float:
        """When the run is ended, on the clock of `time.monotonic()`."""
        return self._ends

    def log(self, message: str, level: str = "info", **fields: Any) -> None:
        """Write a line to the run's log, with fields. Read it at `/logs`, or live at `/events`."""
        self._room.write("log", as_text(message), level if level in _LEVELS else "info", _plain(fields))


class Context(BaseContext):
    """For `async def` scripts: every engine call is awaited."""

    async def fetch(self, url: str, **options: Any) -> Page:
        """Get a page through the worker's HTTP engine. Any status is a page; raises FetchError when none came.

        Options: method, headers, params, json, form, body, timeout (seconds), follow_redirects, max_bytes.
        """
        return _page(await self._channel.request(*_fetch_request(url, options)))

    async def fetch_all(self, urls: Iterable[str], **options: Any) -> list[Page]:
        """Get several pages at once, in the order asked. Raises the first FetchError."""
        import asyncio

        return list(await asyncio.gather(*(self.fetch(url, **options) for url in urls)))

    async def artifact(self, name: str, data: bytes | str, content_type: str = "") -> None:
        """Keep bytes from this run. Raises ArtifactError when they cannot be kept."""
        _kept(await self._channel.request(*_artifact_request(name, data, content_type)))


class SyncContext(BaseContext):
    """For plain `def` scripts: every engine call waits."""

    def fetch(self, url: str, **options: Any) -> Page:
        """Get a page through the worker's HTTP engine. Options and errors as in `Context.fetch`."""
        return _page(self._channel.wait_for(self._channel.ask(*_fetch_request(url, options))))

    def fetch_all(self, urls: Iterable[str], **options: Any) -> list[Page]:
        """Get several pages at once, in the order asked. Raises the first FetchError."""
        numbers = [self._channel.ask(*_fetch_request(url, options)) for url in urls]
        answers = [self._channel.wait_for(number) for number in numbers]
        return [_page(answer) for answer in answers]

    def artifact(self, name: str, data: bytes | str, content_type: str = "") -> None:
        """Keep bytes from this run. Raises ArtifactError when they cannot be kept."""
        _kept(self._channel.wait_for(self._channel.ask(*_artifact_request(name, data, content_type))))


class LogRoom:
    """Sends log lines until the cap is reached, then says once that the rest is cut."""

    def __init__(self, channel: Channel, room_bytes: int) -> None:
        self._channel = channel
        self._left = room_bytes
        self._start = time.monotonic()

    def write(self, stream: str, text: str, level: str = "info", fields: dict[str, Any] | None = None) -> None:
        """One line, or several when it is long. Dropped when the room is used up; the worker is told once."""
        for start in range(0, min(len(text), self._left), MAX_LINE) or (0,):
            self._write_piece(stream, text[start : start + MAX_LINE], level, fields)

    def cut(self) -> None:
        """Say that what follows is not told."""
        if self._left > 0:
            self._left = 0
            self._channel.send({"t": "log", "stream": "log", "text": "", "cut": True})

    @property
    def left(self) -> int:
        """Bytes that may still be written; not above zero when the rest is cut."""
        return self._left

    def _write_piece(self, stream: str, text: str, level: str, fields: dict[str, Any] | None) -> None:
        if self._left <= 0:
            return
        from scrapeyard_sdk.script import clean

        text = clean(text[: self._left])
        self._left -= len(text.encode()) + 32 + (len(json.dumps(fields)) if fields else 0)
        at_ms = round((time.monotonic() - self._start) * 1000, 2)
        head = {"t": "log", "stream": stream, "text": text, "level": level, "fields": fields or {}, "at_ms": at_ms}
        self._channel.send({**head, "cut": self._left <= 0})


def _fetch_request(url: str, options: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    from scrapeyard_sdk.script import clean

    params = options.pop("params", None)
    if params:
        url += ("&" if "?" in url else "?") + urlencode(params, doseq=True)
    headers = {str(name): str(value) for name, value in (options.pop("headers", None) or {}).items()}
    body = _body(options, headers)
    method = str(options.pop("method", "POST" if body else "GET")).upper()
    head = {
        "t": "fetch",
        "url": _short("url", clean(str(url)), 16 * 1024),
        "method": _short("method", clean(method), 200),
        "headers": {_short("header", clean(k), 200): _short(k, clean(v), 64 * 1024) for k, v in headers.items()},
        "timeout_seconds": _within("timeout", options.pop("timeout", None), 3600.0, float),
        "follow_redirects": bool(options.pop("follow_redirects", True)),
        "max_bytes": _within("max_bytes", options.pop("max_bytes", None), 2**53, int),
    }
    if options:
        raise TypeError(f"fetch() has no option {', '.join(sorted(options))}")
    return head, body


def _short(name: str, text: str, most: int) -> str:
    if len(text) > most:
        raise ValueError(f"fetch(): {name} has {len(text)} characters and may have {most}")
    return text


def _within(name: str, value: Any, most: float, kind: type) -> Any:
    """None stays None; anything else must be a number above zero."""
    if value is None:
        return None
    if not isinstance(value, (int, float)) or not 0 < value <= most:
        raise ValueError(f"fetch(): {name} must be a number above 0 and at most {most:g}")
    return kind(value)


def _body(options: dict[str, Any], headers: dict[str, str]) -> bytes:
    kinds = [kind for kind in ("json", "form", "body") if options.get(kind) is not None]
    if len(kinds) > 1:
        raise TypeError(f"fetch() takes one of json, form and body, not {' and '.join(kinds)}")
    value: Any = options.pop(kinds[0]) if kinds else b""
    for kind in ("json", "form", "body"):
        options.pop(kind, None)
    if kinds == ["json"]:
        headers.setdefault("content-type", "application/json")
        return json.dumps(value).encode()
    if kinds == ["form"]:
        headers.setdefault("content-type", "application/x-www-form-urlencoded")
        return urlencode(value, doseq=True).encode()
    return value.encode() if isinstance(value, str) else bytes(value)


def _artifact_request(name: str, data: bytes | str, content_type: str) -> tuple[dict[str, Any], bytes]:
    from scrapeyard_sdk.script import clean

    raw = data.encode() if isinstance(data, str) else bytes(data)
    known = content_type or _TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
    if len(name) > 128 or len(known) > 200:
        raise ArtifactError("an artifact's name is at most 128 characters, its content type at most 200")
    return {"t": "artifact", "name": clean(name), "content_type": clean(known)}, raw


def _page(answer: Answer) -> Page:
    head, raw = answer
    if head["t"] == "page_error":
        raise FetchError(head["reason"], head["message"], head.get("site_status"))
    return Page(
        url=head["url"],
        status=head["status"],
        headers=head["headers"],
        body=raw,
        encoding=head["encoding"],
        elapsed_ms=head["elapsed_ms"],
        redirects=head["redirects"],
    )


def _kept(answer: Answer) -> None:
    if answer[0]["t"] != "kept":
        raise ArtifactError(answer[0].get("message", "the artifact was not kept"))


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """The first fields as JSON takes them; anything but short plain values as text."""
    from scrapeyard_sdk.script import clean

    plain: dict[str, Any] = {}
    for key, value in list(fields.items())[:_MAX_FIELDS]:
        plain[clean(key)[:100]] = value if _is_simple(value) else clean(as_text(value))[:2000]
    return plain


def _is_simple(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**53)


def as_text(value: Any) -> str:
    """Its `str`, or why there is none: a log line must never end a run."""
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - a script's own __str__ may do anything
        return f"({type(value).__name__} without text: {type(error).__name__})"
