"""JSON as pages carry it: comments, trailing commas, several documents in one element, entities, CDATA marks."""

import html
import json
import math
import re
from itertools import islice
from typing import Any

MAX_SOURCE = 2_000_000
"""Characters of one document; a longer one is not read."""
MAX_DEPTH = 40
"""What is nested deeper becomes None."""
_MAX_DOCUMENTS = 100
_EXACT = 2**53

_WRAPPING = re.compile(
    r"^\s*(?:<!--|//<!\[CDATA\[|/\*<!\[CDATA\[\*/|<!\[CDATA\[)|(?:-->|//\]\]>|/\*\]\]>\*/|\]\]>)\s*$"
)
_STRING = r"""("(?:[^"\\]|\\.)*+(?:"|$))"""
"""Closed or not: an unclosed one must not be matched again."""
_COMMENTS = re.compile(_STRING + r"|//[^\n]*|/\*(?:.*?\*/|.*$)|<!--(?:.*?-->|.*$)", re.DOTALL)
_COMMAS = re.compile(_STRING + r"|,(?=\s*+[}\]])", re.DOTALL)
_BAD_ESCAPE = re.compile(r"\\(?:\\|(?![\"\\/bfnrtu])|u(?![0-9a-fA-F]{4}))")
_BETWEEN = re.compile(r"[\s,;]*")


class Budget:
    """How many more values may be read from a page."""

    def __init__(self, values: int = 50_000) -> None:
        self.left = values


def read_json(text: str, budget: Budget | None = None) -> list[Any]:
    """Every document in the text, as plain values that can be written as JSON again. Never raises.

    Text that cannot be read even after repair gives an empty list.
    """
    if len(text) > MAX_SOURCE:
        return []
    text = text.replace("\ufeff", "")
    bare = _WRAPPING.sub("", _WRAPPING.sub("", text))
    found = _documents(bare)
    if found is None:
        found = _documents(_repaired(bare)) or _documents(_repaired(text)) or []
    budget = budget or Budget()
    return [plain(value, budget) for value in found]


def plain(value: Any, budget: Budget, depth: int = 0) -> Any:
    """The value within limits, without what JSON or UTF-8 cannot represent."""
    budget.left -= 1
    if budget.left < 0 or depth > MAX_DEPTH:
        return None
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        pairs = islice(value.items(), budget.left)
        return {clean(str(key))[:500]: plain(each, budget, depth + 1) for key, each in pairs}
    if isinstance(value, list):
        return [plain(each, budget, depth + 1) for each in islice(value, budget.left)]
    return _number(value)


def clean(text: str) -> str:
    """Without NUL and lone surrogates, which cannot be stored."""
    if text.isascii():
        return text.replace("\0", "")
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _number(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < _EXACT else str(value)
    return value if isinstance(value, float) and math.isfinite(value) else None


def _documents(text: str) -> list[Any] | None:
    """The documents; None if the syntax breaks before the first one ends."""
    decoder = json.JSONDecoder(strict=False)
    found: list[Any] = []
    at = _gap(text, 0)
    while at < len(text) and len(found) < _MAX_DOCUMENTS:
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found or None
        found.append(value)
        at = _gap(text, at)
    return found


def _gap(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return between.end() if between else at


def _repaired(text: str) -> str:
    if "&quot;" in text or "&#34;" in text:
        text = html.unescape(text)
    # Comments go first: one may stand between a comma and the bracket that makes it a trailing one.
    text = _COMMENTS.sub(lambda token: token[1] or "", text)
    return _COMMAS.sub(lambda token: _escaped(token[1]) if token[1] else "", text)


def _escaped(string: str) -> str:
    if "\\" not in string:
        return string
    return _BAD_ESCAPE.sub(lambda found: found[0] if found[0] == "\\\\" else "\\\\" + found[0][1:], string)
