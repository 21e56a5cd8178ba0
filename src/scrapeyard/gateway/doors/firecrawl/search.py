"""Firecrawl's search, where there is an outside engine for it; pages of what it finds are scraped here."""

import asyncio
import time
from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import BeforeValidator, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from scrapeyard.builtin import SEARCH
from scrapeyard.errors import BadRequest, ScrapeyardError
from scrapeyard.gateway.doors.door import ApiRefused, DoorCall, refused_of
from scrapeyard.gateway.doors.firecrawl.errors import respond
from scrapeyard.gateway.doors.firecrawl.options import DocumentWish, FirecrawlBody, FirecrawlOptions, wanted
from scrapeyard.gateway.doors.firecrawl.pages import finished, key_of, scraped

_SECONDS: Final = 60.0
"""How long a search may take unless the call says."""
_MAX_PAGES: Final = 20
"""Maximum pages of one search that are scraped."""
_AT_ONCE: Final = 4
"""Pages of one search that are scraped at the same time."""
_MAX_BYTES: Final = 32 * 2**20
"""Bytes of documents in one answer after which no further page is scraped."""
_OF_THE_ENGINE: Final = 0.9
"""Share of the time of a search that the engine has, so that its failure is told."""
_FAILURES: Final = {"fetch_budget": (402, "search_failed"), "fetch_timeout": (504, "wait_timeout")}
"""By what a search ended with: status and code, where these are not those of every failure."""


def _type_of(given: object) -> object:
    """`{"type": "web"}` is `web`, as the clients write it."""
    return given["type"] if isinstance(given, dict) and given.keys() == {"type"} else given


_Source = Annotated[Literal["web", "news", "images"], BeforeValidator(_type_of)]
_Category = Annotated[Literal["github", "research", "pdf", "developer", "gov"], BeforeValidator(_type_of)]
_Domain = Annotated[str, Field(min_length=1, max_length=253)]


class SearchBody(FirecrawlBody):
    """`/search`."""

    query: str = Field(min_length=1, max_length=2000)
    limit: int = Field(5, ge=1, le=100)
    sources: list[_Source] | None = Field(None, min_length=1, max_length=3)
    categories: list[_Category] | None = Field(None, max_length=5)
    include_domains: list[_Domain] | None = Field(None, max_length=50)
    exclude_domains: list[_Domain] | None = Field(None, max_length=50)
    tbs: str | None = Field(None, min_length=1, max_length=100)
    location: str | None = Field(None, min_length=1, max_length=200)
    country: str | None = Field(None, pattern=r"^[A-Za-z]{2}$")
    lang: str | None = Field(None, max_length=20, description="The second version, which is asked, has none.")
    filter: None = None
    timeout: int | None = Field(None, ge=1, le=300_000)
    ignore_invalid_urls: bool | None = Field(None, alias="ignoreInvalidURLs")
    """Results without a proper address are always left out."""
    highlights: Literal[False] | None = None
    domain_tools: Literal[False] | None = None
    tool_detail: None = None
    enterprise: None = None
    threat_protection: None = None
    scrape_options: FirecrawlOptions | None = None

    def as_input(self, seconds: float) -> dict[str, Any]:
        """The input of `builtin/search`."""
        names = ("query", "limit", "sources", "categories", "include_domains", "exclude_domains")
        given = self.model_dump(include={*names, "tbs", "location", "country"}, exclude_none=True)
        return {**given, "seconds": seconds}


class Searches:
    """Searches by `builtin/search`."""

    def __init__(self, max_wait: float) -> None:
        self._max_wait = max_wait

    async def search(self, call: DoorCall, version: str) -> Response:
        """`POST /search`."""
        body = SearchBody.model_validate(await call.json())
        options = body.scrape_options
        wish = wanted(options) if options is not None and options.formats != [] else None
        if wish is not None and body.limit * len(body.sources or ("web",)) > _MAX_PAGES:
            raise BadRequest(f"with scrapeOptions a search has at most {_MAX_PAGES} results; lower limit, or sources")
        seconds = min(body.timeout / 1000 if body.timeout else _SECONDS, self._max_wait)
        until = time.monotonic() + seconds
        try:
            run = await finished(
                call, SEARCH, body.as_input(_OF_THE_ENGINE * seconds), seconds=seconds, headers=key_of(call)
            )
        except ApiRefused as refused:
            raise of_the_engine(refused) from None
        hits = {source: [_shown(hit) for hit in run["result"][source]] for source in body.sources or ("web",)}
        if wish is not None and options is not None:
            found = FoundPages(call, options, wish, until)
            for source in ("web", "news"):
                hits |= {source: await found.scraped(hits[source])} if source in hits else {}
        data = hits if version == "v2" else hits.get("web", [])
        return respond({"success": True, "data": data, "id": run["id"], "creditsUsed": 1})


class FoundPages:
    """Pages of what was found, each a scrape of its own. One that cannot be had says so in its metadata."""

    def __init__(self, call: DoorCall, options: FirecrawlOptions, wish: DocumentWish, until: float) -> None:
        self._call = call
        self._options = options
        self._wish = wish
        self._until = until
        self._bytes = 0
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def scraped(self, hits: list[dict[str, Any]]) -> list[Any]:
        """The hits with their documents, in their order."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(hit)) for hit in hits]
        return [task.result() for task in tasks]

    async def _one(self, hit: dict[str, Any]) -> msgspec.Raw:
        async with self._free:
            try:
                page = await self._page(hit["url"])
            except ApiRefused as refused:
                page = {"metadata": {"sourceURL": hit["url"], "error": refused.words[:500]}}
            raw = msgspec.json.encode({**hit, **page})
            self._bytes += len(raw)
            return msgspec.Raw(raw)

    async def _page(self, url: str) -> dict[str, Any]:
        left = self._until - time.monotonic()
        if left <= 0 or self._bytes > _MAX_BYTES:
            words = "the time of the search was used up" if left <= 0 else "the answer was large enough without it"
            raise ApiRefused(408, {"detail": words})
        seconds = min(left, self._wish.seconds or left)
        try:
            return await scraped(self._call, url, self._options, self._wish, seconds=seconds)
        except ScrapeyardError as error:
            raise refused_of(error) from None


def _shown(hit: dict[str, Any]) -> dict[str, Any]:
    return {to_camel(name): value for name, value in hit.items() if value is not None}


def of_the_engine(refused: ApiRefused) -> ApiRefused:
    """A failure of the outside engine, without the remedies for sites; every other refusal as it is."""
    if not refused.code.startswith("fetch_"):
        return refused
    status, code = _FAILURES.get(refused.code, (refused.status, "search_failed"))
    return ApiRefused(status, {"code": code, "detail": refused.problem.get("detail", "")}, refused.headers)
