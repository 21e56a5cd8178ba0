"""What an attempt does for a built-in scraper while it runs."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct

from scrapeyard.builtin.fetching import Fetch
from scrapeyard.engines.browser.port import ContextOptions, Perform
from scrapeyard.engines.browser.widgets import no_captchas
from scrapeyard.engines.models.port import ModelAnswer, ModelFailed, Question
from scrapeyard.engines.solver.port import SearchHits, SearchQuestion
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, RunProgress

OpenBrowser = Callable[[ContextOptions], AbstractAsyncContextManager[Perform]]
"""Opens a context that is closed at the end. Raises FetchFailed: `browser_unavailable`."""
KeepFile = Callable[[str, str, bytes], Awaitable[None]]
"""Keeps an artifact: name, content type, data. Raises BlobsUnavailable."""
SolveImage = Callable[[bytes], Awaitable[str]]
"""The text in a picture. Raises FetchFailed."""
SolveWidget = Callable[[Perform, int, float | None], Awaitable[str]]
"""Solves the captcha of a tab, with seconds for a click to be enough; its token. Raises FetchFailed."""
Ask = Callable[[Question], Awaitable[ModelAnswer]]
"""Asks a model within the run's budgets. Raises ModelFailed."""
Search = Callable[[SearchQuestion], Awaitable[SearchHits]]
"""Asks an outside engine for a web search. Raises FetchFailed."""
Run = Callable[["Services", dict[str, Any]], Awaitable[dict[str, Any]]]


def _no_browser(_options: ContextOptions) -> AbstractAsyncContextManager[Perform]:
    raise FetchFailed(ExitReason.BROWSER_UNAVAILABLE, "there is no browser here")


async def _keep_nothing(_name: str, _content_type: str, _data: bytes) -> None:
    return None


def _say_nothing(_progress: RunProgress) -> None:
    return None


async def _read_nothing(_image: bytes) -> str:
    raise no_captchas()


async def _solve_nothing(_perform: Perform, _tab: int, _seconds: float | None) -> str:
    raise no_captchas()


async def _ask_nobody(_question: Question) -> ModelAnswer:
    raise ModelFailed("no_model", "there is no model here; set ai.providers")


async def search_nowhere(_question: SearchQuestion) -> SearchHits:
    """A search where there is no engine for it. Raises FetchFailed."""
    words = 'there is no search engine here; set escalation.solver to "firecrawl" and escalation.solver_url'
    raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, words)


def _no_room(_provider: str, _model: str) -> int:
    return 0


class Services(Struct, frozen=True, kw_only=True):
    """All that a built-in may use of its worker."""

    fetch: Fetch
    open_browser: OpenBrowser = _no_browser
    artifact: KeepFile = _keep_nothing
    progress: Callable[[RunProgress], None] = _say_nothing
    solve_image: SolveImage = _read_nothing
    solve_widget: SolveWidget = _solve_nothing
    ask: Ask = _ask_nobody
    room: Callable[[str, str], int] = _no_room
    """Characters that a question to the model of a provider may have; 0: there is none."""
    search: Search = search_nowhere
    client: str = ""
    """On whose behalf it runs."""


def with_fetch(run: Callable[[Fetch, dict[str, Any]], Awaitable[dict[str, Any]]]) -> Run:
    """The code of a built-in that only fetches."""

    def start(services: Services, given: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        return run(services.fetch, given)

    return start
