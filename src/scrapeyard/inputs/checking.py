"""What can be said of a source before it is read: at the door, while the caller still listens."""

from collections.abc import Sequence

from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.inputs.formats.rows import Piece
from scrapeyard.inputs.mapper import Shaper
from scrapeyard.inputs.patterns import Chooser
from scrapeyard.inputs.source import MAX_DEPTH, MAX_ITEMS, MAX_START, FollowSource, SitemapSource, Source, UrlSource
from scrapeyard.model import Scraper
from scrapeyard.repository.manifest.json_schemas import InputChecker


def check_source(source: Source, scraper: Scraper, checker: InputChecker) -> None:
    """Raises BadRequest that names the part to change."""
    if isinstance(source, UrlSource):
        _check_address(source.url, "items_url")
    elif isinstance(source, SitemapSource):
        _check_address(source.url, "sitemap_url")
        Chooser(source.choice)
        _check_number(source.limit or 1, "limit", 1, MAX_ITEMS)
        _check_fit([source.url], source, scraper, checker)
    elif isinstance(source, FollowSource):
        _check_number(len(source.start), "start", 1, MAX_START)
        _check_number(source.depth, "depth", 0, MAX_DEPTH)
        _check_number(source.limit, "limit", len(source.start), MAX_ITEMS)
        for url in source.start:
            _check_address(url, "start")
        Chooser(source.choice)
        _check_fit(source.start, source, scraper, checker)


def _check_address(url: str, place: str) -> None:
    try:
        parse_target(url)
    except FetchFailed as failure:
        raise BadRequest(f"{place}: {failure.message}") from None


def _check_number(number: int, place: str, least: int, most: int) -> None:
    if not least <= number <= most:
        raise BadRequest(f"{place}: {number} is not between {least} and {most}")


def _check_fit(
    urls: Sequence[str], source: SitemapSource | FollowSource, scraper: Scraper, checker: InputChecker
) -> None:
    """Whether the scraper takes addresses at all, together with the fields that every item has."""
    shaped = Shaper(scraper, checker, source.shape).shape(Piece([(0, url) for url in urls], []))
    if shaped.bad:
        raise BadRequest(f"{scraper.ref} does not take such inputs: {shaped.bad[0].reason}")
