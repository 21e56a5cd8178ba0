"""The outermost stage: a cached page serves or is validated, and equal requests in flight become one."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.engines.cache.identity import flight_key, page_key, variant
from scrapeyard.engines.cache.invalidation import forget
from scrapeyard.engines.cache.memory import MemoryPages
from scrapeyard.engines.cache.port import CachedPage, PageKey, PageStore
from scrapeyard.engines.cache.rules import (
    CacheDirective,
    Storable,
    TtlRules,
    directive_for,
    is_safe,
    keepable,
    must_revalidate,
    uses_cache,
)
from scrapeyard.engines.cache.shared import TimeLimitedPages, WriteBackBuffer
from scrapeyard.engines.cache.single_flight import SingleFlight
from scrapeyard.engines.http.checks import check_allowed
from scrapeyard.engines.http.stage import Fetch, FetchContext
from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import Invalidate
from scrapeyard.settings import CacheSettings

_MAX_VALIDATOR = 1024
_OF_THE_ANSWER = frozenset({"content-length", "content-encoding", "content-type", "transfer-encoding", "connection"})
"""Headers that a 304 does not change: they describe a body that it does not have."""


def with_validators(request: FetchRequest, page: CachedPage) -> FetchRequest | None:
    """The same request on the condition that the page has changed. None: nothing to compare it by.

    A page that was reached by redirects is asked for anew: its validators are those of another URL.
    """
    if page.redirects or page.status != 200 or request.method.upper() not in ("GET", "HEAD"):
        return None
    conditions = {}
    if tag := _validator(page, "etag"):
        conditions["If-None-Match"] = tag
    if date := _validator(page, "last-modified"):
        conditions["If-Modified-Since"] = date
    return replace(request, headers={**request.headers, **conditions}) if conditions else None


def confirms(response: FetchResponse, page: CachedPage) -> bool:
    """Whether the site says that the page stands. One that has begun to redirect may mean another page."""
    return response.status == 304 and response.url == page.url and not response.redirects


def confirmed(page: CachedPage, response: FetchResponse) -> FetchResponse:
    """The kept page with the headers of the site's confirmation, as if it had been answered whole."""
    new = [(name, value) for name, value in response.headers if name.lower() not in _OF_THE_ANSWER]
    renewed = {name.lower() for name, _ in new}
    old = [(name, value) for name, value in page.headers if name.lower() not in renewed]
    return replace(
        response,
        status=page.status,
        headers=(*old, *new),
        body=page.body,
        encoding=page.encoding,
        way=f"cache, confirmed by {response.way}" if response.way else "cache, confirmed",
        strategy="cache",
    )


def _validator(page: CachedPage, wanted: str) -> str:
    for name, value in page.headers:
        if name.lower() == wanted and len(value) <= _MAX_VALIDATOR and value.isprintable():
            return value
    return ""


WAY = "cache"
CLAIM_SECONDS = 10.0
OTHERS_SECONDS = 5.0
"""How long a worker waits for another that fetches the same page."""
_LOOK_SECONDS = 0.05
_BEHIND_BYTES = 32 * 1024 * 1024


class _Errand(Struct, frozen=True):
    """One request with all that the steps need."""

    context: FetchContext
    wish: CacheDirective
    key: PageKey
    began: float


class Cached:
    """One per worker. `memory` may be shared with nobody; `shared` is started and stopped by its maker."""

    def __init__(
        self,
        inner: Fetch,
        memory: MemoryPages,
        shared: PageStore,
        settings: CacheSettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises SettingsInvalid when `ttl_seconds` cannot be read."""
        self._inner = inner
        self._memory = memory
        self._shared = TimeLimitedPages(shared)
        self._settings = settings
        self._max_age = settings.max_age_seconds
        self._clock = clock
        self._terms = TtlRules(settings.ttl_seconds)
        self._max_bytes = int(settings.max_page_mb * 2**20)
        self._flights = SingleFlight()
        self._behind = WriteBackBuffer(shared, _BEHIND_BYTES)
        self._drops = 0
        """Counts invalidations: what was asked for before one is not kept after it."""

    def __call__(self, context: FetchContext) -> Coroutine[Any, Any, FetchResponse]:
        """Get a page, kept or fetched. Raises FetchFailed. Most requests pass without a step of their own."""
        request = context.request
        asks = request.max_age_seconds or context.caller.policy.max_age_seconds or self._max_age
        if not asks and request.method == "GET":  # so it is for most: nobody lets a kept page serve
            return self._inner(context)
        wish = directive_for(request, context.caller, self._settings)
        if wish is not None:
            return self._look(context, wish)
        return self._inner(context) if is_safe(request) else self._pass(context)

    async def _pass(self, context: FetchContext) -> FetchResponse:
        response = await self._inner(context)
        if response.status < 400:
            await self._forget_changed(context)
        return response

    async def _look(self, context: FetchContext, wish: CacheDirective) -> FetchResponse:
        began = time.perf_counter()
        errand = _Errand(context, wish, page_key(context), began)
        page = self._near(errand)
        if page is None or not self._serves(page, errand):
            page = _newer(page, await self._far(errand))
        if page is not None and self._serves(page, errand):
            return self._served(page, errand)
        return await self._join(errand, page)

    def concerns(self, request: FetchRequest, caller: Caller) -> bool:
        """Whether the cache has a part in a request."""
        return directive_for(request, caller, self._settings) is not None

    async def invalidate(self, signal: Invalidate) -> None:
        """Forget pages here and in the shared tier. Raises Unavailable when the latter is away.

        Dropping them there again after the gateway did takes those that came in between.
        """
        self._drops += 1
        self._flights.detach()
        self._behind.forget()
        self._memory.forget(signal)
        await forget(self._shared, signal)

    async def stop(self) -> None:
        """Write what waits to be written. May be called twice."""
        await self._behind.flush()
        await self._shared.settle()

    def _near(self, errand: _Errand) -> CachedPage | None:
        if errand.wish.mode == "around":
            return None
        page = self._memory.get(errand.key)
        if page is not None and page.vary:
            page = self._memory.get(variant(errand.key, page.vary, errand.context))
        return page if page is not None and not page.vary and self._permitted(page, errand) else None

    async def _far(self, errand: _Errand) -> CachedPage | None:
        drops = self._drops
        found: list[tuple[PageKey, CachedPage]] = []
        key, page = errand.key, await self._shared.get(errand.key)
        if page is not None and page.vary:
            found.append((key, page))
            key = variant(key, page.vary, errand.context)
            page = await self._shared.get(key)
        if page is None or page.vary:
            return None
        found.append((key, page))
        if errand.wish.mode != "around" and drops == self._drops:
            for key, each in found:
                self._memory.offer(key, each)
        return page if self._permitted(page, errand) else None

    async def _forget_changed(self, context: FetchContext) -> None:
        """Forget the pages of a URL that a request has changed. Other workers' memory keeps them until they are too
        old. The shared tier is asked only if it may hold such a page: most scripts that POST cache nothing."""
        url = context.target.url
        self._behind.drop(url)
        if self._memory.drop(url) or uses_cache(context.caller, self._settings):
            await self._shared.drop_soon(url)

    def _serves(self, page: CachedPage, errand: _Errand) -> bool:
        wish = errand.wish
        if wish.max_age <= 0 or (not wish.explicit and must_revalidate(page)):
            return False
        return self._clock() - page.fetched_at <= wish.max_age

    def _permitted(self, page: CachedPage, errand: _Errand) -> bool:
        """Whether this request might have fetched it: no kept page leads round a scraper's limits."""
        limit, target = errand.context.request.max_bytes, errand.context.target
        if limit is not None and len(page.body) > limit:
            return False
        scraper = errand.context.caller.scraper
        if scraper is None or not scraper.allowed_hosts:
            return True
        others = {*page.redirects, page.url} - {target.url}
        try:
            for each in (target, *map(parse_target, others)):
                check_allowed(each, scraper.allowed_hosts)
        except FetchFailed:
            return False
        return True

    def _served(self, page: CachedPage, errand: _Errand) -> FetchResponse:
        return FetchResponse(
            url=page.url,
            status=page.status,
            headers=page.headers,
            body=page.body,
            encoding=page.encoding,
            elapsed_ms=(time.perf_counter() - errand.began) * 1000,
            redirects=page.redirects,
            age_seconds=max(0.0, self._clock() - page.fetched_at),
            way=WAY,
            strategy="cache",
        )

    async def _join(self, errand: _Errand, page: CachedPage | None) -> FetchResponse:
        name = flight_key(errand.key, errand.context)
        while errand.wish.max_age > 0 and self._flights.busy(name):
            landed = await self._flights.wait(name)
            if landed is None:
                continue
            age = landed.age_seconds or landed.elapsed_ms / 1000
            if age > errand.wish.max_age:
                break
            waited = (time.perf_counter() - errand.began) * 1000
            of_cache = {"way": WAY, "strategy": "cache", "proxy": "", "proxy_class": ""}
            return replace(landed, elapsed_ms=waited, bytes_received=0, age_seconds=age, **of_cache)
        return await self._flights.run(name, lambda: self._alone(name, errand, page))

    async def _alone(self, name: str, errand: _Errand, page: CachedPage | None) -> FetchResponse:
        """Fetch, unless another worker does at this moment and its page comes soon."""
        claimed = await self._shared.claim(name, CLAIM_SECONDS)
        until = time.monotonic() + min(OTHERS_SECONDS, errand.context.request.timeout_seconds or OTHERS_SECONDS)
        while not claimed and errand.wish.max_age > 0 and time.monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)
            theirs = await self._far(errand)
            if theirs is not None and self._serves(theirs, errand):
                return self._served(theirs, errand)
            claimed = await self._shared.claim(name, CLAIM_SECONDS)
        try:
            return await self._obtain(errand, page)
        finally:
            if claimed:
                await self._shared.release(name)

    async def _obtain(self, errand: _Errand, page: CachedPage | None) -> FetchResponse:
        drops = self._drops
        response = await self._ask(errand, page)
        kept = keepable(response, errand.wish, self._terms, self._clock(), self._max_bytes)
        if kept is not None and drops == self._drops:
            await self._keep(errand, kept)
        return response

    async def _ask(self, errand: _Errand, page: CachedPage | None) -> FetchResponse:
        context = errand.context
        conditional = None if page is None else with_validators(context.request, page)
        if page is None or conditional is None:
            return await self._inner(context)
        response = await self._inner(replace(context, request=conditional))
        if confirms(response, page):
            return confirmed(page, response)
        return response if response.status != 304 else await self._inner(context)

    async def _keep(self, errand: _Errand, kept: Storable) -> None:
        key, page = errand.key, kept.page
        if kept.vary:
            await self._write(
                errand, key, CachedPage(fetched_at=page.fetched_at, expires_at=page.expires_at, vary=kept.vary)
            )
            key = variant(key, kept.vary, errand.context)
        await self._write(errand, key, page)

    async def _write(self, errand: _Errand, key: PageKey, page: CachedPage) -> None:
        if errand.wish.mode != "around":
            self._memory.put(key, page)
        if errand.wish.mode == "back":
            self._behind.add(key, page)
        else:
            await self._shared.put(key, page)


def _newer(one: CachedPage | None, other: CachedPage | None) -> CachedPage | None:
    if one is None or other is None:
        return one or other
    return one if one.fetched_at >= other.fetched_at else other
