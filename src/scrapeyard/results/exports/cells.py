"""Result values as cells. Text that a spreadsheet would run as a formula is escaped."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any, Final

import msgspec

from scrapeyard.results.exports.columns import Cell
from scrapeyard_sdk.extract.prices import parse_price

_STARTS: Final = re.compile("[\\s\\0]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\\t\\r\\n\\0]")
"""Includes full-width forms: some spreadsheets treat them the same."""
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_HARMLESS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789{[(\"<'#/")
"""Most text begins with one of these."""


def neutral(cell: Cell) -> Cell:
    """The text, prefixed with `'` if a spreadsheet would run it as a formula. Numbers stay."""
    if type(cell) is not str or not cell or cell[0] in _HARMLESS:
        return cell
    return f"'{cell}" if _STARTS.match(cell) and not _NUMBER.fullmatch(cell) else cell


SEPARATOR: Final = "|"
_INTEGERS: Final = range(-(2**63), 2**63)
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decode(data: bytes) -> Any:
    """Decode JSON; None if invalid. Half a surrogate pair, which no file can store, becomes `?`."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, RecursionError):
        try:
            return _decode(json.dumps(json.loads(data), ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None


def as_json(value: object) -> str:
    """One line of JSON."""
    return to_json(value).decode()


def to_json(value: object) -> bytes:
    """The same as bytes. Integers of any length are preserved."""
    try:
        return _encode(value)
    except OverflowError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def as_time(seconds: float | None) -> str | None:
    """ISO 8601 in UTC, to the millisecond."""
    if seconds is None:
        return None
    whole, milliseconds = divmod(int(seconds * 1000 + 0.5), 1000)
    return f"{_second(whole)}.{milliseconds:03d}Z"


def as_text(value: object) -> str | None:
    """Text stays; lists of plain values are joined by `|`, unless one contains it; all else is JSON. Empty is None."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, list):
        return joined(value) or None
    if isinstance(value, dict):
        return as_json(value) if value else None
    return as_json(value)


def as_number(value: object) -> float | None:
    """A number, or the number in a text such as `1.299,00 €`. None if there is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            amount = parse_price(value).amount
            number = float("nan") if amount is None else float(amount)
    elif isinstance(value, (int, float)):
        number = _float(value)
    else:
        return None
    return number if isfinite(number) else None


def as_integer(value: object) -> int | None:
    """An integer, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def joined(values: list[Any]) -> str:
    """`a|b|c`; JSON if that would be ambiguous: something nested, or a text containing `|`."""
    if all(isinstance(value, str) and SEPARATOR not in value for value in values):
        return SEPARATOR.join(values)
    if any(isinstance(value, (dict, list)) or (isinstance(value, str) and SEPARATOR in value) for value in values):
        return as_json(values)
    return SEPARATOR.join(
        "" if value is None else value if isinstance(value, str) else as_json(value) for value in values
    )


def plain(value: Any) -> Cell:
    """A leaf as a cell: text, numbers and booleans unchanged, lists joined. Integers too large for a number column
    become text."""
    if isinstance(value, (list, dict)):
        return joined(value) if isinstance(value, list) else as_json(value)
    return str(value) if type(value) is int and value not in _INTEGERS else value


def each(values: object, name: str) -> Iterable[str]:
    """The texts of a list; for objects their field `name`."""
    for value in values if isinstance(values, list) else ():
        found = value.get(name) if isinstance(value, dict) else value
        if isinstance(found, str) and found:
            yield found


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


@lru_cache(maxsize=8192)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
