"""Kept pages, as an operator sees them: how many there are, forgetting them, having them ready."""

from typing import Any

from msgspec.structs import asdict
from starlette.responses import Response
from starlette.types import Receive

from scrapeyard.engines.cache.invalidation import forget
from scrapeyard.engines.cache.port import PageStore
from scrapeyard.engines.http.site import Sites, is_host
from scrapeyard.engines.http.url import canonical_host, parse_target
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.gateway.cache.schemas import InvalidateCall, WarmCall
from scrapeyard.gateway.runs.calls import ScrapeRequest
from scrapeyard.gateway.runs.policies import Policy
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.gateway.runs.submit import Scraping
from scrapeyard.model import Invalidate, Priority
from scrapeyard.model.fetching import CacheMode
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings


class Caching:
    """`pages` None: this gateway does not reach the shared tier, and the workers alone forget."""

    def __init__(self, settings: Settings, queue: Queue, pages: PageStore | None, scraping: Scraping) -> None:
        self._settings = settings
        self._queue = queue
        self._pages = pages
        self._scraping = scraping
        self._sites = Sites(settings.sites.whole_hosts)

    async def describe(self) -> dict[str, Any]:
        """The document. Raises Unavailable."""
        cache = self._settings.cache
        return {
            "mode": cache.mode,
            "max_age_seconds": cache.max_age_seconds,
            "memory_limit_bytes": int(cache.memory_mb * 2**20),
            "shared": None if self._pages is None else asdict(await self._pages.stats()),
        }

    async def invalidate(self, call: InvalidateCall) -> int:
        """Forget pages: in the shared tier now, in the workers' memories a moment later. Returns how many the shared
        tier held. Raises BadRequest or Unavailable; it may then be repeated."""
        signal = self._signal(call)
        dropped = 0 if self._pages is None else await forget(self._pages, signal)
        await self._queue.send(messages.SIGNALS, messages.encode(signal))
        return dropped

    async def warm(self, call: WarmCall, traceparent: str, receive: Receive) -> Response:
        """Runs of low priority whose fetches fill the cache."""
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
        asked = ScrapeRequest(call=scrape, wait=0, preference="", key=None, digest="", traceparent=traceparent)
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
    """A name or an address. Raises BadRequest."""
    bare = name.strip("[]")
    if ":" in name and is_host(bare):
        return parse_target(f"http://[{bare}]/").host
    try:
        return canonical_host(name)
    except (ValueError, UnicodeError):
        message = f"site: {name[:100]!r} is not a site; write a domain or an address without port, such as shop.example"
        raise BadRequest(message) from None
