"""A fetch by browser: the same request and the same answer as over HTTP, with the page as its scripts left it."""

import math
import time
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urldefrag

import msgspec

from scrapeyard.engines.browser.engine import OpenContext
from scrapeyard.engines.browser.operations import (
    AnyOperation,
    Content,
    Evaluate,
    Goto,
    Screenshot,
    Scroll,
    WaitFor,
)
from scrapeyard.engines.browser.port import BrowserEngine, ContextOptions, Done, Evidence, Perform
from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.http.checks import check_allowed
from scrapeyard.engines.http.stage import FetchContext, RoutedFetch
from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.port import PLAIN, BrowserWish, FetchRequest, FetchResponse, Proxy, Route
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

_SECONDS = 30.0
_LEAST_SECONDS = 0.5
_QUIET_SECONDS = {"auto": 0.5, "browser": 0.1}
"""Without requests of scripts, until a page counts as filled, where nobody said what to wait for. A fetch that asks for
no browser gets one where scripts are known to fill the page, perhaps after a check."""
_PLAIN_TEXT = "(document.querySelector('body > pre') || {}).textContent ?? null"
"""A browser shows JSON and plain text within a page of its own."""
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_READABLE = ("html", "xml", "json", "text/")
"""Kinds of documents that a browser shows as the site sent them. Of others it shows a page of its own."""
_NO_EVIDENCE = Evidence(screenshot_on_failure=False)


class BrowserPages:
    """A RoutedFetch. The forward proxy counts requests and bytes, as they go."""

    def __init__(
        self,
        browsers: BrowserEngine,
        *,
        budgets: Budgets,
        meters: Meters | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._browsers = browsers
        self._budgets = budgets
        self._meters = meters
        self._clock = clock

    async def __call__(self, context: FetchContext, way: Route = PLAIN) -> FetchResponse:
        """As `RoutedFetch`."""
        request, caller = context.request, context.caller
        if request.method.upper() != "GET" or request.body or request.keep is not None:
            message = "a browser opens pages with GET; send other requests, and downloads, by plain HTTP"
            raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, message)
        allowed = caller.scraper.allowed_hosts if caller.scraper else ()
        check_allowed(context.target, allowed)
        proxy_class = way.proxy.proxy_class if way.proxy else ""
        began, ok = self._clock(), False
        try:
            response = await (request.via() if request.via is not None else self._open(request, context, way))
            ok = True
        finally:
            self._meter(context, way.proxy, failed=not ok)
            await self._budgets.count(caller, proxy_class, seconds=self._clock() - began)
        if response.url.startswith(("http://", "https://")):
            check_allowed(parse_target(response.url), allowed)
        return response

    async def _open(self, request: FetchRequest, context: FetchContext, way: Route) -> FetchResponse:
        began = self._clock()
        is_light = way.engine == "light"
        if is_light:
            _check_light(request.browser)
        async with self._browsers.open(context_options(request), context.caller, way=way.proxy, light=is_light) as page:
            answer = await Visit(request, page.perform, began + _seconds(context), self._clock).open()
        size = page.received if isinstance(page, OpenContext) else 0
        return msgspec.structs.replace(
            answer,
            elapsed_ms=round((self._clock() - began) * 1000, 2),
            bytes_received=size,
            strategy="light" if is_light else "browser",
            proxy_class=way.proxy.proxy_class if way.proxy else "",
            proxy=way.proxy.name if way.proxy else "",
        )

    def _meter(self, context: FetchContext, proxy: Proxy | None, *, failed: bool) -> None:
        """Only the request: the forward proxy meters the bytes, by the site that they come from."""
        if self._meters is not None:
            self._meters.count(
                site=context.site,
                caller=context.caller,
                pool=proxy.name.partition("/")[0] if proxy else "",
                proxy_class=proxy.proxy_class if proxy else "",
                failures=1 if failed else 0,
            )


class Visit:
    """The steps of one fetch, within its time."""

    def __init__(
        self, request: FetchRequest, perform: Perform, ends: float, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._request = request
        self._wish = request.browser or BrowserWish()
        self._perform = perform
        self._ends = ends
        self._clock = clock
        self._opened = Done()

    async def open(self) -> FetchResponse:
        """The page, as it is when all that was asked for has happened. Raises FetchFailed."""
        wish = self._wish
        self._opened = await self.do(
            Goto(url=self._request.url, wait_until=wish.wait_until, quiet=self._quiet_seconds())
        )
        if wish.wait_for:
            await self.do(WaitFor(selector=wish.wait_for))
        if wish.scroll:
            await self.do(Scroll(to="bottom", rounds=wish.scroll))
        response = await self.read()
        if not wish.screenshot:
            return response
        picture = await self.do(Screenshot(full_page=wish.full_page))
        return msgspec.structs.replace(response, screenshot=picture.raw)

    def _quiet_seconds(self) -> float:
        asked = self._wish.wait_for or self._wish.wait_until != "load"
        return 0 if asked else _QUIET_SECONDS.get(self._request.engine, 0)

    async def read(self) -> FetchResponse:
        """The page that was opened, as it is now. Raises FetchFailed."""
        seen = await self.do(Content())
        response = answer_of(self._opened, seen)
        kind = dict(response.headers).get("content-type", "")
        if "json" in kind or kind.startswith("text/plain"):
            text = msgspec.json.decode((await self.do(Evaluate(expression=_PLAIN_TEXT))).value)
            if isinstance(text, str):
                return msgspec.structs.replace(response, body=text.encode())
        if kind and not any(words in kind for words in _READABLE):
            message = f'{response.url} is a file ({kind[:100]}) and no page; fetch it by plain HTTP (engine="http")'
            raise FetchFailed(ExitReason.BROWSER_STEP, message)
        return response

    async def do(self, operation: AnyOperation, most: float = math.inf) -> Done:
        """Perform it within the time of the visit, and within `most` seconds. Raises FetchFailed."""
        left = min(most, max(_LEAST_SECONDS, self._ends - self._clock()))
        return await self._perform(msgspec.structs.replace(operation, timeout=left), b"")


def answer_of(opened: Done, seen: Done | None = None) -> FetchResponse:
    """What `Goto` returned, as a fetch answers; with what `Content` has seen since, which may be another document: a
    script may have gone elsewhere, or a check has let the page through."""
    first: dict[str, Any] = msgspec.json.decode(opened.value) or {}
    now: dict[str, Any] = (msgspec.json.decode(seen.value) if seen else None) or {}
    if not str(now.get("url", "")).startswith(("http:", "https:")):
        now, seen = {}, None  # the browser shows nothing of the answer, such as of a 401
    url, status = str(first.get("url", "")), _status(first, 200)
    headers = {str(name).lower(): str(text) for name, text in (first.get("headers") or {}).items()}
    url_now, status_now = str(now.get("url") or url), _status(now, status)
    if (urldefrag(url_now).url, status_now) != (urldefrag(url).url, status):
        url, status, headers = url_now, status_now, {"content-type": f"{now.get('type') or 'text/html'}; charset=utf-8"}
    return FetchResponse(
        url=url,
        status=status,
        headers=tuple((name, text) for name, text in headers.items() if name not in _OF_THE_WIRE),
        body=seen.raw if seen else b"",
        encoding="utf-8",
        elapsed_ms=0,
        strategy="browser",
        way="browser",
    )


def _status(told: dict[str, Any], otherwise: int) -> int:
    """Chromium takes statuses of more than three digits, and what a page says of itself may be anything."""
    status = told.get("status")
    return status if isinstance(status, int) and 100 <= status <= 999 else otherwise


def _check_light(wish: BrowserWish | None) -> None:
    """Raises FetchFailed for what needs a layout."""
    if wish is None:
        return
    asked = {"screenshot": wish.screenshot, "scroll": wish.scroll, "device": wish.device, "block": wish.block}
    if named := [name for name, value in asked.items() if value]:
        message = f'the light browser has no layout and no {named[0]}; use engine="browser" for it'
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, message)


def context_options(request: FetchRequest) -> ContextOptions:
    """What a context looks like that opens the page of a request. Raises FetchFailed (`fetch_not_allowed`)."""
    wish = request.browser or BrowserWish()
    given = {
        "session": request.session,
        "device": wish.device,
        "locale": wish.locale,
        "timezone": wish.timezone,
        "headers": request.headers,
        "block": wish.block,
        "evidence": _NO_EVIDENCE,
    }
    try:
        return msgspec.convert(given, ContextOptions)
    except msgspec.ValidationError as error:
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, f"the browser cannot be asked so: {error}") from None


def _seconds(context: FetchContext) -> float:
    asked = context.request.timeout_seconds
    return asked if asked is not None else context.caller.policy.request_seconds or _SECONDS


class EngineChoice:
    """A RoutedFetch that leads to the engine which the route names."""

    def __init__(self, http: RoutedFetch, browser: RoutedFetch | None, no_light: str = "") -> None:
        """`no_light`: why there is no light browser; empty: there is one."""
        self._http = http
        self._browser = browser
        self._no_light = no_light

    def __call__(self, context: FetchContext, way: Route = PLAIN) -> Coroutine[Any, Any, FetchResponse]:
        """As `RoutedFetch`. Raises FetchFailed (`browser_unavailable`) where there is none."""
        return self._http(context, way) if way.engine == "http" else self._browse(context, way)

    async def _browse(self, context: FetchContext, way: Route) -> FetchResponse:
        if way.engine == "light" and self._no_light:
            raise FetchFailed(ExitReason.BROWSER_UNAVAILABLE, f"this worker has no light browser: {self._no_light}")
        if self._browser is None:
            raise no_browser()
        return await self._browser(context, way)


def no_browser() -> FetchFailed:
    """Why a page cannot be opened in a browser here."""
    message = (
        "this worker has no browser; run: pip install 'scrapeyard[browser]' and: scrapeyard browser install "
        "(scrapeyard doctor tells what is missing)"
    )
    return FetchFailed(ExitReason.BROWSER_UNAVAILABLE, message)
