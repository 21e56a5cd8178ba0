"""The links that a page's result has, as items of the same job."""

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.engines.http.decompress import Corrupt, OverLimit, decompress
from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.politeness.site import Sites
from scrapeyard.errors import FetchFailed
from scrapeyard.inputs.formats.rows import ListRefused
from scrapeyard.inputs.keys import key_of
from scrapeyard.inputs.mapper import Shaper
from scrapeyard.inputs.patterns import Chooser
from scrapeyard.inputs.source import FollowSource
from scrapeyard.model.job import NewItem

MAX_LINKS = 10_000
"""Of one page."""
MAX_RESULT = 64 * 1024**2
_GZIP = b"\x1f\x8b"


class Links:
    """Decides which links of one job's pages are followed."""

    def __init__(self, source: FollowSource, shaper: Shaper, sites: Sites) -> None:
        """Raises BadRequest for patterns that cannot be used."""
        self._source = source
        self._shaper = shaper
        self._sites = sites
        self._chooser = Chooser(source.choice)
        self._home = {self._site(url) for url in source.start} - {""}
        page = msgspec.defstruct("Page", [("links", Any, None)], rename={"links": source.links})
        self._page = msgspec.json.Decoder(page).decode
        self._pages = msgspec.json.Decoder(list[page]).decode  # type: ignore[valid-type]  # it is a class

    def starts(self) -> list[NewItem]:
        """The items to begin with; addresses that cannot be used are left out."""
        return list(self._items(dict.fromkeys(self._source.start), chosen=False))

    def follow(self, results: list[bytes]) -> list[NewItem]:
        """New items for the links of some pages, each once. Raises ListRefused for a link that does not fit the
        scraper's input, if the job wants all of them."""
        found: dict[str, None] = {}
        for result in results:
            found.update(dict.fromkeys(self._found(result)))
        return list({item.key: item for item in self._items(found, chosen=True)}.values())

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

    def _items(self, urls: dict[str, None], *, chosen: bool) -> Iterator[NewItem]:
        for url in urls:
            try:
                target = parse_target(url)
            except FetchFailed:  # mailto:, javascript: and the like
                continue
            plain = target.url
            if chosen and not (self._is_home(target.host) and self._chooser.takes(plain)):
                continue
            item = self._shaper.item_of(plain, key_of(plain.encode()))
            if isinstance(item, NewItem):
                yield item
            elif self._source.shape.bad_rows == "reject":
                raise ListRefused([item], 1)

    def _is_home(self, host: str) -> bool:
        return not self._source.same_site or self._sites.of(host) in self._home

    def _site(self, url: str) -> str:
        try:
            return self._sites.of(parse_target(url).host)
        except FetchFailed:
            return ""


def unpacked_result(data: bytes) -> bytes:
    """A result as it was kept, undone where it is gzip; empty when it cannot be."""
    if not data.startswith(_GZIP):
        return data
    try:
        return decompress(data, ("gzip",), MAX_RESULT)
    except (Corrupt, OverLimit, zlib.error):
        return b""


def raw_bytes(result: Raw | None) -> bytes:
    """A result in its row; empty when there is none."""
    return b"" if result is None else bytes(result)
