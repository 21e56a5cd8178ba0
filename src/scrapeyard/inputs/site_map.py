"""The code of `builtin/map`: the URLs of a site, as its robots.txt, its sitemaps and the links of a page name them."""

import asyncio
from contextlib import aclosing
from typing import Any

from scrapeyard.builtin.fetching import Fetch, read
from scrapeyard.builtin.pages.port import Extractor
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import Target, parse_target
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.inputs.formats.rows import ListUnreadable
from scrapeyard.inputs.links import LinkScope, target_of
from scrapeyard.inputs.patterns import Chooser
from scrapeyard.inputs.sitemaps import SitemapBounds, Sitemaps
from scrapeyard.inputs.source import SitemapSource, UrlChoice

SITEMAP_SECONDS = 30.0
"""Maximum time for all sitemaps; what they gave until then is taken."""
_BOUNDS = SitemapBounds(files=200, file_bytes=50 * 2**20, bytes=200 * 2**20)
_SITES = Sites()


class MapScraper:
    """Lists the URLs of a site."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    async def __call__(self, fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
        """`input` fits MAP_INPUT. Raises FetchFailed if the page cannot be had, BadRequest for invalid patterns."""
        target = parse_target(input["url"])
        response = await fetch(FetchRequest(url=input["url"]))
        found = _Found(input, [input["url"], response.url])
        found.add(response.url, "page", input["url"])
        warnings = [f"the page answers {response.status}"] if response.status >= 400 else []
        page = await read(self._extractor, response, include=("links",))
        for link in page.get("links") or ():
            found.add(link, "link", response.url)
        if input.get("sitemap", True):
            warnings += await _add_sitemaps(fetch, target, found)
        return {"url": input["url"], "urls": found.urls, "has_more": found.has_more, "warnings": warnings[:20]}


class _Found:
    """The URLs so far, each with where it was found first."""

    def __init__(self, asked: dict[str, Any], starts: list[str]) -> None:
        self._scope = LinkScope(asked.get("scope", "host"), starts, _SITES)
        choice = UrlChoice(include=tuple(asked.get("include", ())), exclude=tuple(asked.get("exclude", ())))
        self._chooser = Chooser(choice)
        self._word = asked.get("search", "").lower()
        self._limit = asked.get("limit", 5000)
        self._known: set[str] = set()
        self.urls: list[dict[str, str]] = []
        self.has_more = False

    def add(self, url: str, source: str, found_on: str) -> None:
        target = target_of(url)
        if target is None or target.url in self._known or not self._scope.includes(target):
            return
        plain = target.url
        if self._word not in plain.lower() or not self._chooser.takes(plain):
            return
        if len(self.urls) >= self._limit:
            self.has_more = True
            return
        self._known.add(plain)
        self.urls.append({"url": plain, "source": source, "found_on": found_on})


class _FetchEngine:
    """A scraper's fetch function in the place of an engine."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:  # noqa: ARG002  the port's signature
        return await self._fetch(request)


async def _add_sitemaps(fetch: Fetch, target: Target, found: _Found) -> list[str]:
    """Add what the site's sitemaps name; returns what of them could not be read. A site without any is no fault."""
    sitemaps = Sitemaps(_FetchEngine(fetch), SitemapSource(url=target.at("/").url), Caller(), bounds=_BOUNDS)
    try:
        async with asyncio.timeout(SITEMAP_SECONDS), aclosing(sitemaps.rows()) as pieces:
            async for piece in pieces:
                for _, url in piece.rows:
                    found.add(str(url), "sitemap", sitemaps.file)
                if found.has_more:
                    return []
    except TimeoutError:
        return [*sitemaps.gaps, f"the sitemap was not read whole in {SITEMAP_SECONDS:.0f} s"]
    except (FetchFailed, ListUnreadable):
        return []
    return sitemaps.gaps
