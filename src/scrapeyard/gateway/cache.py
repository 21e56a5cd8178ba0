"""`/api/cache`: cached pages: how many there are, forgetting them, having them ready."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from msgspec import Meta, Struct, convert
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response
from starlette.types import Receive

from scrapeyard.engines.cache.invalidation import forget
from scrapeyard.engines.cache.port import PageStore
from scrapeyard.engines.http.site import Sites, is_host
from scrapeyard.engines.http.url import canonical_host, parse_target
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import HEADERS, refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import SCRAPER_WANTED, Url
from scrapeyard.gateway.runs.calls import ScrapeRequest, traceparent
from scrapeyard.gateway.runs.documents import Handles
from scrapeyard.gateway.runs.policies import Policy
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.gateway.runs.submit import Scraping
from scrapeyard.model import Invalidate, Priority
from scrapeyard.model.fetching import MOST, CacheMode
from scrapeyard.model.identity import Identity
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings

MAX_WARM = 1000


class InvalidateCall(BaseModel):
    """Which kept pages to forget. Give exactly one."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={"examples": [{"url": "https://shop.example/p/1"}, {"site": "shop.example"}, {"all": True}]},
    )

    url: Url | None = Field(None, description="Pages that were asked for by this URL, whoever asked and how.")
    site: str | None = Field(
        None, min_length=1, max_length=253, description="Pages of this site; any host of it names it."
    )
    all: bool = Field(False, description="Every page.")

    @model_validator(mode="after")
    def _names_one(self) -> "InvalidateCall":
        if (self.url is not None) + (self.site is not None) + self.all != 1:
            raise ValueError("give exactly one of url, site and all")
        return self


class InvalidatedDocument(Struct, frozen=True, kw_only=True):
    """What was forgotten."""

    dropped: Annotated[
        int, Meta(ge=0, description="Pages that the shared tier held; each worker's memory forgets as well.")
    ]


class WarmCall(BaseModel):
    """Pages to have ready."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={"examples": [{"urls": ["https://shop.example/p/1"], "max_age_seconds": 600}]},
    )

    urls: list[Url] = Field(min_length=1, max_length=MAX_WARM, description="One run for each.")
    scraper: str | None = Field(
        None,
        pattern=SCRAPER_WANTED,
        description="Whose requests to make; it must take `url`. Default: `builtin/page`. Private pages need it.",
    )
    max_age_seconds: float = Field(
        3600, gt=0, le=MOST, description="A page that is kept and not older than this is left as it is."
    )


class SharedDocument(Struct, frozen=True, kw_only=True):
    """The shared tier."""

    kind: Literal["redis", "disk"]
    pages: int
    bytes: int
    limit_bytes: int
    hits: Annotated[int, Meta(description="In Redis of all workers; on disk since the start.")]
    misses: int
    evicted: Annotated[int, Meta(description="Removed to make room.")]


class CacheDocument(Struct, frozen=True, kw_only=True):
    """How pages are kept, and how many there are."""

    mode: Annotated[Literal["off", "through", "back", "around"], Meta(description="Unless policy says.")]
    max_age_seconds: Annotated[
        float, Meta(description="How old a kept page may be unless policy says; 0: none serves.")
    ]
    memory_limit_bytes: Annotated[int, Meta(description="In each worker.")]
    shared: Annotated[SharedDocument | None, Meta(description="Null: this gateway has no part in it.")]


class Caching:
    """Manages the page cache. `pages` is None if this gateway cannot reach the shared tier: only workers drop pages."""

    def __init__(self, settings: Settings, queue: Queue, pages: PageStore | None, scraping: Scraping) -> None:
        self._settings = settings
        self._queue = queue
        self._pages = pages
        self._scraping = scraping
        self._sites = Sites(settings.sites.whole_hosts)

    async def describe(self) -> CacheDocument:
        """How pages are kept. Raises Unavailable."""
        cache = self._settings.cache
        return CacheDocument(
            mode=cache.mode,
            max_age_seconds=cache.max_age_seconds,
            memory_limit_bytes=int(cache.memory_mb * 2**20),
            shared=None
            if self._pages is None
            else convert(await self._pages.stats(), SharedDocument, from_attributes=True),
        )

    async def invalidate(self, call: InvalidateCall) -> int:
        """Drop pages from the shared tier now and from the workers' memories a moment later. Returns how many the
        shared tier held. Raises BadRequest or Unavailable; the call may then be repeated."""
        signal = self._signal(call)
        dropped = 0 if self._pages is None else await forget(self._pages, signal)
        await self._queue.send(messages.SIGNALS, messages.encode(signal))
        return dropped

    async def warm(self, call: WarmCall, identity: Identity, traceparent: str, receive: Receive) -> Response:
        """Start runs of low priority whose fetches fill the cache."""
        most = self._settings.gateway.max_urls
        if len(call.urls) > most:
            raise BadRequest(f"urls: at most {most} in one call")
        mode: CacheMode | None = "through" if self._settings.cache.mode == "off" else None
        scrape = ScrapeCall(
            urls=call.urls,
            scraper=call.scraper,
            wait=0,
            priority=Priority.LOW,
            policy=Policy(max_age_seconds=call.max_age_seconds, cache=mode),
        )
        asked = ScrapeRequest(
            call=scrape, wait=0, preference="", key=None, digest="", traceparent=traceparent, identity=identity
        )
        return await self._scraping.answer(asked, receive)

    def _signal(self, call: InvalidateCall) -> Invalidate:
        if call.all:
            return Invalidate()
        try:
            if call.url is not None:
                return Invalidate(url=parse_target(call.url).url)
            return Invalidate(site=self._sites.of(_host(call.site or "")))
        except FetchFailed as error:
            raise BadRequest(error.message) from None


def _host(name: str) -> str:
    """Normalise a host name or IP address. Raises BadRequest."""
    bare = name.strip("[]")
    if ":" in name and is_host(bare):
        return parse_target(f"http://[{bare}]/").host
    try:
        return canonical_host(name)
    except (ValueError, UnicodeError):
        message = f"site: {name[:100]!r} is not a site; write a domain or an address without port, such as shop.example"
        raise BadRequest(message) from None


router = APIRouter(tags=["cache"], route_class=AnswerRoute)


@router.get("/api/cache", summary="Kept pages", responses=refusals(422, 503))
async def get_cache(gateway: GatewayDep) -> CacheDocument:
    """How pages are kept, and what the shared tier holds."""
    return await gateway.caching.describe()


@router.post("/api/cache/invalidate", summary="Forget kept pages", responses=refusals(400, 413, 422, 503))
async def invalidate_cache(gateway: GatewayDep, call: InvalidateCall) -> InvalidatedDocument:
    """Of a URL, a site, or all. The shared tier has forgotten them when this answers, every worker's memory within a
    second. What is being fetched at that moment is not kept. May be repeated."""
    return InvalidatedDocument(dropped=await gateway.caching.invalidate(call))


@router.post(
    "/api/cache/warm",
    summary="Have pages ready",
    status_code=202,
    response_model=Handles,
    responses={
        202: {"description": "Goes on; it is durable.", "headers": HEADERS},
        **refusals(400, 404, 413, 422, 503),
    },
)
async def warm_cache(gateway: GatewayDep, identity: IdentityDep, call: WarmCall, request: Request) -> Response:
    """A run of low priority for each URL, whose fetches are kept. Look them up like other runs."""
    trace = traceparent(request.headers.get("traceparent"))
    return await gateway.caching.warm(call, identity, trace, request.receive)
