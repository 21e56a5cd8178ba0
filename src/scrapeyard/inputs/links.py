"""Which links of a job's pages become items: their scope, their patterns, and the one spelling of each URL."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import Target, parse_target
from scrapeyard.errors import FetchFailed
from scrapeyard.inputs.formats.rows import ListRefused
from scrapeyard.inputs.mapper import Shaper
from scrapeyard.inputs.patterns import Chooser
from scrapeyard.inputs.source import FollowSource, QueryMode, ScopeKind
from scrapeyard.model.job import NewItem
from scrapeyard.repository.manifest.items import key_of

MAX_LINKS = 10_000
"""Maximum links of one page."""
MAX_SEEN = 200_000
"""Maximum links of one job that are remembered as seen."""
_USUAL_PORTS = (80, 443)
_TRACKING = re.compile(
    r"utm_\w+|gclid|gclsrc|gbraid|wbraid|dclid|fbclid|msclkid|yclid|twclid|ttclid|igshid|srsltid|mc_[ce]id|mkt_tok"
    r"|_hs(?:enc|mi)|_g[al]",
    re.IGNORECASE,
)


def target_of(url: str) -> Target | None:
    """The URL, parsed; None for mailto:, javascript: and the like, of which every page has some."""
    try:
        return parse_target(url)
    except FetchFailed:
        return None


def tidy_query(target: Target, mode: QueryMode) -> Target:
    """`keep`: as it is; `clean`: without parameters that only track visitors, such as utm_source; `sort`: also with the
    others in the order of their names; `drop`: without any query."""
    path, mark, query = target.resource.partition("?")
    if mode == "keep" or not mark:
        return target
    given = [] if mode == "drop" else query.split("&")
    kept = [pair for pair in given if pair and not _TRACKING.fullmatch(pair.partition("=")[0])]
    if mode == "sort":
        kept.sort(key=lambda pair: pair.partition("=")[0])
    return replace(target, resource=f"{path}?{'&'.join(kept)}" if kept else path)


class LinkScope:
    """Which URLs belong to a crawl, by the URLs it starts with.

    `host`: the host and port of a start; `www.` before it makes no difference. `path`: the same, below the path of
    the start. `site`: the registrable domain. `any`: all.
    """

    def __init__(self, kind: ScopeKind, starts: Iterable[str], sites: Sites) -> None:
        self._kind = kind
        self._sites = sites
        homes = [target for target in map(target_of, starts) if target is not None]
        self._homes = {self._home(target) for target in homes}
        self._folders = tuple((_host(target), _folder(target)) for target in homes)

    def includes(self, target: Target) -> bool:
        """Whether it belongs to the crawl."""
        if self._kind == "any":
            return True
        if self._kind == "path":
            path = target.resource.partition("?")[0]
            here = _host(target)
            return any(host == here and (path + "/").startswith(folder) for host, folder in self._folders)
        return self._home(target) in self._homes

    def _home(self, target: Target) -> str:
        return self._sites.of(target.host) if self._kind == "site" else _host(target)


def _host(target: Target) -> str:
    port = "" if target.port in _USUAL_PORTS else f":{target.port}"
    return target.host.removeprefix("www.") + port


def _folder(target: Target) -> str:
    """`/docs/` for /docs, /docs/ and /docs/index.html."""
    folder, _, name = target.resource.partition("?")[0].rpartition("/")
    return f"{folder}/{name}/" if name and "." not in name else f"{folder}/"


class FoundLinks(Struct, frozen=True):
    """What some pages link to."""

    items: list[NewItem]
    """One for each URL that is followed and was not seen before."""
    seen: list[str]
    """All links that were not seen before: for `PageLinks.remember`."""


class PageLinks:
    """Decides which links of one job's pages are followed."""

    def __init__(self, source: FollowSource, shaper: Shaper, sites: Sites) -> None:
        """Raises BadRequest for patterns that cannot be used."""
        self._source = source
        self._shaper = shaper
        self._chooser = Chooser(source.choice)
        self._scope = LinkScope(source.scope or ("site" if source.same_site else "any"), source.start, sites)
        self._seen: set[str] = set()
        self._counted: set[str] = set()
        self.is_full = False
        """Whether there were too many links to count."""
        page = msgspec.defstruct("Page", [("links", Any, None)], rename={"links": source.links})
        self._page = msgspec.json.Decoder(page).decode
        self._pages = msgspec.json.Decoder(list[page]).decode  # type: ignore[valid-type]  # it is a class

    def starts(self) -> list[NewItem]:
        """The items to start with; unusable URLs are skipped."""
        return list(self._items(dict.fromkeys(self._source.start, ""), depth=0))

    def gather(self, page: str, result: bytes, found: dict[str, str]) -> None:
        """Add the links in the result of a page that were not seen before, each with the first page that names it."""
        for url in self._found(result):
            if url not in self._seen:
                found.setdefault(url, page)

    def listed(self, urls: dict[str, str], depth: int) -> FoundLinks:
        """URLs, each with the page or file that names it, `depth` links from a start. Raises ListRefused for one that
        does not fit the scraper's input, if the job rejects bad rows."""
        items: dict[str, NewItem] = {}
        for item in self._items(urls, depth=depth):
            items.setdefault(item.key, item)
        return FoundLinks(list(items.values()), list(urls))

    def remember(self, links: FoundLinks) -> None:
        """Pass over these links from now on: their items are stored."""
        if len(self._seen) + len(links.seen) > MAX_SEEN:
            self._seen.clear()
        self._seen.update(links.seen[:MAX_SEEN])

    def uncounted(self, items: Sequence[NewItem]) -> list[NewItem]:
        """Those that were not asked for before; no more than MAX_SEEN in all."""
        new = [item for item in items if item.key not in self._counted]
        room = MAX_SEEN - len(self._counted)
        self.is_full = self.is_full or len(new) > room
        self._counted.update(item.key for item in new[:room])
        return new[:room]

    def forget(self) -> None:
        """Pass over nothing, and count from the start."""
        self._seen.clear()
        self._counted.clear()
        self.is_full = False

    def _found(self, result: bytes) -> Iterator[str]:
        try:
            pages = self._pages(result) if result[:1] == b"[" else [self._page(result)]
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return
        left = MAX_LINKS
        for page in pages:
            named = getattr(page, "links", None)
            links = named if isinstance(named, list) else []
            for link in links[:left]:
                url = link.get("url") if isinstance(link, dict) else link
                if isinstance(url, str):
                    yield url
            left -= len(links[:left])

    def _items(self, urls: dict[str, str], *, depth: int) -> Iterator[NewItem]:
        """Items of URLs, each with the page it was found on. Starts are taken whatever scope and patterns say."""
        for url, referrer in urls.items():
            target = target_of(url)
            if target is None:
                continue
            if depth:
                target = tidy_query(target, self._source.query)
                if not (self._scope.includes(target) and self._chooser.takes(target.url)):
                    continue
            plain = target.url
            item = self._shaper.item_of(plain, key_of(plain.encode()))
            if isinstance(item, NewItem):
                yield replace(item, depth=depth, referrer=referrer)
            elif self._source.shape.bad_rows == "reject":
                raise ListRefused([item], 1)
