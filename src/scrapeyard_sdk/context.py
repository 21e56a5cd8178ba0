"""The context of a script: its input, its time limit, its log, and the engines."""

import json
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk.channel import Answer, Channel
from scrapeyard_sdk.fetch import extract_request, fetch_request
from scrapeyard_sdk.outcomes import ArtifactError, EnqueueError, FetchError
from scrapeyard_sdk.page import Page
from scrapeyard_sdk.state import AsyncState, SyncState
from scrapeyard_sdk.text import clean

if TYPE_CHECKING:
    from typing import Unpack

    from scrapeyard_sdk.browser.calls import BrowserOptions
    from scrapeyard_sdk.browser.page import BrowserPage, SyncBrowserPage
    from scrapeyard_sdk.fetch import ExtractOptions, FetchOptions

_LEVELS = ("debug", "info", "warning", "error")
MAX_LINE = 32 * 1024
"""Characters in one line of the log; a longer line becomes several."""
_MAX_FIELDS = 20
_PROGRESS_SECONDS = 0.1
"""Minimum seconds between two reports of progress; one in between is kept until the next."""
MAX_NOTE = 500
"""Characters of the message of a progress."""
MAX_INPUT = 256 * 1024
"""Bytes of the input of an item as JSON; the job keeps less."""
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
"""Content types by extension of an artifact's name. The sandbox hides the system's own table."""


class BaseContext:
    """What async and plain scripts share."""

    def __init__(self, channel: Channel, start: dict[str, Any], log_room: "LogRoom") -> None:
        self._channel = channel
        self._ends = time.monotonic() + float(start["seconds"])
        self._room = log_room
        self._max_fetches = self._fetches_left = int(start["fetches"])
        self._progress: dict[str, Any] | None = None
        self._progress_at = -math.inf
        self.run_id: str = start["run_id"]
        self.attempt: int = start["attempt"]
        self.input: dict[str, Any] = start["input"]
        self.config: dict[str, Any] = start["config"]

    def seconds_left(self) -> float:
        """Seconds until the platform ends the run; never negative."""
        return max(0.0, self._ends - time.monotonic())

    @property
    def deadline(self) -> float:
        """When the run is ended, on the clock of `time.monotonic()`."""
        return self._ends

    def log(self, message: str, level: str = "info", **fields: Any) -> None:
        """Write a line to the run's log, with fields. Read it at `/logs`, or live at `/events`."""
        self._room.write("log", as_text(message), level if level in _LEVELS else "info", _plain(fields))

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell how far the run is: the run's document, its events and the command line show it. Cheap to call often."""
        amounts = [None if each is None else _amount(each) for each in (done, total)]
        note = clean(as_text(message))[:MAX_NOTE]
        self._progress = {"t": "progress", "done": amounts[0], "total": amounts[1], "message": note}
        if time.monotonic() - self._progress_at >= _PROGRESS_SECONDS:
            self.send_progress()

    def send_progress(self) -> None:
        """Send the last progress, if it has not been sent."""
        if self._progress is not None:
            head, self._progress, self._progress_at = self._progress, None, time.monotonic()
            self._channel.send(head)

    def _fetch_request(self, url: str, options: dict[str, Any], keep: str = "") -> tuple[dict[str, Any], bytes]:
        """A request for a page. Raises FetchError once limits.fetches is used up; the worker counts too."""
        request = fetch_request(url, options, keep=keep)
        self.spend_fetch()
        return request

    def spend_fetch(self) -> None:
        """Count a page. Raises FetchError once limits.fetches is used up."""
        if self._fetches_left <= 0:
            raise FetchError("fetch_limit", too_many_fetches(self._max_fetches))
        self._fetches_left -= 1


def too_many_fetches(most: int) -> str:
    """Why a fetch is refused once `most` were made."""
    return f"this run may fetch {most} pages; raise limits.fetches"


class Context(BaseContext):
    """For `async def` scripts: every engine call is awaited."""

    def browser(self, **options: "Unpack[BrowserOptions]") -> "BrowserPage":
        """A page in the worker's browser: `async with ctx.browser(session="shop") as page:`. It is closed at the end of
        the block. Raises BrowserError.

        Options: session, device, width, height, locale, timezone, latitude, longitude, user_agent, headers,
        java_script, block, timeout (seconds), screenshot_on_failure, har, trace, video, console;
        `scrapeyard_sdk.browser.calls.BrowserOptions` says what each means.
        """
        from scrapeyard_sdk.browser.page import BrowserPage

        return BrowserPage(self, self._channel, dict(options))

    @property
    def state(self) -> AsyncState:
        """Small values that the scraper keeps between its runs."""
        return AsyncState(self._channel)

    async def enqueue(self, given: "str | dict[str, Any]", *, item_id: str = "") -> None:
        """Add an item to this run's job: a URL, or a whole input. An item that is there already is not added again:
        the same `item_id`, or the same input. The job's limits on items and depth hold. Raises EnqueueError outside of
        a job, and for an input that does not fit the scraper.

        Items are added when this one has ended, so an attempt that is tried again adds none.
        """
        _enqueued(await self._channel.request(*_item_request(given, item_id)))

    async def solve_image(self, data: bytes) -> str:
        """The text in a picture of a captcha: PNG, JPEG or GIF, at most 2 MB, 100 of them per run. It must be allowed:
        `policy.captcha`. Raises FetchError: `fetch_not_allowed`, or `fetch_captcha` if it cannot be read. The answer
        may be wrong; the page tells."""
        return _solved(await self._channel.request({"t": "solve"}, bytes(data)))

    async def extract(
        self, page: "Page | str", wanted: "str | dict[str, Any]", **options: "Unpack[ExtractOptions]"
    ) -> dict[str, Any]:
        """Data of a page, a `Page` or its HTML: `found = await ctx.extract(page, "title, price: number")`.

        `wanted` is a line of fields, a table of them, or a JSON schema. `found["data"]` has the values; of each,
        `found["fields"]` says how sure it is, where it stands and how it was found. Options: url, ai, fallback,
        sure, least, invented, learn, as of `builtin/extract`. Counts as a fetch. Raises FetchError: `bad_input`,
        `bad_result` if the data do not fit the schema, `ai_unavailable`.
        """
        self.spend_fetch()
        return _extracted(await self._channel.request(*extract_request(page, wanted, dict(options))))

    async def fetch(self, url: str, **options: "Unpack[FetchOptions]") -> Page:
        """Get a page through the worker's engines. Any status is a page; raises FetchError when none came.

        Options: method, params, headers, json, form, files, body, range, session, profile, proxy, engine, certificate,
        max_age, timeout (seconds), follow_redirects, max_bytes; with engine="browser" also wait_for, wait_until,
        scroll, screenshot, full_page, block, device, locale, timezone; `scrapeyard_sdk.fetch.FetchOptions` says what
        each means.
        """
        return _page(await self._channel.request(*self._fetch_request(url, dict(options))), self.fetch)

    async def fetch_all(self, urls: Iterable[str], **options: "Unpack[FetchOptions]") -> list[Page]:
        """Get several pages at once, in the order asked. Raises the first FetchError."""
        import asyncio

        return list(await asyncio.gather(*(self.fetch(url, **options) for url in urls)))

    async def download(self, url: str, name: str, **options: "Unpack[FetchOptions]") -> Page:
        """Save a page as an artifact without loading it into memory; for large files. Options as in `fetch`.

        Returns the page without its body; `size` is the number of bytes saved. Raises FetchError, also for a status
        outside 200 to 299, and ArtifactError if it cannot be saved. The limit is limits.artifact_mb or `max_bytes`.
        """
        return _downloaded(
            await self._channel.request(*self._fetch_request(url, dict(options), keep=artifact_name(name)))
        )

    async def artifact(self, name: str, data: bytes | str, content_type: str = "") -> None:
        """Save bytes as an artifact of this run. Raises ArtifactError if they cannot be saved."""
        _kept(await self._channel.request(*_artifact_request(name, data, content_type)))


class SyncContext(BaseContext):
    """For plain `def` scripts: every engine call blocks."""

    def browser(self, **options: "Unpack[BrowserOptions]") -> "SyncBrowserPage":
        """A page in the worker's browser: `with ctx.browser() as page:`. Options and errors as in
        `Context.browser`."""
        from scrapeyard_sdk.browser.page import SyncBrowserPage

        return SyncBrowserPage(self, self._channel, dict(options))

    @property
    def state(self) -> SyncState:
        """Small values that the scraper keeps between its runs."""
        return SyncState(self._channel)

    def enqueue(self, given: "str | dict[str, Any]", *, item_id: str = "") -> None:
        """Add an item to this run's job. As `Context.enqueue`."""
        _enqueued(self._channel.wait_for(self._channel.ask(*_item_request(given, item_id))))

    def solve_image(self, data: bytes) -> str:
        """The text in a picture of a captcha. As `Context.solve_image`."""
        return _solved(self._channel.wait_for(self._channel.ask({"t": "solve"}, bytes(data))))

    def extract(
        self, page: "Page | str", wanted: "str | dict[str, Any]", **options: "Unpack[ExtractOptions]"
    ) -> dict[str, Any]:
        """Data of a page. As `Context.extract`."""
        self.spend_fetch()
        return _extracted(self._channel.wait_for(self._channel.ask(*extract_request(page, wanted, dict(options)))))

    def fetch(self, url: str, **options: "Unpack[FetchOptions]") -> Page:
        """Get a page through the worker's HTTP engine. Options and errors as in `Context.fetch`."""
        return _page(self._channel.wait_for(self._channel.ask(*self._fetch_request(url, dict(options)))), self.fetch)

    def fetch_all(self, urls: Iterable[str], **options: "Unpack[FetchOptions]") -> list[Page]:
        """Get several pages at once, in the order asked. Raises the first FetchError."""
        numbers = [self._channel.ask(*self._fetch_request(url, dict(options))) for url in urls]
        answers = [self._channel.wait_for(number) for number in numbers]
        return [_page(answer, self.fetch) for answer in answers]

    def download(self, url: str, name: str, **options: "Unpack[FetchOptions]") -> Page:
        """Save a page as an artifact without loading it into memory. Options and errors as in
        `Context.download`."""
        number = self._channel.ask(*self._fetch_request(url, dict(options), keep=artifact_name(name)))
        return _downloaded(self._channel.wait_for(number))

    def artifact(self, name: str, data: bytes | str, content_type: str = "") -> None:
        """Save bytes as an artifact of this run. Raises ArtifactError if they cannot be saved."""
        _kept(self._channel.wait_for(self._channel.ask(*_artifact_request(name, data, content_type))))


class LogRoom:
    """Sends log lines until the limit is reached, then reports once that the rest is cut."""

    def __init__(self, channel: Channel, room_bytes: int) -> None:
        self._channel = channel
        self._left = room_bytes
        self._start = time.monotonic()

    def write(self, stream: str, text: str, level: str = "info", fields: dict[str, Any] | None = None) -> None:
        """One line, or several when it is long. Dropped once the limit is reached; the worker is notified once."""
        for start in range(0, min(len(text), self._left), MAX_LINE) or (0,):
            self._write_piece(stream, text[start : start + MAX_LINE], level, fields)

    def cut(self) -> None:
        """Report that later lines are dropped."""
        if self._left > 0:
            self._left = 0
            self._channel.send({"t": "log", "stream": "log", "text": "", "cut": True})

    @property
    def left(self) -> int:
        """Bytes that may still be written; zero or less once the rest is cut."""
        return self._left

    def _write_piece(self, stream: str, text: str, level: str, fields: dict[str, Any] | None) -> None:
        if self._left <= 0:
            return
        text = clean(text[: self._left])
        self._left -= len(text.encode()) + 32 + (len(json.dumps(fields)) if fields else 0)
        at_ms = round((time.monotonic() - self._start) * 1000, 2)
        head = {"t": "log", "stream": stream, "text": text, "level": level, "fields": fields or {}, "at_ms": at_ms}
        self._channel.send({**head, "cut": self._left <= 0})


def _artifact_request(name: str, data: bytes | str, content_type: str) -> tuple[dict[str, Any], bytes]:
    raw = data.encode() if isinstance(data, str) else bytes(data)
    known = content_type or _TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
    if len(known) > 200:
        raise ArtifactError("an artifact's content type has at most 200 characters")
    return {"t": "artifact", "name": artifact_name(name), "content_type": clean(known)}, raw


def artifact_name(name: str) -> str:
    """The same name, if it is short enough to be sent. Raises ArtifactError."""
    if not 0 < len(name) <= 128:
        raise ArtifactError("an artifact's name has 1 to 128 characters")
    return clean(name)


def _item_request(given: object, item_id: str) -> tuple[dict[str, Any], bytes]:
    if not isinstance(given, (str, dict)):
        raise EnqueueError(f"enqueue takes a URL or an input, not {type(given).__name__}")
    try:
        raw = json.dumps(given, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise EnqueueError(f"the input is not JSON: {error}") from None
    if len(raw) > MAX_INPUT or len(str(item_id)) > 128:
        raise EnqueueError(f"an input has at most {MAX_INPUT} bytes, and an item_id 128 characters")
    return {"t": "enqueue", "item_id": clean(str(item_id))}, raw


def _enqueued(answer: Answer) -> None:
    if answer[0]["t"] != "enqueued":
        raise EnqueueError(answer[0].get("message", "the item was not added"))


def _amount(value: Any) -> float:
    """A number for a progress, never negative; 0 for what is no number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(0.0, number), 1e12) if math.isfinite(number) else 0.0


def _extracted(answer: Answer) -> dict[str, Any]:
    if answer[0]["t"] != "extracted":
        raise _fetch_error({"reason": "bad_input", "message": "there is nothing that extracts here", **answer[0]})
    found: dict[str, Any] = json.loads(answer[1])
    return found


def _solved(answer: Answer) -> str:
    if answer[0]["t"] == "page_error":
        raise _fetch_error(answer[0])
    text: str = answer[0]["text"]
    return text


def _fetch_error(head: dict[str, Any]) -> FetchError:
    return FetchError(head["reason"], head["message"], head.get("site_status"), head.get("retry_after"))


def _page(answer: Answer, fetch: Callable[..., Any] | None = None) -> Page:
    head, raw = answer
    if head["t"] == "page_error":
        raise _fetch_error(head)
    if head["t"] == "kept_error":
        raise ArtifactError(head.get("message", "the page was not kept"))
    return Page(
        url=head["url"],
        status=head["status"],
        headers=head["headers"],
        body=raw,
        encoding=head["encoding"],
        elapsed_ms=head["elapsed_ms"],
        redirects=head["redirects"],
        age_seconds=head.get("age_seconds"),
        way=head.get("way", ""),
        size=head.get("kept"),
        fetch=fetch,
    )


def _downloaded(answer: Answer) -> Page:
    page = _page(answer)
    if not page.ok:
        page.raise_for_status()
        raise FetchError("fetch_status", f"{page.url} answered {page.status}", site_status=page.status)
    return page


def _kept(answer: Answer) -> None:
    if answer[0]["t"] != "kept":
        raise ArtifactError(answer[0].get("message", "the artifact was not kept"))


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """The first fields as JSON values; anything but short plain values becomes text."""
    plain: dict[str, Any] = {}
    for key, value in list(fields.items())[:_MAX_FIELDS]:
        plain[clean(key)[:100]] = value if _is_simple(value) else clean(as_text(value))[:2000]
    return plain


def _is_simple(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**53)


def as_text(value: Any) -> str:
    """Its `str`, or why that failed: a log line must never end a run."""
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - a script's own __str__ may do anything
        return f"({type(value).__name__} without text: {type(error).__name__})"
