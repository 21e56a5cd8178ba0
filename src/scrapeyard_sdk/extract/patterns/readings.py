"""How the text at a place becomes a value, and which texts look like the values of a field."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import urljoin

from scrapeyard_sdk.extract.numbers import parse_number
from scrapeyard_sdk.extract.patterns.tree import fold

Kind = Literal["text", "number", "url"]
MAX_PART = 300
"""Characters of the expression that cuts a value out of its text."""
_CONTEXT = 24
"""Characters before and behind a value that the expression looks at."""
_DIGIT, _LETTER, _WORD = re.compile(r"\d"), re.compile(r"[^\W\d_]"), re.compile(r"[^\W\d_]{4}")
_LONGER = 5
"""A value may be so many times longer than the longest example."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueReading:
    """From text to value."""

    kind: Kind = "text"
    part: str = ""
    """A regular expression whose first group is the value within the text; empty: all of the text."""

    def read(self, text: str, url: str = "") -> Any:
        """The value in a text; None if there is none."""
        if self.part:
            match = re.search(self.part, text)
            text = fold(match.group(1)) if match else ""
        if not text:
            return None
        if self.kind == "number":
            number = parse_number(text)
            return None if number is None else _plain(number)
        return urljoin(url, text) if self.kind == "url" else text


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def value_of(given: Any, kind: Kind, url: str) -> Any:
    """A value of an example in the form in which `ValueReading.read` gives it."""
    if kind == "number":
        return _plain(Decimal(str(given)))
    text = fold(str(given))
    return urljoin(url, text) if kind == "url" else text


def kind_of(values: Iterable[Any]) -> Kind:
    """What kind of values these are."""
    values = list(values)
    if values and all(isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) for value in values):
        return "number"
    is_url = re.compile(r"(?:https?://|/)\S+$")
    return "url" if values and all(is_url.match(str(value)) for value in values) else "text"


def part_of(pairs: list[tuple[str, str]]) -> str:
    """An expression that cuts each value out of the text it stands in; empty if there is none."""
    if not pairs:
        return ""
    before = [text[: text.index(value)] for text, value in pairs]
    behind = [text[text.index(value) + len(value) :] for text, value in pairs]
    head = _shared_start([text[::-1] for text in before])[:_CONTEXT][::-1]
    tail = _shared_start(behind)[:_CONTEXT]
    start = "^" if not any(before) else re.escape(head)
    end = "$" if not any(behind) else re.escape(tail)
    part = f"{start}(.+{'' if end == '$' else '?'}){end}"
    if not start or not end or len(part) > MAX_PART:
        return ""
    return part if all(ValueReading(part=part).read(text) == value for text, value in pairs) else ""


def _shared_start(texts: list[str]) -> str:
    """What all texts begin with."""
    low, high = min(texts), max(texts)
    return low[: next((at for at, letter in enumerate(low) if high[at : at + 1] != letter), len(low))]


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueShape:
    """What the values of a field look like. It only refuses what is plainly something else."""

    longest: int = 0
    """Characters of the longest example; 0: any length."""
    digits: bool = False
    """Whether every value has a digit."""
    letters: bool = False
    """Whether every value has a letter."""
    wordless: bool = False
    """Whether no value has a word of four letters or more."""

    @classmethod
    def of(cls, values: Iterable[Any]) -> "ValueShape":
        """The shape of these examples. Of a single one only the length counts."""
        texts = [str(value) for value in values]
        several = len(texts) > 1
        return cls(
            longest=max(map(len, texts), default=0),
            digits=several and all(map(_DIGIT.search, texts)),
            letters=several and all(map(_LETTER.search, texts)),
            wordless=len(texts) > 2 and not any(map(_WORD.search, texts)),
        )

    def fits(self, value: Any) -> bool:
        """Whether a value may be one of the field."""
        text = str(value)
        return (
            not (self.longest and len(text) > _LONGER * self.longest + 50)
            and not (self.digits and not _DIGIT.search(text))
            and not (self.letters and not _LETTER.search(text))
            and not (self.wordless and _WORD.search(text))
        )
