"""Operations that open pages, tabs and frames, and that change what a context looks like."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.inside.steps.deadline import within
from scrapeyard.engines.browser.inside.steps.failures import step_failed
from scrapeyard.engines.browser.inside.steps.quiet import ScriptRequests
from scrapeyard.engines.browser.inside.steps.step import Step, children_of
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

if TYPE_CHECKING:
    from patchright.async_api import Frame, Page, Response

_ASKS_FOR_LOGIN = "ERR_INVALID_AUTH_CREDENTIALS"
_SCHEMES = frozenset({"http", "https", "data"})
_ERROR_PAGE_SECONDS = 2.0


def check_url(url: str) -> None:
    """Only the web, `data:` and `about:blank`: other schemes lead to files of this machine or into the browser."""
    if url != "about:blank" and urlsplit(url).scheme.lower() not in _SCHEMES:
        raise FetchFailed(ExitReason.FETCH_BAD_URL, f"a browser opens http and https URLs, not {url[:200]!r}")


async def goto(step: Step, operation: do.Goto) -> Any:
    check_url(operation.url)
    if not operation.quiet:
        return await _open(step, operation)
    with ScriptRequests(step.page, step.context.driver.error) as requests:
        opened = await _open(step, operation)
        await requests.ended(operation.quiet, step.left_ms / 1000)
    return opened


async def _open(step: Step, operation: do.Goto) -> dict[str, Any]:
    frame = await step.frame()
    try:
        response = await _go(step, frame, operation)
    except step.context.driver.error as error:
        if _ASKS_FOR_LOGIN not in str(error) or (asked := step.context.responses.last_with(401)) is None:
            raise
        return asked.tell()  # any status is an answer, though the browser shows nothing of this one
    return await _document(response, frame.url)


async def _go(step: Step, frame: "Frame", operation: do.Goto) -> "Response | None":
    with _ErrorPage(step.page, frame) as error_page:
        try:
            return await frame.goto(
                operation.url,
                wait_until=operation.wait_until,
                referer=operation.referer or None,
                timeout=step.left_ms,
            )
        except step.context.driver.error as error:
            if "net::ERR_" in str(error) and "net::ERR_ABORTED" not in str(error):
                await error_page.shown()
            raise


class _ErrorPage:
    """The driver tells a failure before the browser shows its error page, which would interrupt the next goto."""

    def __init__(self, page: "Page", frame: "Frame") -> None:
        self._page = page
        self._frame = frame
        self._shown = asyncio.Event()

    def __enter__(self) -> Self:
        self._page.on("framenavigated", self._look)
        return self

    def __exit__(self, *_: object) -> None:
        self._page.remove_listener("framenavigated", self._look)

    async def shown(self) -> None:
        """Wait for it; not for long, since some failures have none."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ERROR_PAGE_SECONDS):
                await self._shown.wait()

    def _look(self, frame: "Frame") -> None:
        if frame == self._frame and frame.url.startswith("chrome-error:"):
            self._shown.set()


async def back(step: Step, operation: do.Back) -> Any:
    return await _move(step, await step.page.go_back(wait_until=operation.wait_until, timeout=step.left_ms))


async def forward(step: Step, operation: do.Forward) -> Any:
    return await _move(step, await step.page.go_forward(wait_until=operation.wait_until, timeout=step.left_ms))


async def reload(step: Step, operation: do.Reload) -> Any:
    response = await step.page.reload(wait_until=operation.wait_until, timeout=step.left_ms)
    return await _document(response, step.page.url)


async def _move(step: Step, response: "Response | None") -> Any:
    return None if response is None else await _document(response, step.page.url)


async def _document(response: "Response | None", url: str) -> dict[str, Any]:
    if response is None:
        return {"url": url, "status": 0, "headers": {}}
    return {"url": response.url, "status": response.status, "headers": await response.all_headers()}


async def tabs(step: Step, _: do.Tabs) -> Any:
    return [
        {"tab": tab.number, "url": tab.page.url, "title": await _title(tab.page.main_frame)}
        for tab in step.context.open_tabs
    ]


async def _title(frame: "Frame") -> str:
    """A page that is stuck has none."""
    try:
        return await within(2, frame.title())
    except TimeoutError:
        return ""


async def new_tab(step: Step, _: do.NewTab) -> Any:
    return (await step.context.open_tab()).number


async def wait_for_tab(step: Step, _: do.WaitForTab) -> Any:
    found = await step.context.wait_for_tab(step.tab)
    await found.page.wait_for_load_state("domcontentloaded", timeout=step.left_ms)
    return found.number


async def close_tab(step: Step, _: do.CloseTab) -> Any:
    await step.page.close()


async def frames(step: Step, operation: do.Frames) -> Any:
    found: list[dict[str, Any]] = []

    def visit(frame: "Frame", path: tuple[str, ...]) -> None:
        for place, child in enumerate(children_of(frame)):
            found.append({"name": child.name, "url": child.url, "path": [*path, str(place)]})
            visit(child, (*path, str(place)))

    visit(await step.frame(), operation.frame)
    return found


async def dialogs(step: Step, operation: do.Dialogs) -> Any:
    step.context.accepts_dialogs, step.context.dialog_text = operation.accept, operation.text
    return list(step.context.dialogs)


async def viewport(step: Step, operation: do.Viewport) -> Any:
    await step.page.set_viewport_size({"width": operation.width, "height": operation.height})
    if operation.scale == 1 and not operation.mobile and not operation.touch:
        return
    session = await step.context.devtools(step.tab, "Viewport")
    await session.send(
        "Emulation.setDeviceMetricsOverride",
        {
            "width": operation.width,
            "height": operation.height,
            "deviceScaleFactor": operation.scale,
            "mobile": operation.mobile,
        },
    )
    await session.send("Emulation.setTouchEmulationEnabled", {"enabled": operation.touch})


async def network(step: Step, operation: do.Network) -> Any:
    session = await step.context.devtools(step.tab, "Network")
    await session.send("Network.enable")
    await session.send(
        "Network.emulateNetworkConditions",
        {
            "offline": operation.offline,
            "latency": operation.latency * 1000,
            "downloadThroughput": operation.download,
            "uploadThroughput": operation.upload,
        },
    )


async def cookies(step: Step, operation: do.Cookies) -> Any:
    return await step.context.native.cookies(list(operation.urls) or None)


async def set_cookies(step: Step, operation: do.SetCookies) -> Any:
    try:
        await step.context.native.add_cookies(list(operation.cookies))  # type: ignore[arg-type] # the driver checks them
    except (KeyError, TypeError, AttributeError) as error:
        raise step_failed(f"set_cookies: not as a cookie should be: {error!r}") from None


async def clear_cookies(step: Step, _: do.ClearCookies) -> Any:
    await step.context.native.clear_cookies()
