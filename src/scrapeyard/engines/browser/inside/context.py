"""One context of the browser: its tabs, what happens in them unasked, and the operations that are performed in them."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw
from msgspec.json import encode

from scrapeyard.background import Background
from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.inside.blocking import Blocking
from scrapeyard.engines.browser.inside.console import listen
from scrapeyard.engines.browser.inside.steps.deadline import within
from scrapeyard.engines.browser.inside.steps.failures import (
    crashed,
    explain,
    is_gone,
    step_failed,
    timed_out,
    too_large,
)
from scrapeyard.engines.browser.inside.steps.performing import ACTING, CONTEXT_WIDE, PERFORMERS
from scrapeyard.engines.browser.inside.steps.responses import ResponseLog
from scrapeyard.engines.browser.inside.steps.step import Step, describe
from scrapeyard.engines.browser.port import OPENED, Done, HostContext, LogMessage
from scrapeyard.errors import FetchFailed

if TYPE_CHECKING:
    from patchright.async_api import (
        BrowserContext,
        CDPSession,
        ConsoleMessage,
        Dialog,
        Download,
        Page,
        Response,
        WebError,
    )  # fmt: skip

    from scrapeyard.engines.browser.inside.film import Film
    from scrapeyard.engines.browser.inside.launch import Driver

MAX_TABS: Final = 20
"""Open at once; further ones are closed."""
MAX_NUMBERS: Final = 101
_MAX_DIALOGS: Final = 100
_MAX_MESSAGE: Final = 2000
_GRACE: Final = 0.5
"""Seconds that the driver has for saying itself that time is up: it knows better what it waited for."""


class Tab:
    """One page of a context."""

    def __init__(self, number: int, page: "Page", opened_at: int) -> None:
        self.number = number
        self.page = page
        self.lock = asyncio.Lock()
        self.acted_at = 0
        """Number of the first answer that came after the last operation which acts began."""
        self.opened_before = opened_at
        """Tabs that there were when that operation began."""
        self.has_crashed = False
        self.is_prepared = False
        self.session: CDPSession | None = None

    @property
    def is_gone(self) -> bool:
        """Whether nothing can be done with it any more."""
        return self.has_crashed or self.page.is_closed()


class HeldContext:
    """A context in the browser. `start` before use; `close` of `evidence.py` ends it."""

    def __init__(
        self,
        context: HostContext,
        native: "BrowserContext",
        driver: "Driver",
        say: Callable[[LogMessage], None],
        locale: str = "",
    ) -> None:
        """`locale`: of numbers and dates, where the browser itself has the language and the driver was not told."""
        self.options = context.options
        self._locale = locale
        self.max_bytes = context.max_bytes
        self.first_state = context.state
        self.native = native
        self.driver = driver
        self.responses = ResponseLog()
        self.blocking = Blocking(context.options.block)
        self.dialogs: deque[dict[str, str]] = deque(maxlen=_MAX_DIALOGS)
        self.accepts_dialogs = False
        self.dialog_text = ""
        self.pages = 0
        self.has_failed = False
        """Whether the last operation did."""
        self.keeps_storage = True
        """Whether its local storage can be read and written."""
        self.film: Film | None = None
        """None: none is made here."""
        self.live_view: asyncio.Task[None] | None = None
        self.background = Background()
        self._say = say
        self._tabs: list[Tab] = []
        self._tab_opened = asyncio.Event()
        self._wanted: deque[asyncio.Future[Download]] = deque()

    async def start(self) -> None:
        """Listen to what happens, and open the first tab."""
        self.native.on("page", self._add_tab)
        self.native.on("dialog", self._answer_dialog)
        self.native.on("response", self._note_response)
        if self.options.evidence.console and self.driver.hears_console:
            self.native.on("console", self._note_console)
            self.native.on("weberror", self._note_error)
        await self.blocking.start(self.native)
        await self.native.new_page()
        await self._prepare(self._tabs[0])

    @property
    def open_tabs(self) -> list[Tab]:
        """In the order in which they were opened."""
        return [tab for tab in self._tabs if not tab.is_gone]

    def seconds(self, operation: do.Operation) -> float:
        """How long it may take."""
        if isinstance(operation, do.Wait):
            return operation.seconds + 1
        return self.options.timeout if operation.timeout is None else operation.timeout

    async def perform(self, operation: do.Operation, raw: bytes) -> Done:
        """As `BrowserHost.perform`."""
        tab = await self._find_tab(operation)
        async with tab.lock:
            try:
                done = await self._perform(tab, operation, raw)
            except FetchFailed:
                self.has_failed = True
                raise
            self.has_failed = False
            return done

    async def _perform(self, tab: Tab, operation: do.Operation, raw: bytes) -> Done:
        what = describe(operation)
        if self._is_dead(tab):
            raise crashed(f"{what}: the page crashed")
        if type(operation) in ACTING:
            tab.acted_at, tab.opened_before = self.responses.count, len(self._tabs)
        step = Step(self, tab, operation, raw)
        try:
            result = await within(step.seconds + _GRACE, PERFORMERS[type(operation)](step, operation))
        except (TimeoutError, self.driver.timeout_error):
            raise timed_out(what, step.seconds) from None
        except self.driver.error as error:
            raise crashed(f"{what}: the page crashed") if await self._has_died(tab) else explain(error, what) from None
        return self._bounded(result, what)

    def _bounded(self, result: Any, what: str) -> Done:
        try:
            done = result if isinstance(result, Done) else Done(Raw(encode(result, enc_hook=str)))
        except (RecursionError, TypeError, ValueError) as error:
            raise step_failed(f"{what}: what it returned is not JSON: {error}") from None
        if len(done.raw) > self.max_bytes or len(bytes(done.value)) > self.max_bytes:
            raise too_large(f"{what}: what it returned", self.max_bytes)
        return done

    async def _find_tab(self, operation: do.Operation) -> Tab:
        if type(operation) in CONTEXT_WIDE and self._tabs:
            return self._tabs[min(operation.tab, len(self._tabs) - 1)]
        if operation.tab >= len(self._tabs):
            raise step_failed(f"{describe(operation)}: there is no tab {operation.tab}; there are {len(self._tabs)}")
        tab = self._tabs[operation.tab]
        if tab.page.is_closed() and not await self._has_died(tab):
            raise step_failed(f"{describe(operation)}: tab {operation.tab} is closed")
        return tab

    async def open_tab(self) -> Tab:
        """A new one. Raises FetchFailed when there are too many."""
        if self._is_full():
            raise step_failed(f"a context has at most {MAX_TABS} open tabs, and {MAX_NUMBERS} in all; close some")
        page = await self.native.new_page()
        tab = next(tab for tab in self._tabs if tab.page is page)
        await self._prepare(tab)
        return tab

    async def wait_for_tab(self, opener: Tab) -> Tab:
        """The first that was opened since the last operation of `opener` which acts. Returned once."""
        while True:
            if new := [tab for tab in self._tabs[opener.opened_before :] if not tab.is_gone]:
                opener.opened_before = new[0].number + 1
                return new[0]
            self._tab_opened.clear()
            await self._tab_opened.wait()

    def want_download(self) -> "asyncio.Future[Download]":
        """The next download; those that nobody wants are cancelled."""
        wanted: asyncio.Future[Download] = asyncio.get_running_loop().create_future()
        self._wanted.append(wanted)
        return wanted

    async def devtools(self, tab: Tab, what: str) -> "CDPSession":
        """The tab's session of Chromium's protocol: what it sets holds as long as it does. Raises FetchFailed for other
        browsers."""
        if tab.session is None:
            tab.session = await self.new_devtools(tab, what)
        return tab.session

    async def new_devtools(self, tab: Tab, what: str) -> "CDPSession":
        """One to detach."""
        try:
            return await self.native.new_cdp_session(tab.page)
        except self.driver.error:
            raise step_failed(f"{what}: only Chromium can do this") from None

    async def _prepare(self, tab: Tab) -> None:
        """What holds for each tab and the driver does not see to. Once."""
        if tab.is_prepared:
            return
        tab.is_prepared = True
        with suppress(self.driver.error):  # a locale holds for a process, and another tab there may have set it
            if self._locale:
                session = await self.devtools(tab, "locale")
                await session.send("Emulation.setLocaleOverride", {"locale": self._locale})
        with suppress(self.driver.error, FetchFailed):
            if self.options.evidence.console and not self.driver.hears_console:
                await listen(self, tab)

    def _is_dead(self, tab: Tab) -> bool:
        browser = self.native.browser
        return tab.has_crashed or (browser is not None and not browser.is_connected())

    async def _has_died(self, tab: Tab) -> bool:
        """As `_is_dead`, but sure of a tab that is closed: the driver closes the tabs of a browser that died before it
        tells that the browser is gone."""
        if tab.page.is_closed() and not self._is_dead(tab):
            try:
                async with asyncio.timeout(_GRACE):
                    await self.native.cookies()
            except self.driver.error as error:
                return is_gone(error)
            except TimeoutError:
                return False
        return self._is_dead(tab)

    def _is_full(self) -> bool:
        return len(self.open_tabs) >= MAX_TABS or len(self._tabs) >= MAX_NUMBERS

    def _add_tab(self, page: "Page") -> None:
        if self._is_full():
            self.background.spawn(self._quietly(page.close()), name="close-tab")
            return
        tab = Tab(len(self._tabs), page, len(self._tabs) + 1)
        page.on("crash", lambda _: self._note_crash(tab))
        page.on("download", self._take_download)
        self._tabs.append(tab)
        self._tab_opened.set()
        if len(self._tabs) > 1:  # a page may have opened it
            self.background.spawn(self._prepare(tab), name="prepare-tab")

    def _note_crash(self, tab: Tab) -> None:
        tab.has_crashed = True

    def _take_download(self, download: "Download") -> None:
        while self._wanted and self._wanted[0].done():
            self._wanted.popleft()
        if self._wanted:
            self._wanted.popleft().set_result(download)
        else:
            self.background.spawn(self._quietly(download.cancel()), name="cancel-download")

    async def _answer_dialog(self, dialog: "Dialog") -> None:
        self.dialogs.append({"type": dialog.type, "message": dialog.message[:_MAX_MESSAGE]})
        with suppress(self.driver.error):
            if dialog.type == "beforeunload":
                await dialog.accept()  # else nobody could leave the page
            elif self.accepts_dialogs:
                await dialog.accept(self.dialog_text if dialog.type == "prompt" else "")
            else:
                await dialog.dismiss()

    def _note_response(self, response: "Response") -> None:
        self.responses.note(response)
        with suppress(self.driver.error):  # a service worker's has no frame
            is_page = response.request.is_navigation_request() and response.frame.parent_frame is None
            if is_page and not 300 <= response.status < 400:
                self.pages += 1
                self._say(LogMessage(kind=OPENED, text=str(response.status), url=response.url[:8192]))

    def warn(self, text: str) -> None:
        """Tell whoever reads the run's log."""
        self._say(LogMessage(kind="warning", text=text))

    def say(self, message: LogMessage) -> None:
        """Of a page, in short."""
        text, url = message.text[:_MAX_MESSAGE], message.url[:_MAX_MESSAGE]
        self._say(LogMessage(kind=message.kind, text=text, url=url))

    def _note_console(self, message: "ConsoleMessage") -> None:
        place = message.location.get("url", "") if message.location else ""
        self.say(LogMessage(kind=message.type, text=message.text, url=place))

    def _note_error(self, error: "WebError") -> None:
        page = error.page
        self.say(LogMessage(kind="error", text=str(error.error), url=page.url if page else ""))

    async def _quietly(self, work: Any) -> None:
        with suppress(self.driver.error):
            await work
