"""Which function performs which operation."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.inside.steps import acting, navigating, reading, waiting
from scrapeyard.engines.browser.inside.steps.step import Step

Performer = Callable[[Step, Any], Awaitable[Any]]
PERFORMERS: Final[dict[type[do.Operation], Performer]] = {
    do.Goto: navigating.goto,
    do.Back: navigating.back,
    do.Forward: navigating.forward,
    do.Reload: navigating.reload,
    do.Click: acting.click,
    do.Hover: acting.hover,
    do.Fill: acting.fill,
    do.Type: acting.type_text,
    do.Press: acting.press,
    do.Select: acting.select,
    do.Check: acting.check,
    do.Change: acting.change,
    do.Upload: acting.upload,
    do.Download: acting.download,
    do.Scroll: acting.scroll,
    do.Wait: waiting.wait,
    do.WaitFor: waiting.wait_for,
    do.WaitForText: waiting.wait_for_text,
    do.WaitForUrl: waiting.wait_for_url,
    do.WaitForResponse: waiting.wait_for_response,
    do.WaitForLoad: waiting.wait_for_load,
    do.WaitForFunction: waiting.wait_for_function,
    do.Evaluate: reading.evaluate,
    do.Content: reading.content,
    do.Read: reading.read,
    do.Extract: reading.extract,
    do.Screenshot: reading.screenshot,
    do.Pdf: reading.pdf,
    do.Cookies: navigating.cookies,
    do.SetCookies: navigating.set_cookies,
    do.ClearCookies: navigating.clear_cookies,
    do.Responses: reading.responses,
    do.Tabs: navigating.tabs,
    do.NewTab: navigating.new_tab,
    do.WaitForTab: navigating.wait_for_tab,
    do.CloseTab: navigating.close_tab,
    do.Frames: navigating.frames,
    do.Dialogs: navigating.dialogs,
    do.Viewport: navigating.viewport,
    do.Network: navigating.network,
}
ACTING: Final = frozenset(
    {
        do.Goto, do.Back, do.Forward, do.Reload, do.Click, do.Hover, do.Fill, do.Type, do.Press, do.Select, do.Check,
        do.Change, do.Upload, do.Download, do.Scroll, do.Evaluate,
    }
)  # fmt: skip
"""Those that may bring new answers and tabs; what came since the last of them is what a wait may still find."""
CONTEXT_WIDE: Final = frozenset(
    {do.Cookies, do.SetCookies, do.ClearCookies, do.Responses, do.Tabs, do.NewTab, do.WaitForTab, do.Dialogs}
)
"""Those that need no open tab."""
