"""Items as rows: `full` and `seo` with fixed columns, `data` with columns of its own."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import FetchFailed
from scrapeyard.results.exports.cells import as_integer, as_json, as_number, as_text, as_time, decode, each, plain
from scrapeyard.results.exports.columns import FIELDS_OF, ON_REQUEST, Cell, Column, Kind, Row
from scrapeyard.results.exports.protocol import Line

_NOTHING: Final[dict[str, Any]] = {}
_NOINDEX: Final = re.compile(r"\b(?:noindex|none)\b", re.IGNORECASE)


def full_row(line: Line, page: dict[str, Any]) -> Row:
    """The row of `full`; every item has one, even if it failed. `page` is its data."""
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
        *_item(line),
        line.strategy or None,
        line.proxy or None,
    ]


def seo_row(line: Line, page: dict[str, Any]) -> Row:
    """The row of `seo`; every item has one, even if it failed. `page` is its data."""
    card, twitter = _table(page, "opengraph"), _table(page, "twitter")
    return [
        url_of(line, page),
        as_time(line.finished_at),
        as_text(page.get("title")),
        as_text(page.get("description") or page.get("meta_description")),
        as_text(page.get("h1")),
        as_text(card.get("og:title") or card.get("title") or page.get("og_title")),
        as_text(card.get("og:description") or card.get("description") or page.get("og_description")),
        as_text(card.get("og:image") or card.get("image") or page.get("og_image")),
        as_text(twitter.get("twitter:title") or twitter.get("title") or page.get("twitter_title")),
        as_text(twitter.get("twitter:description") or twitter.get("description") or page.get("twitter_description")),
        as_text(page.get("canonical")),
        _robots(page.get("robots")),
        _hreflang(page.get("hreflang")),
        "|".join(each(images, "alt")) or None if (images := page.get("images")) else None,
        *_fetched(line, page),
        *_item(line),
    ]


def page_row(line: Line, page: dict[str, Any]) -> Row:
    """The row of `pages`, but for its last column; every item has one, even if it failed. `page` is its data."""
    return [
        url_of(line, page),
        as_text(page.get("final_url")),
        status_of(line, page),
        as_time(line.finished_at),
        *(as_text(page.get(name)) for name in ("title", "description", "h1", "canonical", "language")),
        as_integer(page.get("word_count")),
        as_text(page.get("text_hash")),
        *_item(line),
        as_text(page.get("markdown")),
    ]


def _item(line: Line) -> Row:
    return [
        line.status,
        line.exit_reason or None,
        line.error or None,
        line.attempts,
        line.depth,
        line.referrer or None,
    ]


def _fetched(line: Line, page: dict[str, Any]) -> Row:
    """How the page was answered, and whether search engines may list it."""
    status = status_of(line, page)
    redirect = redirect_of(page)
    reasons = _not_indexed(status, redirect, page)
    is_known = status is not None or bool(page)
    return [
        status,
        redirect,
        as_integer(page.get("word_count")),
        as_integer(page.get("size")),
        not reasons if is_known else None,
        "|".join(reasons) or None,
    ]


def redirect_of(page: dict[str, Any]) -> str | None:
    """Where the page's URL led, if the site redirected it."""
    final, seen = page.get("final_url"), page.get("redirects")
    if not isinstance(final, str) or not final:
        return None
    redirected = bool(seen) if isinstance(seen, list) else not same_url(final, page.get("url"))
    return final if redirected else None


def _not_indexed(status: int | None, redirect: str | None, page: dict[str, Any]) -> list[str]:
    """Why search engines leave the page out; empty if they may list it."""
    reasons = [f"status {status}"] if status is not None and status != 200 else []
    if redirect is not None:
        reasons.append("redirected")
    robots = page.get("robots")
    if (robots.get("index") is False) if type(robots) is dict else _NOINDEX.search(as_text(robots) or ""):
        reasons.append("noindex")
    canonical, here = page.get("canonical"), page.get("final_url") or page.get("url")
    if isinstance(canonical, str) and canonical and isinstance(here, str) and not same_url(canonical, here):
        reasons.append("canonical elsewhere")
    return reasons


def same_url(one: str, other: object) -> bool:
    """Whether two URLs are one address, however they are spelled."""
    if one == other:
        return True
    return isinstance(other, str) and spelled(one) == spelled(other)


@lru_cache(4096)
def spelled(url: str) -> str:
    """A URL in its one spelling, without fragment; as it is if it cannot be read."""
    try:
        return parse_target(url).url
    except FetchFailed:
        return url


PAGE_ROWS: Final[dict[str, Callable[[Line, dict[str, Any]], Row]]] = {"full": full_row, "seo": seo_row}


def data_of(line: Line) -> dict[str, Any]:
    """An item's data as an object; a list of a single object counts as that object. Empty for everything else."""
    data = decode(line.result) if line.result else None
    if type(data) is list and len(data) == 1:
        data = data[0]
    return data if type(data) is dict else _NOTHING


def is_page(page: dict[str, Any]) -> bool:
    """Whether it is a page as the built-in scrapers report one."""
    return "final_url" in page and "status" in page


class Unfilled:
    """Finds the columns of an export that no page was asked for."""

    def __init__(self, kind: str) -> None:
        self._fields = FIELDS_OF.get(kind, _NOTHING)
        self._left: set[str] = {name for names in self._fields.values() for name in names}
        self._pages = 0

    def look(self, line: Line, page: dict[str, Any]) -> None:
        """Take one item into account."""
        if not self._left or not is_page(page):
            return
        self._pages += 1
        self._left -= {name for name in self._left if is_extracted(name, line, page)}

    def notes(self) -> list[str]:
        """A sentence for each field that no page has, with the columns that are empty for it."""
        if not self._pages:
            return []
        empty: dict[str, list[str]] = {}
        for column, names in self._fields.items():
            if self._left.issuperset(names):
                empty.setdefault(names[0], []).append(column)
        return [_note(name, columns) for name, columns in empty.items()]


def is_extracted(name: str, line: Line, page: dict[str, Any]) -> bool:
    """Whether the item was asked for this field, even if the page has nothing of it."""
    if name not in ON_REQUEST:
        return name in page
    return page.get(name) is not None or b'"%b"' % name.encode() in line.input


def _note(name: str, columns: list[str]) -> str:
    remedy = f'; run it with this export, or with {{"include": ["{name}"]}} in its input' if name in ON_REQUEST else ""
    return f"{', '.join(columns)}: empty, because the job did not extract `{name}`{remedy}"


def url_of(line: Line, page: dict[str, Any]) -> str:
    """URL from the input, else from the result, else the item's key."""
    url = page.get("url")
    if type(url) is str and url and "final_url" in page:
        return url
    asked = decode(line.input)
    given = asked.get("url") if type(asked) is dict else None
    if type(given) is str and given:
        return given
    return url if type(url) is str and url else line.key


def status_of(line: Line, page: dict[str, Any]) -> int | None:
    """HTTP status of the site's response, if known."""
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


ITEM: Final = "_item"
MORE: Final = "_more"
_OURS: Final = frozenset(name.lstrip("_") for name in (ITEM, MORE))
MAX_COLUMNS: Final = 2000
MAX_DEPTH: Final = 8
"""Deeper nesting becomes JSON in one cell."""


def records_of(line: Line) -> Iterator[dict[str, Any]]:
    """One per record: a list of objects gives several; a bare value becomes an object with the field `value`."""
    if line.status != "success" or not line.result:
        return
    data = decode(line.result)
    for record in data if isinstance(data, list) else (data,):
        if isinstance(record, dict):
            yield record
        elif record is not None:
            yield {"value": record}


def flatten(record: dict[str, Any]) -> dict[str, Cell]:
    """Fields by their paths."""
    flat: dict[str, Cell] = {}
    for name, value in record.items():
        path = _escaped(name)
        if path.startswith("_") and path.lstrip("_") in _OURS:
            path = "_" + path
        _put(flat, path, value, 1)
    return flat


def _put(flat: dict[str, Cell], path: str, value: Any, depth: int) -> None:
    if type(value) is dict and value and depth < MAX_DEPTH:
        for name, below in value.items():
            _put(flat, f"{path}.{_escaped(name)}", below, depth + 1)
    else:
        flat[path] = plain(value)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(".", "\\.") if "." in name or "\\" in name else name


class Fields:
    """Columns, which grow as records arrive. Earlier rows stay valid: they are only shorter."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {ITEM: 0}
        self._kinds: list[Kind | None] = ["text"]
        self._overflows = False

    def rows(self, line: Line) -> Iterator[Row]:
        """The records of an item as rows."""
        for record in records_of(line):
            yield self.row(line.key, flatten(record))

    def row(self, key: str, flat: dict[str, Cell]) -> Row:
        """A record as a row; its new columns are added."""
        row: Row = [None] * len(self._places)
        row[0] = key
        more: dict[str, Cell] = {}
        for path, value in flat.items():
            place = self._place(path)
            if place is None:
                more[path] = value
                continue
            if place == len(row):
                row.append(None)
            row[place] = value
            self._note(place, value)
        return self._with_more(row, more) if more else row

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns seen so far."""
        return tuple(Column(name, self._kinds[place] or "text") for name, place in self._places.items())

    def _place(self, path: str) -> int | None:
        place = self._places.get(path)
        if place is None and len(self._places) < MAX_COLUMNS - 1:
            place = self._places[path] = len(self._places)
            self._kinds.append(None)
        return place

    def _with_more(self, row: Row, more: dict[str, Cell]) -> Row:
        if not self._overflows:
            self._overflows = True
            self._places[MORE] = MAX_COLUMNS - 1
            self._kinds.append("text")
        row += [None] * (MAX_COLUMNS - len(row))
        row[-1] = as_json(more)
        return row

    def _note(self, place: int, value: Cell) -> None:
        kind = self._kinds[place]
        if kind == "text" or value is None:
            return
        seen = _kind(value)
        if kind is not seen:
            self._kinds[place] = seen if kind is None else _both(kind, seen)


def _kind(value: Cell) -> Kind:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number"


def _both(one: Kind, other: Kind) -> Kind:
    return "number" if {one, other} == {"integer", "number"} else "text"
