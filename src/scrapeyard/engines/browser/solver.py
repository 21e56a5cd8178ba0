"""Our own browser as a solver: it waits until a challenge is passed, and plain HTTP goes on with its cookies."""

import asyncio
import time
from typing import Any

import msgspec

from scrapeyard.engines.blocks import recognise
from scrapeyard.engines.browser.engine import OpenContext
from scrapeyard.engines.browser.operations import Content, Cookies, Evaluate, Goto
from scrapeyard.engines.browser.pages import answer_of
from scrapeyard.engines.browser.port import BrowserContext, BrowserEngine, ContextOptions, Evidence
from scrapeyard.engines.http.checks import check_allowed
from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, Proxy
from scrapeyard.engines.solver.clearance import clearance_of, sendable
from scrapeyard.engines.solver.port import Clearance, ClearedCookie, Solved
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import EscalationSettings

_REFUSALS = frozenset({401, 403, 429, 503})
_LOOK_SECONDS = 0.5
"""Between looks at a page that is still a challenge."""
_LOOKS = """(() => {
    const data = navigator.userAgentData, quoted = value => JSON.stringify(String(value).slice(0, 100));
    const brands = data ? data.brands.slice(0, 5).map(each => `${quoted(each.brand)};v=${quoted(each.version)}`) : [];
    if (!data) return [navigator.userAgent, []];
    return [navigator.userAgent, [['sec-ch-ua', brands.join(', ')], ['sec-ch-ua-mobile', data.mobile ? '?1' : '?0'],
        ['sec-ch-ua-platform', quoted(data.platform)]]];
})()"""
"""The user agent, and the client hints that go with it."""


class BrowserSolver:
    """As `Solver`."""

    def __init__(self, browsers: BrowserEngine, settings: EscalationSettings) -> None:
        self._browsers = browsers
        self._settings = settings
        self._free = asyncio.Semaphore(settings.solver_concurrency)

    async def start(self) -> None:
        """The engine starts by itself."""

    async def stop(self) -> None:
        """The engine stops by itself."""

    async def healthy(self) -> bool:
        """It is, where there is a browser."""
        return True

    async def solve(self, request: FetchRequest, caller: Caller, *, proxy: Proxy | None, seconds: float) -> Solved:
        """As `Solver.solve`, for GET."""
        if request.method.upper() != "GET":
            raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, "a browser opens pages with GET")
        target = parse_target(request.url)
        check_allowed(target, caller.scraper.allowed_hosts if caller.scraper else ())
        options = ContextOptions(
            session=request.session, timeout=max(1.0, seconds), evidence=Evidence(screenshot_on_failure=False)
        )
        began = time.perf_counter()
        async with self._free, self._browsers.open(options, caller, way=proxy) as page:
            response = await _passed(page, request.url, began + seconds)
            clearance = None if request.session else await self._clearance(page, target.host, proxy)
        size = page.received if isinstance(page, OpenContext) else 0
        elapsed = round((time.perf_counter() - began) * 1000, 2)
        response = msgspec.structs.replace(
            response,
            elapsed_ms=elapsed,
            bytes_received=size,
            strategy="solver",
            way="solver",
            proxy_class=proxy.proxy_class if proxy else "",
            proxy=proxy.name if proxy else "",
        )
        return Solved(response=response, clearance=clearance)

    async def _clearance(self, page: BrowserContext, host: str, proxy: Proxy | None) -> Clearance | None:
        found: list[dict[str, Any]] = msgspec.json.decode((await page.perform(Cookies())).value)
        agent, hints = msgspec.json.decode((await page.perform(Evaluate(expression=_LOOKS))).value)
        cookies = sendable(
            ClearedCookie(
                name=str(each.get("name", "")),
                value=str(each.get("value", "")),
                domain=str(each.get("domain", ""))[:253],
                expires_at=ends if (ends := float(each.get("expires") or -1)) > 0 else None,
            )
            for each in found
        )
        return clearance_of(
            cookies,
            str(agent),
            host=host,
            proxy=proxy,
            now=time.time(),
            most_seconds=self._settings.remember_seconds,
            hints=tuple((str(name), str(value)) for name, value in hints if str(value).isprintable()),
        )


async def _passed(page: BrowserContext, url: str, ends: float) -> FetchResponse:
    """The page once it is no challenge any more. Raises FetchFailed (`fetch_captcha`)."""
    opened = await page.perform(Goto(url=url))
    while True:
        seen = answer_of(opened, await page.perform(Content()))
        if seen.status in _REFUSALS:  # what a script put in the place of a challenge still has its status
            seen = msgspec.structs.replace(seen, status=200, headers=(("content-type", "text/html; charset=utf-8"),))
        block = recognise(seen)
        if block is None:
            return seen
        if time.perf_counter() >= ends:
            message = f"our browser could not pass the challenge of {parse_target(url).host} ({block.reason})"
            raise FetchFailed(ExitReason.FETCH_CAPTCHA, message)
        await asyncio.sleep(_LOOK_SECONDS)
