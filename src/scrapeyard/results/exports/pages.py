"""An item as a row of `full` or `seo`: what the built-in scrapers say, or a script that uses the same names."""

from collections.abc import Callable
from typing import Any, Final

from scrapeyard.results.exports.cells import as_integer, as_number, as_text, as_time, decode, each
from scrapeyard.results.exports.columns import Row
from scrapeyard.results.exports.protocol import Line

_NOTHING: Final[dict[str, Any]] = {}


def full_row(line: Line) -> Row:
    """Every item has one, failed ones too."""
    page = data_of(line)
    product = _table(page, "product") or page
    final_url = page.get("final_url")
    return [
        url_of(line, page),
        as_text(final_url),
        status_of(line, page),
        as_time(line.finished_at),
        as_text(page.get("title") or product.get("name")),
        as_text(page.get("h1")),
        as_number(product.get("price")),
        as_text(product.get("currency")),
        as_text(product.get("availability")),
        as_text(product.get("sku")),
        as_text(product.get("brand")),
        as_text(product.get("category")),
        " > ".join(each(crumbs, "name")) or None if (crumbs := product.get("breadcrumbs")) else None,
        "|".join(each(images, "url")) or None if (images := product.get("images") or page.get("images")) else None,
        as_text(product.get("attributes")),
        as_text(page.get("text_hash")),
    ]


def seo_row(line: Line) -> Row:
    """Every item has one, failed ones too."""
    page = data_of(line)
    card, twitter = _table(page, "opengraph"), _table(page, "twitter")
    return [
        url_of(line, page),
        as_time(line.finished_at),
        as_text(page.get("title")),
        as_text(page.get("description") or page.get("meta_description")),
        as_text(page.get("h1")),
        as_text(card.get("title") or page.get("og_title")),
        as_text(card.get("description") or page.get("og_description")),
        as_text(card.get("image") or page.get("og_image")),
        as_text(twitter.get("title") or page.get("twitter_title")),
        as_text(twitter.get("description") or page.get("twitter_description")),
        as_text(page.get("canonical")),
        _robots(page.get("robots")),
        _hreflang(page.get("hreflang")),
        "|".join(each(images, "alt")) or None if (images := page.get("images")) else None,
    ]


PAGE_ROWS: Final[dict[str, Callable[[Line], Row]]] = {"full": full_row, "seo": seo_row}


def data_of(line: Line) -> dict[str, Any]:
    """An item's data as a table; one record of one counts as the table itself. Empty for all else."""
    data = decode(line.result) if line.result else None
    if type(data) is list and len(data) == 1:
        data = data[0]
    return data if type(data) is dict else _NOTHING


def url_of(line: Line, page: dict[str, Any]) -> str:
    """Of the input, else of the result; an item without any is known by its key."""
    url = page.get("url")
    if type(url) is str and url and "final_url" in page:
        return url
    asked = decode(line.input)
    given = asked.get("url") if type(asked) is dict else None
    if type(given) is str and given:
        return given
    return url if type(url) is str and url else line.key


def status_of(line: Line, page: dict[str, Any]) -> int | None:
    """What the site answered, as far as it is known."""
    status = as_integer(page.get("status")) if "final_url" in page else None
    return status or as_integer(page.get("http_status")) or line.site_status


def _table(page: dict[str, Any], name: str) -> dict[str, Any]:
    found = page.get(name)
    return found if type(found) is dict else _NOTHING


def _robots(robots: object) -> str | None:
    if isinstance(robots, dict):
        return as_text([value for value in (as_text(robots.get("meta")), as_text(robots.get("header"))) if value])
    return as_text(robots)


def _hreflang(alternates: object) -> str | None:
    if not isinstance(alternates, list):
        return as_text(alternates)
    pairs = [f"{one.get('language')}={one.get('url')}" for one in alternates if isinstance(one, dict)]
    return "|".join(pairs) or None
