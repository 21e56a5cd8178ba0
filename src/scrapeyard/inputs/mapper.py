"""Rows become items: columns are mapped to fields and converted, and each input is checked and gets a key."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.inputs.formats.rows import MAX_REASON, BadRow, ListUnreadable, Piece
from scrapeyard.inputs.item_ids import ItemIds
from scrapeyard.inputs.patterns import Chooser
from scrapeyard.inputs.source import (
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_START,
    FollowSource,
    KafkaSource,
    Shape,
    SitemapSource,
    Source,
    UrlSource,
)
from scrapeyard.model import Scraper
from scrapeyard.model.job import NewItem
from scrapeyard.repository.manifest.items import InputUnfit, is_key, item_of, sorted_json
from scrapeyard.repository.manifest.json_schemas import InputChecker

ITEM_ID = "item_id"
"""Column or field that holds the item's key."""
_ENVELOPE = {ITEM_ID, "input"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_YES = frozenset({"true", "yes", "y", "on", "1"})
_NO = frozenset({"false", "no", "n", "off", "0"})

Convert = Callable[[str], Any]
"""Text to a value. Raises ValueError that says what was expected."""


class Shaped(Struct, frozen=True):
    """Result of mapping some rows."""

    items: list[NewItem]
    bad: list[BadRow]


class Shaper:
    """Builds items from rows for one scraper. CSV text is converted as the schema requires; JSON values are not."""

    def __init__(self, scraper: Scraper, checker: InputChecker, shape: Shape) -> None:
        self._scraper = scraper
        self._checker = checker
        self._shape = shape
        self._properties: Mapping[str, Any] = scraper.input_schema.get("properties") or {}
        self._closed = scraper.input_schema.get("additionalProperties") is False
        self._plan: tuple[tuple[str, str, Convert | None], ...] | None = None
        self._named = ITEM_ID not in self._properties
        """Whether `item_id` is the item's key rather than a field of its input."""
        self._ids = ItemIds()

    def shape(self, piece: Piece, *, text: bool = False) -> Shaped:
        """Items of a piece, in order; with `text` its rows map columns to text.

        Raises ListUnreadable if the columns do not fit the scraper, ScraperInvalid if its schema is wrong.
        """
        shaped = Shaped([], list(piece.bad))
        take = self._from_cells if text else self._from_value
        for line, row in piece.rows:
            try:
                key, value = take(row)
                item = self._item(key, value)
                if key and (earlier := self._ids.earlier(key, line, sorted_json(item.input))) is not None:
                    raise InputUnfit(f"same {ITEM_ID} as line {earlier} with another input: {key}")
                shaped.items.append(item)
            except InputUnfit as unfit:
                shaped.bad.append(BadRow(line=line, reason=str(unfit)[:MAX_REASON]))
        return shaped

    def close(self) -> None:
        """Forget the ids that were seen. May be called twice."""
        self._ids.close()

    def item_of(self, url: str, key: str) -> NewItem | BadRow:
        """The item of a URL, under the given key; a bad row if it does not fit the scraper's input."""
        try:
            return self._item(key, {**self._shape.input, "url": url})
        except InputUnfit as unfit:
            return BadRow(line=0, reason=str(unfit)[:MAX_REASON], file=url[:MAX_REASON])

    def _item(self, key: str, value: Mapping[str, Any]) -> NewItem:
        return item_of(self._scraper, self._checker, key, value)

    def _from_cells(self, row: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """Empty cells are left out, so that defaults apply."""
        plan = self._plan or self._planned(tuple(row))
        value = dict(self._shape.input)
        for column, name, convert in plan:
            cell = row[column]
            if cell:
                value[name] = cell if convert is None else _converted(name, cell, convert)
        key = row.get(ITEM_ID, "") if self._named else ""
        return _checked_key(key.strip()), value

    def _from_value(self, row: Any) -> tuple[str, dict[str, Any]]:
        if isinstance(row, str):
            return "", {**self._shape.input, "url": row}
        if not isinstance(row, dict):
            raise InputUnfit(f"is neither an object nor an address, but {json.dumps(row)[:50]}")
        if not self._named or ITEM_ID not in row:
            inner = row.get("input") if row.keys() == {"input"} and "input" not in self._properties else row
            key = ""
        else:
            key = _key_in(row[ITEM_ID])
            inner = row["input"] if row.keys() == _ENVELOPE else {k: v for k, v in row.items() if k != ITEM_ID}
        if not isinstance(inner, dict):
            raise InputUnfit("its input is not an object")
        return key, {**self._shape.input, **inner}

    def _field_of(self, column: str, columns: Sequence[str]) -> str:
        """The input that a column is: of its own name, or of one that differs in case only, as `URL` and `url` do."""
        if column in self._properties:
            return column
        same = [name for name in self._properties if _no_case(name) == _no_case(column) and name not in columns]
        alone = sum(_no_case(column) == _no_case(other) for other in columns) == 1
        return same[0] if len(same) == 1 and alone else column

    def _planned(self, columns: Sequence[str]) -> tuple[tuple[str, str, Convert | None], ...]:
        wanted = self._shape.columns or {
            name: self._field_of(name, columns) for name in columns if not (self._named and name == ITEM_ID)
        }
        missing = [name for name in wanted if name not in columns]
        if missing:
            raise ListUnreadable(f"columns maps {_names(missing)}, which the list has not; it has {_names(columns)}")
        unknown = [name for name in wanted.values() if name not in self._properties] if self._closed else []
        if unknown:
            known = [(column, name) for column, name in wanted.items() if name in self._properties]
            column, name = known[0] if known else (next(iter(wanted)), next(iter(self._properties), "url"))
            raise ListUnreadable(
                f"{_names(unknown)} is no input of {self._scraper.ref}, which takes {_names(self._properties)}; say "
                f'which columns to take, as `columns: {{"{column}": "{name}"}}` or --column {column}={name}; '
                "others are left out"
            )
        self._plan = tuple((column, name, converter(self._properties.get(name))) for column, name in wanted.items())
        return self._plan


def _no_case(name: str) -> str:
    return name.strip().casefold()


def converter(schema: Any) -> Convert | None:
    """The conversion from text for a field's schema; None if it stays text."""
    kinds = _kinds(schema) - {"null"}
    if not kinds or "string" in kinds:
        return None
    if kinds == {"boolean"}:
        return _boolean
    if kinds == {"integer"}:
        return _integer
    if kinds <= {"integer", "number"}:
        return _number
    return _json


def _kinds(schema: Any) -> set[str]:
    """Types named by a schema or its alternatives; empty if it names none."""
    if not isinstance(schema, dict):
        return set()
    named = schema.get("type")
    if named is not None:
        return {named} if isinstance(named, str) else {kind for kind in named if isinstance(kind, str)}
    alternatives = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    if alternatives and all(isinstance(one, dict) and "type" in one for one in alternatives):
        return set().union(*map(_kinds, alternatives))
    return set()


def _integer(text: str) -> int:
    text = text.strip()
    if not _INTEGER.fullmatch(text):
        raise ValueError("a whole number")
    return int(text)


def _number(text: str) -> int | float:
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        raise ValueError("a number such as 12.5, with a point and no separators")
    return float(text)


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise ValueError("true or false")


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ValueError("JSON, such as a list in brackets") from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _converted(name: str, cell: str, convert: Convert) -> Any:
    try:
        return convert(cell)
    except ValueError as error:
        raise InputUnfit(f"{name}: {cell[:60]!r} is not {error}") from None


def _key_in(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputUnfit(f"its {ITEM_ID} is neither text nor a whole number")
    return _checked_key(str(value)) or _no_key()


def _no_key() -> str:
    raise InputUnfit(f"its {ITEM_ID} is empty; leave it out, and one is made")


def _checked_key(key: str) -> str:
    if key and not is_key(key):
        raise InputUnfit(
            f"{key[:60]!r} cannot be an {ITEM_ID}: 1 to 128 letters, digits, dots, dashes, tildes and underscores, the "
            "first a letter or digit"
        )
    return key


def _names(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(name[:60] for name in found[:10]) + (", …" if len(found) > 10 else "") or "none"


def check_source(source: Source, scraper: Scraper, checker: InputChecker) -> None:
    """Raise BadRequest naming the part to change."""
    if isinstance(source, UrlSource):
        _check_address(source.url, "items_url")
    elif isinstance(source, SitemapSource):
        _check_address(source.url, "sitemap_url")
        Chooser(source.choice)
        _check_number(source.limit or 1, "limit", 1, MAX_ITEMS)
        _check_fit([source.url], source, scraper, checker)
    elif isinstance(source, KafkaSource):
        _check_number(source.limit or 1, "limit", 1, MAX_ITEMS)
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
    """Check that the scraper accepts URLs together with the fields that every item has."""
    shaped = Shaper(scraper, checker, source.shape).shape(Piece([(0, url) for url in urls], []))
    if shaped.bad:
        raise BadRequest(f"{scraper.ref} does not take such inputs: {shaped.bad[0].reason}")
