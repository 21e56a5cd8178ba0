"""The browser contexts of one attempt: opened for its script, closed with it, with what they leave for its log and its
artifacts."""

import asyncio
import hashlib
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import PurePath
from typing import Any, Protocol

from msgspec.structs import replace

from scrapeyard.engines.browser.operations import AnyOperation, Goto
from scrapeyard.engines.browser.pages import answer_of, no_browser
from scrapeyard.engines.browser.port import (
    OPENED,
    BrowserContext,
    BrowserEngine,
    ContextOptions,
    Done,
    KeptFile,
    LogMessage,
    Perform,
)
from scrapeyard.engines.browser.widgets import solve_widget
from scrapeyard.engines.captcha.port import CaptchaEngine
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed, Unavailable
from scrapeyard.model import Artifact, ExitReason
from scrapeyard.telemetry.events import get_log
from scrapeyard.worker.attempts.live import LiveViews
from scrapeyard.worker.attempts.waiting import SiteWait

log = get_log("worker")
MAX_MESSAGES = 200
"""Messages of pages in the log of one attempt."""
_MAX_TEXT = 2000
_MAX_UNPAID = 20
_LEVELS = {"debug": "debug", "warning": "warning", "error": "error"}
"""By what the console calls it; the rest is `info`."""
_OPENABLE = ("http://", "https://", "about:blank", "data:")

_RETRY_SECONDS = 10.0
"""When to try again if too many runs wait for a browser."""


class Owner(Protocol):
    """The attempt that they belong to."""

    artifacts: dict[str, Artifact]

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Raises FetchFailed."""

    async def artifact(self, name: str, content_type: str, data: bytes) -> None:
        """Save an artifact. Raises Unavailable."""

    def say(self, words: str, level: str, **fields: str) -> None:
        """Add a line to the log."""

    def stepped(self, name: str, started: float, error: str) -> None:
        """Note a step in a browser that began at `started` by the performance counter. `error`: empty if it is done."""

    @property
    def artifact_room(self) -> int:
        """Bytes that artifacts may still take."""


class _Held:
    """One context, and the task that opens and closes it."""

    def __init__(self) -> None:
        self.opened: asyncio.Future[BrowserContext] = asyncio.get_running_loop().create_future()
        self.opened.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.closing = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def end(self) -> None:
        """Close it, or give up opening it, and wait until that is done. Goes on by itself if this is cancelled. May be
        called twice."""
        if self.task is not None and not self.opened.done() and not self.closing.is_set():
            self.task.cancel()
        self.closing.set()
        if self.task is not None:
            await asyncio.wait((self.task,))


class OpenBrowsers:
    """At most `most` contexts at once. `close` closes them all."""

    def __init__(
        self,
        engine: BrowserEngine | None,
        most: int,
        caller: Caller,
        owner: Owner,
        wait: SiteWait,
        *,
        live: LiveViews | None = None,
        captchas: CaptchaEngine | None = None,
    ) -> None:
        """`live` lets people watch the pages; None: nobody can."""
        self._engine = engine
        self._most = most
        self._caller = caller
        self._owner = owner
        self._wait = wait
        self._live = live
        self._captchas = captchas
        self._held: dict[int, _Held] = {}
        self._numbers = itertools.count(1)
        self._messages = 0
        self._unpaid: deque[LogMessage] = deque(maxlen=_MAX_UNPAID)
        """Documents that were opened and have not been counted as a fetch."""

    async def open_browser(self, options: ContextOptions) -> int:
        """Open a context; its number. The slot is free for others meanwhile. Raises FetchFailed."""
        if self._engine is None:
            raise no_browser()
        if len(self._held) >= self._most:
            words = f"a run may open {self._most} at once (browser.contexts_per_run); close it first, or open a tab"
            raise FetchFailed(ExitReason.BROWSER_STEP, words)
        number, held = next(self._numbers), _Held()
        self._held[number] = held
        held.task = asyncio.create_task(self._hold(self._engine, options, held))
        try:
            async with self._wait.fetching(), self._wait.waiting(_RETRY_SECONDS):
                await asyncio.shield(held.opened)
        except BaseException:
            await self.close_browser(number)
            raise
        return number

    async def browse(self, number: int, operation: AnyOperation, raw: bytes = b"") -> Done:
        """Perform a step. Raises FetchFailed."""
        held = self._held.get(number)
        if held is None or not held.opened.done() or held.closing.is_set():
            raise FetchFailed(ExitReason.BROWSER_STEP, "this page is closed; use it within its `with` block")
        url = getattr(operation, "url", "").lower()
        if url and not url.startswith(_OPENABLE):
            raise FetchFailed(ExitReason.FETCH_BAD_URL, f"{url[:200]} is no http or https URL")
        context = held.opened.result()
        if isinstance(operation, Goto) and url.startswith("http"):
            return await self._goto(context, operation)
        async with self._wait.fetching():
            done = await self._perform(context, operation, raw)
        await self._pay()
        return done

    async def solve_widget(self, number: int, tab: int, seconds: float | None) -> str:
        """Solve the captcha of a page; its token. Raises FetchFailed."""
        return await self.solve_in(partial(self.browse, number), tab, seconds)

    async def solve_in(self, perform: Perform, tab: int, seconds: float | None) -> str:
        """As `solve_widget`, in a context that was lent. Raises FetchFailed."""
        return await solve_widget(perform, self._captchas, self._caller, tab=tab, seconds=seconds)

    async def _goto(self, context: BrowserContext, operation: Goto) -> Done:
        """Open a page as a fetch does: in the site's turn, within the budgets, and noted among the fetches."""
        done: Done | None = None

        async def open_page() -> FetchResponse:
            nonlocal done
            began = time.perf_counter()
            done = await self._perform(context, operation)
            ms = (time.perf_counter() - began) * 1000
            return replace(answer_of(done), elapsed_ms=round(ms, 2), kept=0)  # its content stays in the browser

        await self._owner.fetch(FetchRequest(url=operation.url, engine="browser", via=open_page))
        if done is None:  # the engine replays what was recorded
            raise no_browser()
        if self._unpaid:
            self._unpaid.popleft()  # its own
        await self._pay()
        return done

    async def _pay(self) -> None:
        """Count documents that a click or a script opened as fetches, though they are there already: the next one waits
        the longer for the site's turn. Raises FetchFailed if the page may not be opened."""
        while self._unpaid:
            opened = self._unpaid.popleft()

            async def is_there(opened: LogMessage = opened) -> FetchResponse:
                status = int(opened.text) if opened.text.isdecimal() else 200
                return FetchResponse(
                    url=opened.url,
                    status=status,
                    headers=(),
                    body=b"",
                    encoding="utf-8",
                    elapsed_ms=0,
                    way="browser",
                    strategy="browser",
                    kept=0,
                )

            await self._owner.fetch(FetchRequest(url=opened.url, engine="browser", via=is_there))

    async def _perform(self, context: BrowserContext, operation: AnyOperation, raw: bytes = b"") -> Done:
        started, error = time.perf_counter(), ""
        try:
            return await context.perform(operation, raw)
        except FetchFailed as failure:
            error = failure.message
            raise
        finally:
            self._owner.stepped(type(operation).__name__.lower(), started, error)
            self._tell(context)

    async def close_browser(self, number: int) -> None:
        """Close a context. May be called twice."""
        held = self._held.get(number)
        if held is not None:
            await held.end()  # it is known until then, so that whoever closes all waits for it too
            self._held.pop(number, None)

    @asynccontextmanager
    async def lent(self, options: ContextOptions, client: str) -> AsyncIterator[Perform]:
        """A context for a built-in, closed at the end. Every client may call a built-in, so a session belongs to the
        client that named it. Raises FetchFailed."""
        if options.session and client:
            own = hashlib.sha256(f"{client}\n{options.session}".encode()).hexdigest()[:40]
            options = replace(options, session=own)
        number = await self.open_browser(options)
        try:
            yield partial(self.browse, number)
        finally:
            await self.close_browser(number)

    async def close(self) -> None:
        """Close all contexts. May be called twice."""
        await asyncio.gather(*map(self.close_browser, list(self._held)))

    async def _hold(self, engine: BrowserEngine, options: ContextOptions, held: _Held) -> None:
        """The life of a context. One task opens and closes it, whichever requests of the script ask for that."""
        context = None
        try:
            async with engine.open(options, self._caller) as context, self._watched(context):
                held.opened.set_result(context)
                await held.closing.wait()
        except FetchFailed as error:
            self._failed(held, error)
        except Exception as error:
            log.error("worker.fault", run=self._caller.run_id, error=repr(error), exc_info=error)
            self._failed(held, FetchFailed(ExitReason.BROWSER_CRASHED, f"a fault in the worker: {error!r}"[:200]))
        if context is not None:
            await self._settle(context)

    @asynccontextmanager
    async def _watched(self, context: BrowserContext) -> AsyncIterator[None]:
        if self._live is None:
            yield
            return
        self._live.add(self._caller.run_id, context)
        try:
            yield
        finally:
            await self._live.remove(self._caller.run_id, context)

    def _failed(self, held: _Held, error: FetchFailed) -> None:
        if held.opened.done():
            self._owner.say(f"the browser did not close well: {error.message}", "warning")
        else:
            held.opened.set_exception(error)

    async def _settle(self, context: BrowserContext) -> None:
        self._tell(context)
        for file in context.end.files if context.end is not None else ():
            try:
                await self._keep(file)
            except Unavailable as error:
                self._owner.say(f"{file.name} could not be kept: {error.message}", "warning")

    async def _keep(self, file: KeptFile) -> None:
        if len(file.data) > self._owner.artifact_room:
            self._owner.say(f"{file.name} does not fit beside the run's artifacts; limits.artifact_mb", "warning")
            return
        name = _free_name(file.name, self._owner.artifacts)
        await self._owner.artifact(name, file.content_type, file.data)

    def _tell(self, context: BrowserContext) -> None:
        """Write what pages said to the log."""
        for message in context.messages():
            if message.kind == OPENED:
                self._unpaid.append(message)
                continue
            self._messages += 1
            if self._messages <= MAX_MESSAGES:
                level = _LEVELS.get(message.kind, "info")
                self._owner.say(message.text[:_MAX_TEXT], level, url=message.url[:_MAX_TEXT])
            elif self._messages == MAX_MESSAGES + 1:
                self._owner.say(f"pages said more than {MAX_MESSAGES} messages; the rest is not logged", "warning")


def _free_name(name: str, taken: dict[str, Any]) -> str:
    """The name, with a number if there is such a file: `failure-2.png`."""
    path, number = PurePath(name), 2
    while name in taken:
        name, number = f"{path.stem}-{number}{path.suffix}", number + 1
    return name
