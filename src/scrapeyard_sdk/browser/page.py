"""A page in the worker's browser, for `async def` and for plain scripts. Names and meanings follow Playwright's; times
are seconds."""

import copy
from collections.abc import Sequence
from typing import Any, Literal

from scrapeyard_sdk.browser.calls import Awaited, Plain, both, finished
from scrapeyard_sdk.browser.elements import ElementCalls
from scrapeyard_sdk.browser.response import BrowserResponse, responses_of
from scrapeyard_sdk.page import Page

LoadState = Literal["load", "domcontentloaded", "networkidle", "commit"]


class _PageCalls(ElementCalls):
    """What pages of both kinds have."""

    _answer: BrowserResponse | None = None
    """To the last `goto` of this object."""

    def frame(self, *selectors: str | int) -> Any:
        """A frame of the page, with the same methods: the selector of its `iframe`, or its number; several lead
        inwards. Opens nothing."""
        inner = copy.copy(self)
        inner._path = (*self._path, *map(str, selectors))
        return inner

    @both
    async def goto(
        self, url: str, *, wait_until: LoadState = "load", referer: str = "", timeout: float | None = None
    ) -> BrowserResponse:
        """Open a URL and wait until it is loaded. Any status is an answer; raises BrowserError when none came."""
        value, _ = await self._do("goto", url=str(url), wait_until=wait_until, referer=referer, timeout=timeout)
        self._answer = BrowserResponse(value)
        return self._answer

    @both
    async def reload(self, *, wait_until: LoadState = "load", timeout: float | None = None) -> BrowserResponse | None:
        """Load the page again."""
        return await self._moved("reload", wait_until, timeout)

    @both
    async def go_back(self, *, wait_until: LoadState = "load", timeout: float | None = None) -> BrowserResponse | None:
        """Go to the page before; None if there is none."""
        return await self._moved("back", wait_until, timeout)

    @both
    async def go_forward(
        self, *, wait_until: LoadState = "load", timeout: float | None = None
    ) -> BrowserResponse | None:
        """Go to the page after; None if there is none."""
        return await self._moved("forward", wait_until, timeout)

    @both
    async def url(self) -> str:
        """The address of the page now."""
        found: str = (await self._do("evaluate", expression="location.href"))[0]
        return found

    @both
    async def title(self) -> str:
        """The title of the page now."""
        found: str = (await self._do("evaluate", expression="document.title"))[0]
        return found

    @both
    async def page(self) -> Page:
        """The page as it is now, as `ctx.fetch` would give it: with `css`, `links`, `tables`, `product`, …"""
        now, body = await self._do("content")
        return Page(
            url=now["url"],
            status=now["status"] or 200,
            headers=self._headers_of(now),
            body=body,
            way="browser",
            fetch=self._ctx.fetch,
        )

    @both
    async def wait_for_url(self, pattern: str, *, timeout: float | None = None) -> str:
        """Wait until the page's URL matches; returns it. `*` stands for any characters but `/`, `**` for any."""
        found: str = (await self._do("wait_for_url", pattern=pattern, timeout=timeout))[0]
        return found

    @both
    async def wait_for_response(self, pattern: str, *, timeout: float | None = None) -> BrowserResponse:
        """Wait for an answer to a request of the page, by the pattern of its URL; one that came since the last step
        counts."""
        value, body = await self._do("wait_for_response", pattern=pattern, timeout=timeout)
        return BrowserResponse(value, None if value.get("missing") else body)

    @both
    async def wait_for_load_state(self, state: LoadState = "load", *, timeout: float | None = None) -> None:
        """Wait until the page has loaded so far; `networkidle`: nothing was requested for half a second."""
        await self._do("wait_for_load", state=state, timeout=timeout)

    @both
    async def responses(self, pattern: str = "**", *, limit: int = 100) -> list[BrowserResponse]:
        """Answers that the pages got so far, by the pattern of their URLs, the oldest first."""
        return responses_of(*await self._do("responses", pattern=pattern, limit=limit))

    @both
    async def download(
        self,
        selector: str = "",
        *,
        url: str = "",
        save_as: str = "",
        max_bytes: int = 16 * 1024 * 1024,
        timeout: float | None = None,
    ) -> tuple[str, bytes]:
        """Click an element, or open a URL, and take the file that this downloads: its name and its bytes. `save_as`
        saves it as an artifact too."""
        fields = {"selector": selector, "url": url, "max_bytes": max_bytes, "timeout": timeout}
        told, data = await self._do("download", **fields)
        return told["name"], await self._save(save_as, data)

    @both
    async def screenshot(
        self,
        selector: str = "",
        *,
        full_page: bool = False,
        format: Literal["png", "jpeg"] = "png",  # noqa: A002 - the field's own word
        quality: int | None = None,
        save_as: str = "",
        timeout: float | None = None,
    ) -> bytes:
        """A picture of the window, the whole page or an element. `save_as` saves it as an artifact too."""
        fields = {"selector": selector, "full_page": full_page, "format": format, "quality": quality}
        return await self._save(save_as, (await self._do("screenshot", **fields, timeout=timeout))[1])

    @both
    async def solve_captcha(self, selector: str = "", into: str = "", *, timeout: float | None = None) -> str:
        """Solve a captcha, where `policy.captcha` allows it: the picture `selector`, whose text is filled into `into`;
        without them the checkbox of Turnstile, reCAPTCHA or hCaptcha, wherever it is in the page. Returns the text, or
        the token. `timeout`: seconds for a click to be enough; 20. Raises BrowserError or FetchError: `fetch_captcha`,
        `fetch_not_allowed`."""
        if bool(selector) != bool(into):
            raise TypeError("a picture needs both selector and into; a checkbox needs neither")
        if not selector:
            return await self._solve(timeout)
        picture = (await self._do("screenshot", selector=selector, timeout=timeout))[1]
        read: Any = self._ctx.solve_image(picture)
        text: str = await read if isinstance(self, Awaited) else read
        await self._do("fill", selector=into, text=text, timeout=timeout)
        return text

    @both
    async def pdf(
        self,
        *,
        format: str = "A4",  # noqa: A002 - the field's own word
        landscape: bool = False,
        background: bool = True,
        save_as: str = "",
        timeout: float | None = None,
    ) -> bytes:
        """The page as PDF. `save_as` saves it as an artifact too."""
        fields = {"format": format, "landscape": landscape, "background": background}
        return await self._save(save_as, (await self._do("pdf", **fields, timeout=timeout))[1])

    @both
    async def cookies(self, *urls: str) -> list[dict[str, Any]]:
        """The cookies of these URLs, or all; as Playwright has them."""
        found: list[dict[str, Any]] = (await self._do("cookies", urls=urls))[0]
        return found

    @both
    async def add_cookies(self, cookies: Sequence[dict[str, Any]]) -> None:
        """Set cookies: `name`, `value`, and `url`, or `domain` and `path`."""
        await self._do("set_cookies", cookies=list(cookies))

    @both
    async def clear_cookies(self) -> None:
        """Remove all cookies."""
        await self._do("clear_cookies")

    @both
    async def frames(self) -> list[dict[str, Any]]:
        """The frames of the page: `name`, `url`, and `path`, which `frame(*path)` takes."""
        found: list[dict[str, Any]] = (await self._do("frames"))[0]
        return found

    @both
    async def dialogs(self, *, accept: bool = False, text: str = "") -> list[dict[str, Any]]:
        """What happens to dialogs from now on; at first they are dismissed. `text` answers a prompt. Returns those so
        far: `type` and `message`."""
        found: list[dict[str, Any]] = (await self._do("dialogs", accept=accept, text=text))[0]
        return found

    @both
    async def set_viewport_size(
        self, width: int, height: int, *, scale: float = 1, mobile: bool = False, touch: bool = False
    ) -> None:
        """Set the size of the window."""
        await self._do("viewport", width=width, height=height, scale=scale, mobile=mobile, touch=touch)

    @both
    async def set_network(
        self, *, download: float = -1, upload: float = -1, latency: float = 0, offline: bool = False
    ) -> None:
        """Emulate a slow network, or none: bytes per second (-1: no limit), seconds of latency."""
        await self._do("network", download=download, upload=upload, latency=latency, offline=offline)

    @both
    async def close(self) -> None:
        """Close this tab. The end of the `with` block closes all of them."""
        await self._do("close_tab")

    async def _moved(self, do: str, wait_until: LoadState, timeout: float | None) -> BrowserResponse | None:
        value, _ = await self._do(do, wait_until=wait_until, timeout=timeout)
        if value is not None:
            self._answer = BrowserResponse(value)
        return None if value is None else self._answer

    def _headers_of(self, now: dict[str, Any]) -> list[tuple[str, str]]:
        """Those of the last `goto`, if its document is still there."""
        answer = self._answer
        if answer is None or (answer.url, answer.status) != (now["url"].partition("#")[0], now["status"]):
            return [("content-type", now["type"])]
        return [(name, value) for name in answer.headers for value in answer.headers.get_all(name)]

    async def _tab_by(self, do: str, **fields: Any) -> Any:
        return self._at((await self._do(do, **fields))[0])

    async def _all_tabs(self) -> list[Any]:
        return [self._at(each["tab"]) for each in (await self._do("tabs"))[0]]

    def _at(self, tab: int) -> Any:
        other = copy.copy(self)
        other._tab, other._path, other._answer = int(tab), (), None
        return other


class BrowserPage(_PageCalls, Awaited):
    """A page in a browser, for `async def` scripts: `async with ctx.browser() as page:`. Every method is awaited but
    `frame`. Each raises BrowserError."""

    async def __aenter__(self) -> "BrowserPage":
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    def frame(self, *selectors: str | int) -> "BrowserPage":
        """A frame of the page, with the same methods: the selector of its `iframe`, or its number; several lead
        inwards. Opens nothing, and is not awaited."""
        found: BrowserPage = super().frame(*selectors)
        return found

    async def new_tab(self) -> "BrowserPage":
        """Open another tab, with the same cookies."""
        found: BrowserPage = await self._tab_by("new_tab")
        return found

    async def wait_for_tab(self, *, timeout: float | None = None) -> "BrowserPage":
        """Wait for a tab that the page opened since the last step."""
        found: BrowserPage = await self._tab_by("wait_for_tab", timeout=timeout)
        return found

    async def tabs(self) -> "list[BrowserPage]":
        """The open tabs, in the order in which they were opened."""
        return await self._all_tabs()


class SyncBrowserPage(_PageCalls, Plain):
    """A page in a browser, for plain `def` scripts: `with ctx.browser() as page:`. As `BrowserPage`, without
    `await`."""

    def __enter__(self) -> "SyncBrowserPage":
        finished(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        finished(self._close())

    def frame(self, *selectors: str | int) -> "SyncBrowserPage":
        """As `BrowserPage.frame`."""
        found: SyncBrowserPage = super().frame(*selectors)
        return found

    def new_tab(self) -> "SyncBrowserPage":
        """Open another tab, with the same cookies."""
        found: SyncBrowserPage = finished(self._tab_by("new_tab"))
        return found

    def wait_for_tab(self, *, timeout: float | None = None) -> "SyncBrowserPage":
        """Wait for a tab that the page opened since the last step."""
        found: SyncBrowserPage = finished(self._tab_by("wait_for_tab", timeout=timeout))
        return found

    def tabs(self) -> "list[SyncBrowserPage]":
        """The open tabs, in the order in which they were opened."""
        return finished(self._all_tabs())
