"""What an attempt does for a built-in scraper while it runs."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct

from scrapeyard.builtin.fetching import Fetch
from scrapeyard.engines.browser.operations import AnyOperation
from scrapeyard.engines.browser.port import ContextOptions, Done
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, RunProgress

Perform = Callable[[AnyOperation, bytes], Awaitable[Done]]
"""Performs an operation in a context, as `BrowserContext.perform` says."""
OpenBrowser = Callable[[ContextOptions], AbstractAsyncContextManager[Perform]]
"""Opens a context that is closed at the end. Raises FetchFailed: `browser_unavailable`."""
KeepFile = Callable[[str, str, bytes], Awaitable[None]]
"""Keeps an artifact: name, content type, data. Raises BlobsUnavailable."""
Run = Callable[["Services", dict[str, Any]], Awaitable[dict[str, Any]]]


def _no_browser(_options: ContextOptions) -> AbstractAsyncContextManager[Perform]:
    raise FetchFailed(ExitReason.BROWSER_UNAVAILABLE, "there is no browser here")


async def _keep_nothing(_name: str, _content_type: str, _data: bytes) -> None:
    return None


def _say_nothing(_progress: RunProgress) -> None:
    return None


class Services(Struct, frozen=True, kw_only=True):
    """All that a built-in may use of its worker."""

    fetch: Fetch
    open_browser: OpenBrowser = _no_browser
    artifact: KeepFile = _keep_nothing
    progress: Callable[[RunProgress], None] = _say_nothing


def with_fetch(run: Callable[[Fetch, dict[str, Any]], Awaitable[dict[str, Any]]]) -> Run:
    """The code of a built-in that only fetches."""

    def start(services: Services, given: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        return run(services.fetch, given)

    return start
