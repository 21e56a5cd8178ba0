"""What a Firecrawl server answers to a search: read, checked and cut to size."""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.solver.port import ImageHit, NewsHit, SearchHits, WebHit
from scrapeyard.errors import FetchFailed

MAX_SEARCH_BYTES: Final = 4 * 2**20
"""Maximum bytes of an answer."""
_MAX_TEXT: Final = 5000
"""Characters of a title, a description and the like; a longer one is cut."""
_MAX_URL: Final = 8000
_URLS: Final = ("url", "image_url")


class SearchAnswer(Struct, frozen=True):
    """The answer as it comes."""

    success: bool = False
    data: SearchHits | None = None
    error: str = ""


SEARCH_DECODER: Final = msgspec.json.Decoder(SearchAnswer, strict=False)
_Hit = TypeVar("_Hit", WebHit, NewsHit, ImageHit)


def checked_hits(answer: SearchAnswer, limit: int) -> SearchHits:
    """At most `limit` hits of each source, without those whose address is none."""
    data = answer.data or SearchHits()
    return SearchHits(
        web=_checked(data.web, limit), news=_checked(data.news, limit), images=_checked(data.images, limit)
    )


def _checked(hits: Iterable[_Hit], limit: int) -> tuple[_Hit, ...]:
    return tuple(_cut(hit) for hit in hits if _has_addresses(asdict(hit)))[:limit]


def _has_addresses(hit: dict[str, Any]) -> bool:
    return all(_is_address(hit[name]) for name in _URLS if hit.get(name) is not None)


def _is_address(url: str) -> bool:
    try:
        parse_target(url)
    except FetchFailed:
        return False
    return len(url) <= _MAX_URL


def _cut(hit: _Hit) -> _Hit:
    long = {
        name: value[:_MAX_TEXT]
        for name, value in asdict(hit).items()
        if name not in _URLS and isinstance(value, str) and len(value) > _MAX_TEXT
    }
    return replace(hit, **long) if long else hit
