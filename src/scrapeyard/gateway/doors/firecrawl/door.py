"""The Firecrawl door: `/v1` and `/v2`, for programs that use Firecrawl's clients."""

import re
from collections.abc import Awaitable, Callable
from typing import Final

from pydantic import ValidationError
from starlette.responses import Response

from scrapeyard.gateway.doors.door import ApiRefused, DoorCall
from scrapeyard.gateway.doors.firecrawl.errors import invalid, refusal
from scrapeyard.gateway.doors.firecrawl.jobs import JobMaking
from scrapeyard.gateway.doors.firecrawl.pages import Pages
from scrapeyard.gateway.doors.firecrawl.progress import JobProgress
from scrapeyard.gateway.doors.firecrawl.search import Searches
from scrapeyard.gateway.doors.firecrawl.usage import concurrency, queue_status, usage
from scrapeyard.settings import Settings

Handler = Callable[..., Awaitable[Response]]
_ID: Final = r"(?P<job_id>[A-Za-z0-9_.-]{1,128})"
_JOB: Final = rf"(?P<kind>crawl|batch/scrape)/{_ID}"
NOT_HERE: Final = {
    "agent": "there is no agent; write a scraper, or use a crawl with the format json",
    "browser": "browsers are driven by actions, or by `builtin/actions` of POST /api/scrape",
    "interact": "browsers are driven by actions, or by `builtin/actions` of POST /api/scrape",
    "monitor": "use schedules (POST /api/schedule) with a diff export",
    "parse": "put the file at an address and scrape it; PDF and office documents are read",
    "deep-research": "there is no research agent",
    "llmstxt": "there is no generator of llms.txt; crawl the site with the format markdown",
    "params-preview": "options of crawls are not made from a prompt",
    "search": 'a Firecrawl server answers POST /search; the operator sets escalation.solver to "firecrawl" and '
    "escalation.solver_url",
}
"""By a part of the path: what there is instead."""


class FirecrawlDoor:
    """Answers under `/v1/` and `/v2/`."""

    def __init__(self, settings: Settings) -> None:
        pages, making = Pages(settings.gateway.max_wait_seconds), JobMaking()
        progress = JobProgress(settings.retention.jobs_days)
        routes: tuple[tuple[str, str, Handler], ...] = (
            ("POST", "scrape", pages.scrape),
            ("POST", "map", pages.map),
            ("POST", "crawl", making.crawl),
            ("POST", "batch/scrape", making.batch),
            ("POST", "extract", making.extract),
            ("GET", "crawl/(?:active|ongoing)", progress.active),
            ("GET", _JOB, progress.status),
            ("DELETE", _JOB, progress.cancel),
            ("GET", f"{_JOB}/errors", progress.errors),
            ("GET", f"extract/{_ID}", progress.extracted),
            ("GET", "team/(?P<kind>credit|token)-usage(?P<past>/historical)?", usage),
            ("GET", "team/queue-status", queue_status),
            ("GET", "concurrency-check", concurrency),
        )
        if settings.escalation.searches:
            routes = (*routes, ("POST", "search", Searches(settings.gateway.max_wait_seconds).search))
        self._routes = tuple((method, re.compile(pattern), handler) for method, pattern, handler in routes)

    def takes(self, method: str, path: str) -> bool:
        """Everything below the two versions."""
        del method
        return path.startswith(("/v1/", "/v2/"))

    async def answer(self, call: DoorCall) -> Response:
        """Find the handler and call it. Raises ApiRefused, also for a path that there is not."""
        version, _, rest = call.path.removeprefix("/").partition("/")
        for method, pattern, handler in self._routes:
            if method == call.method and (found := pattern.fullmatch(rest)):
                try:
                    return await handler(call, version, **found.groupdict())
                except ValidationError as error:
                    raise await _known(call, invalid(error)) from None
        raise await _known(call, _missing(call, rest))

    def refuse(self, refused: ApiRefused) -> Response:
        """In Firecrawl's shape."""
        return refusal(refused)


def _missing(call: DoorCall, rest: str) -> ApiRefused:
    known = next((words for part, words in NOT_HERE.items() if part in rest.split("/")), "")
    words = f"{call.method} {call.path[:200]} is not available here" + (f": {known}" if known else "")
    return ApiRefused(404, {"code": "not_available", "detail": words})


async def _known(call: DoorCall, refused: ApiRefused) -> ApiRefused:
    """The refusal, for callers that are known; others learn nothing but that they are not."""
    await call.check_caller()
    return refused
