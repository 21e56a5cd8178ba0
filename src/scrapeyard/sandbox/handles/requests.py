"""What a child asks for while it runs: pages, downloads, a browser, captchas, data of pages, artifacts, its state,
items. Serves them within the run's limits."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from scrapeyard.engines.browser.operations import OPENING
from scrapeyard.engines.browser.port import ContextOptions, Done
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, FetchFailed, ScrapeyardError, Unavailable
from scrapeyard.model import ExitReason, Limits
from scrapeyard.sandbox.handles.frames import (
    BrowserCall,
    BrowserFrame,
    EnqueueFrame,
    ExtractFrame,
    FetchFrame,
    Head,
    KeepArtifact,
    Request,
    SolveFrame,
    StateCall,
    WidgetCall,
    browser_call,
    failure_head,
    page_head,
    request_of,
    solved_head,
)
from scrapeyard.sandbox.handles.unread import FetchGate
from scrapeyard.sandbox.port import BrowserServices, ChildServices
from scrapeyard_sdk.context import too_many_fetches
from scrapeyard_sdk.state import MAX_VALUE

ARTIFACT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_BAD_NAME = "an artifact's name is letters, digits, dots, dashes; at most 128"
_WAITING_REQUESTS = 64 * 1024 * 1024
"""Maximum bytes of requests that wait for their answer, heads and bodies."""
_REQUEST_COST = 1024
"""Minimum bytes counted for each of them."""
_STEP_COST = 640 * 1024
"""Minimum bytes counted for each step in a browser, so that about a hundred wait at most."""
_ARTIFACT_COST = 4096
"""Minimum bytes counted for each artifact: even a tiny file costs the store something."""
_STATE_CALLS = 10_000
"""Maximum times that a run reads or changes its state; each is a transaction."""
_MB = 1024 * 1024


class Asker(Protocol):
    """The conversation that the requests belong to."""

    def answer(self, head: Head, raw: bytes = b"") -> None:
        """Send a frame to the child."""

    def spawn(self, work: "asyncio._CoroutineLike[None]") -> None:
        """Run until it is done or the conversation ends."""

    def count_refusal(self, why: str) -> None:
        """A request was refused; too many end the run."""


class ChildRequests:
    """Serves one run."""

    def __init__(self, asker: Asker, limits: Limits, services: ChildServices, gate: FetchGate) -> None:
        self._asker = asker
        self._limits = limits
        self._services = services
        self._gate = gate
        self._fetches = 0
        self._waiting_bytes = 0
        self._artifact_bytes = 0
        self._state_calls = 0
        self._downloading = asyncio.Lock()
        self._stating = asyncio.Lock()
        self.store_fault = ""
        """Why the platform could not save something for the run; empty if it could."""

    def serve(self, frame: Request, raw: bytes) -> None:
        """Answer the frame, now or later."""
        match frame:
            case FetchFrame():
                self.fetch(frame, raw)
            case BrowserFrame():
                self.browser(frame, raw)
            case SolveFrame():
                self._serve(frame.n, _REQUEST_COST + len(raw), lambda: self._solve(frame, raw), is_fetch=False)
            case ExtractFrame():
                self._serve(frame.n, _REQUEST_COST + len(raw), lambda: self._extract(frame, raw), is_fetch=True)
            case KeepArtifact():
                self.artifact(frame, raw)
            case StateCall():
                self.state(frame, raw)
            case EnqueueFrame():
                self.enqueue(frame, raw)

    def fetch(self, frame: FetchFrame, raw: bytes) -> None:
        """The child wants a page, or one downloaded."""
        size = _REQUEST_COST + len(raw) + frame.head_size
        if frame.keep:
            self._serve(frame.n, size, lambda: self._send_download(frame, request_of(frame, raw)), is_fetch=True)
        elif self._accepts(frame.n, size, is_fetch=True):
            self._asker.spawn(self._send_page(frame, request_of(frame, raw), size))

    def browser(self, frame: BrowserFrame, raw: bytes) -> None:
        """The child opens, uses or closes a page in a browser."""
        try:
            given = browser_call(frame, raw)
        except BadRequest as error:
            self._asker.answer(failure_head(frame.n, FetchFailed(ExitReason.BROWSER_STEP, error.message)))
            return
        size, files = _STEP_COST + len(raw), raw[frame.size :]
        self._serve(frame.n, size, lambda: self._browse(frame, given, files), is_fetch=isinstance(given, OPENING))

    def artifact(self, frame: KeepArtifact, raw: bytes) -> None:
        """The child wants bytes saved."""
        self._artifact_bytes += max(len(raw), _ARTIFACT_COST)
        if not ARTIFACT_NAME.fullmatch(frame.name):
            self._refuse_artifact(frame.n, _BAD_NAME)
        elif self._artifact_bytes > self._limits.artifact_mb * _MB:
            self._refuse_artifact(frame.n, self._no_room())
        else:
            self._asker.spawn(self._keep(frame, raw))

    def state(self, call: StateCall, raw: bytes) -> None:
        """The child reads or changes its scraper's state: one call after another."""
        self._state_calls += 1
        if self._state_calls > _STATE_CALLS:
            self._refuse(call.n, f"a run may use its state {_STATE_CALLS} times")
        elif len(raw) > 2 * MAX_VALUE + 16:
            self._refuse(call.n, f"a value of the state has at most {MAX_VALUE} bytes")
        else:
            self._asker.spawn(self._state(call, raw))

    def enqueue(self, frame: EnqueueFrame, raw: bytes) -> None:
        """The child found an item for its job."""
        try:
            self._services.enqueue(raw, frame.item_id)
        except ScrapeyardError as error:
            self._refuse(frame.n, error.message)
        else:
            self._asker.answer({"t": "enqueued", "n": frame.n})

    async def _state(self, call: StateCall, raw: bytes) -> None:
        try:
            async with self._stating:
                if call.action == "get":
                    found = await self._services.read_state(call.key)
                    self._asker.answer({"t": "state", "n": call.n, "done": found is not None}, found or b"")
                    return
                done = await self._services.change_state(call.key, *_change_of(call, raw))
            self._asker.answer({"t": "state", "n": call.n, "done": done})
        except ScrapeyardError as error:
            if isinstance(error, Unavailable):
                self.store_fault = error.message
            self._refuse(call.n, error.message)

    def _refuse(self, number: int, message: str) -> None:
        self._asker.answer({"t": "refused", "n": number, "message": message})
        self._asker.count_refusal(message)

    def _serve(self, number: int, size: int, work: Callable[[], Awaitable[None]], *, is_fetch: bool) -> None:
        """Do the work of a request of `size` bytes, if the limits allow it."""
        if self._accepts(number, size, is_fetch=is_fetch):
            self._asker.spawn(self._answer(number, size, work))

    def _accepts(self, number: int, size: int, *, is_fetch: bool) -> bool:
        """Whether the limits allow a request. It is counted if they do, and answered if not."""
        self._fetches += is_fetch
        refusal = None
        if is_fetch and self._fetches > self._limits.fetches:
            refusal = FetchFailed(ExitReason.FETCH_LIMIT, too_many_fetches(self._limits.fetches))
        elif self._waiting_bytes + size > _WAITING_REQUESTS:
            words = "too many requests wait, or they are too large together; wait for some answers first"
            refusal = FetchFailed(ExitReason.FETCH_NOT_ALLOWED, words)
        if refusal is not None:
            self._asker.answer(failure_head(number, refusal))
            self._asker.count_refusal(refusal.message)
            return False
        self._waiting_bytes += size
        return True

    async def _answer(self, number: int, size: int, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (ScrapeyardError, ValueError) as error:
            self._tell_failure(number, error)
        finally:
            self._waiting_bytes -= size

    async def _send_page(self, frame: FetchFrame, request: FetchRequest, size: int) -> None:
        """As `_answer`, for a page: most requests, so in one step."""
        gate = self._gate
        try:
            picture = _picture(frame)
            if not gate.enter():
                await gate.wait()
            try:
                page = await self._services.fetch(request)
                gate.note_size(len(page.body))
            finally:
                gate.leave()
            if picture and page.screenshot:
                await self._save_picture(picture, page.screenshot)
            self._asker.answer(page_head(frame.n, page), page.body)
        except (ScrapeyardError, ValueError) as error:
            self._tell_failure(frame.n, error)
        finally:
            self._waiting_bytes -= size

    def _tell_failure(self, number: int, error: ScrapeyardError | ValueError) -> None:
        if isinstance(error, FetchFailed):
            self._asker.answer(failure_head(number, error))
        elif isinstance(error, ScrapeyardError):
            self._not_saved(number, error)
        else:
            large = FetchFailed(ExitReason.FETCH_TOO_LARGE, f"the page does not fit: {error}")
            self._asker.answer(failure_head(number, large))

    async def _save_picture(self, name: str, png: bytes) -> None:
        self._artifact_bytes += max(len(png), _ARTIFACT_COST)
        if self._artifact_bytes > self._limits.artifact_mb * _MB:
            raise BadRequest(self._no_room())
        await self._services.artifact(name, "image/png", png)

    async def _send_download(self, frame: FetchFrame, request: FetchRequest) -> None:
        _picture(frame)
        page = await self._download(frame.keep, request)
        self._asker.answer(page_head(frame.n, page), page.body)

    async def _browse(self, frame: BrowserFrame, given: BrowserCall, files: bytes) -> None:
        if given is None or isinstance(given, ContextOptions):
            head, raw = await browser_answer(self._services, frame, given, files)
        else:
            async with self._gate:
                head, raw = await browser_answer(self._services, frame, given, files)
                self._gate.note_size(len(raw))
        self._asker.answer(head, raw)

    async def _solve(self, frame: SolveFrame, image: bytes) -> None:
        try:
            text = await self._services.solve_image(image)
        except FetchFailed as failure:
            if failure.reason is ExitReason.FETCH_NOT_ALLOWED:
                self._asker.count_refusal(failure.message)
            raise
        self._asker.answer(solved_head(frame.n, text))

    async def _extract(self, frame: ExtractFrame, raw: bytes) -> None:
        """A call that is no fault of a page costs a refusal, so that a script cannot ask in a loop."""
        try:
            given = msgspec.json.decode(raw, type=dict[str, Any])
            found = await self._services.extract(given)
        except (msgspec.MsgspecError, RecursionError, BadRequest) as error:
            words = error.message if isinstance(error, BadRequest) else f"the call is not JSON: {error}"
            self._asker.count_refusal(words)
            raise FetchFailed(ExitReason.BAD_INPUT, words) from None
        self._asker.answer({"t": "extracted", "n": frame.n}, msgspec.json.encode(found))

    async def _download(self, name: str, request: FetchRequest) -> FetchResponse:
        """One download at a time, because each reserves the artifact bytes it may use."""
        if not ARTIFACT_NAME.fullmatch(name):
            raise BadRequest(_BAD_NAME)
        async with self._downloading:
            room = int(self._limits.artifact_mb * _MB) - self._artifact_bytes
            if room <= 0:
                raise BadRequest(self._no_room())
            taken = room if request.max_bytes is None else min(room, request.max_bytes)
            self._artifact_bytes += taken
            try:
                page = await self._services.download(msgspec.structs.replace(request, max_bytes=taken), name)
            except BaseException:
                self._artifact_bytes += _ARTIFACT_COST - taken
                raise
            self._artifact_bytes += max(page.kept or 0, _ARTIFACT_COST) - taken
            return page

    async def _keep(self, frame: KeepArtifact, raw: bytes) -> None:
        try:
            await self._services.artifact(frame.name, frame.content_type, raw)
        except ScrapeyardError as error:
            self._not_saved(frame.n, error)
        else:
            self._asker.answer({"t": "kept", "n": frame.n})

    def _not_saved(self, number: int, error: ScrapeyardError) -> None:
        if isinstance(error, Unavailable):
            self.store_fault = error.message
        self._refuse_artifact(number, error.message)

    def _no_room(self) -> str:
        return f"artifacts may take {self._limits.artifact_mb:g} MB; limits.artifact_mb"

    def _refuse_artifact(self, number: int, message: str) -> None:
        self._asker.answer({"t": "kept_error", "n": number, "message": message})
        self._asker.count_refusal(message)


def _picture(frame: FetchFrame) -> str:
    """The artifact that a picture of the page goes to; empty: none is made. Raises BadRequest."""
    name = frame.browser.screenshot if frame.browser is not None else ""
    if name and not ARTIFACT_NAME.fullmatch(name):
        raise BadRequest(_BAD_NAME)
    return name


async def browser_answer(
    services: BrowserServices, frame: BrowserFrame, given: BrowserCall, files: bytes
) -> tuple[dict[str, Any], bytes]:
    """Do what the frame asks for; the frame that answers it. Raises FetchFailed."""
    head: dict[str, Any] = {"t": "browser", "n": frame.n}
    if given is None:
        await services.close_browser(frame.b)
        return head, b""
    if isinstance(given, ContextOptions):
        return {**head, "b": await services.open_browser(given)}, b""
    if isinstance(given, WidgetCall):
        done = Done(Raw(msgspec.json.encode(await services.solve_widget(frame.b, given.tab, given.timeout))))
    else:
        done = await services.browse(frame.b, given, files)
    value = bytes(done.value)
    return {**head, "size": len(value)}, value + done.raw


def _change_of(call: StateCall, raw: bytes) -> tuple[bytes | None, bytes | None, bool]:
    """The new value, the value before it, and whether that one counts. Raises BadRequest for what is not JSON."""
    if call.action == "delete":
        return None, None, False
    try:
        values = (
            [bytes(each) for each in msgspec.json.decode(raw, type=list[msgspec.Raw])]
            if call.action == "update"
            else [raw]
        )
        for value in values:
            msgspec.json.decode(value)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        raise BadRequest("a value of the state must be JSON") from None
    if len(values) != (2 if call.action == "update" else 1) or max(map(len, values)) > MAX_VALUE:
        raise BadRequest(f"a value of the state has at most {MAX_VALUE} bytes")
    return values[-1], values[0] if call.action == "update" else None, call.action == "update"
