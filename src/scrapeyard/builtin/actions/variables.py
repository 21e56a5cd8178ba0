"""`{{name}}` in the texts of steps, and comparing variables."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

MAX_RENDERED = 1024 * 1024
"""Characters of a text with its variables in place."""
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)\s*\}\}")


def names_in(value: Any) -> Iterator[str]:
    """The variables that a value refers to, without what follows a dot."""
    if isinstance(value, str):
        for place in _PLACE.finditer(value):
            yield place[1].partition(".")[0]
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from names_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from names_in(each)


class Variables:
    """Those of a run. What was extracted is found by its name, too."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.data: dict[str, Any] = {}
        self._values = dict(given)

    def set(self, name: str, value: Any) -> None:
        """Set a variable."""
        self._values[name] = value

    def get(self, path: str) -> Any:
        """The value of `name` or `name.field.0`; null if it has no such field. Raises FetchFailed if it is unknown."""
        name, *steps = path.split(".")
        known = self._values if name in self._values else self.data
        if name not in known:
            raise FetchFailed(ExitReason.BROWSER_STEP, f"there is no variable {name[:100]}")
        value = known[name]
        for step in steps:
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list) and step.isdecimal() and int(step[:9]) < len(value):
                value = value[int(step[:9])]
            else:
                return None
        return value

    def render(self, value: Any) -> Any:
        """The value with its variables in place. A text that is one variable alone becomes the variable's value."""
        if isinstance(value, str):
            whole = _PLACE.fullmatch(value.strip())
            return self.get(whole[1]) if whole else self.text(value)
        if isinstance(value, Mapping):
            return {key: self.render(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.render(each) for each in value]
        return value

    def text(self, text: str) -> str:
        """The text with its variables in place, as text."""
        if "{{" not in text:
            return text
        done = _PLACE.sub(lambda place: as_text(self.get(place[1])), text)
        if len(done) > MAX_RENDERED:
            raise FetchFailed(ExitReason.BROWSER_STEP, f"a text has more than {MAX_RENDERED} characters")
        return done


def as_text(value: Any) -> str:
    """As a text shows it: empty for null, JSON for lists and objects."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def compare(left: Any, how: str, right: Any) -> bool:
    """Numbers are compared as numbers, also where a page has them as text; all else as it is."""
    if how == "set":
        return left is not None and left not in ("", [], {})
    if how == "contains":
        return as_text(right) in left if isinstance(left, str) else isinstance(left, list | dict) and right in left
    numbers = (_number(left), _number(right))
    if how in ("==", "!="):
        same = left == right or (None not in numbers and numbers[0] == numbers[1])
        return same if how == "==" else not same
    if numbers[0] is None or numbers[1] is None:
        if not isinstance(left, str) or not isinstance(right, str):
            raise FetchFailed(ExitReason.BROWSER_STEP, f"{how} needs two numbers or two texts")
        return _ordered(left, how, right)
    return _ordered(numbers[0], how, numbers[1])


def _ordered(left: Any, how: str, right: Any) -> bool:
    found: bool = left < right if how[0] == "<" else left > right
    return found or (how.endswith("=") and left == right)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,15}(\.\d{1,15})?\s*", value, re.ASCII):
        return float(value)
    return None
