"""Patterns: for each field of a kind of page, rules that find its value. They are plain JSON that people can edit."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from scrapeyard_sdk.extract.patterns.readings import MAX_PART, ValueReading, ValueShape
from scrapeyard_sdk.extract.patterns.tree import PageTree, compiled

FORMAT = 1
MAX_FIELDS, MAX_RULES, MAX_XPATH = 200, 20, 1000
MAX_VALUES = 1000
"""Values of one field on one page."""


class PatternInvalid(ValueError):
    """The JSON is not a pattern. The message says where and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternRule:
    """One way to a field's values."""

    xpath: str
    weight: float = 1.0
    """How much it counts where rules disagree."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundField:
    """What a pattern found of one field."""

    value: Any
    """One value, or a list for a field with several; None if nothing was found."""
    confidence: float = 0.0
    """From 0 to 1: the share of the rules, by weight, that found this value and no other."""
    xpath: str = ""
    """The best rule that found it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternField:
    """How one field is read."""

    rules: tuple[PatternRule, ...]
    many: bool = False
    """Whether a page may have several values. If not, a rule that finds several says nothing."""
    reading: ValueReading = field(default_factory=ValueReading)
    shape: ValueShape = field(default_factory=ValueShape)

    def find(self, tree: PageTree, url: str = "") -> FoundField:
        """The values that the rules agree on most. Asks further rules only until two say the same."""
        votes: dict[tuple[Any, ...], float] = {}
        first: dict[tuple[Any, ...], str] = {}
        asked = 0.0
        for rule in self.rules:
            asked += rule.weight
            values = self.values(tree, rule.xpath, url)
            if not values:
                continue
            if list(votes) == [values]:
                return self._found(values, 1.0, first[values])
            votes[values] = votes.get(values, 0.0) + rule.weight
            first.setdefault(values, rule.xpath)
        if not votes:
            return FoundField(value=[] if self.many else None)
        best = max(votes, key=lambda values: votes[values])
        return self._found(best, votes[best] / asked, first[best])

    def values(self, tree: PageTree, xpath: str, url: str = "") -> tuple[Any, ...]:
        """What one rule finds; empty if that cannot be this field."""
        read = (self.reading.read(text, url) for text in tree.find(xpath)[:MAX_VALUES])
        values = tuple(dict.fromkeys(value for value in read if value is not None and self.shape.fits(value)))
        return values if self.many or len(values) == 1 else ()

    def _found(self, values: tuple[Any, ...], confidence: float, xpath: str) -> FoundField:
        value = list(values) if self.many else values[0]
        return FoundField(value=value, confidence=round(min(confidence, 1.0), 3), xpath=xpath)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """How the fields of one kind of page are read."""

    fields: Mapping[str, PatternField]

    def find(self, html: str | bytes, url: str = "") -> dict[str, FoundField]:
        """Every field of a page, with how sure it is. `url` completes relative links."""
        tree = PageTree(html)
        return {name: each.find(tree, url) for name, each in self.fields.items()}

    def extract(self, html: str | bytes, url: str = "") -> dict[str, Any]:
        """Only the values."""
        return {name: found.value for name, found in self.find(html, url).items()}

    def to_json(self) -> str:
        """For a file. People may edit it."""
        fields = {name: _without_defaults(each) for name, each in self.fields.items()}
        return json.dumps({"format": FORMAT, "fields": fields}, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> "Pattern":
        """Read what `to_json` wrote or a person edited. Raises PatternInvalid."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PatternInvalid(f"a pattern is JSON: {error}") from None
        return cls(fields=dict(_fields(given)))


def _without_defaults(each: PatternField) -> dict[str, Any]:
    given = asdict(each)
    usual = asdict(PatternField(rules=()))
    kept = {name: value for name, value in given.items() if value != usual[name]}
    for name in ("reading", "shape"):
        if name in kept:
            kept[name] = {key: value for key, value in kept[name].items() if value != usual[name][key]}
    return kept


def _fields(given: Any) -> Iterator[tuple[str, PatternField]]:
    if not isinstance(given, dict) or given.get("format") != FORMAT or not isinstance(given.get("fields"), dict):
        raise PatternInvalid(f'a pattern is an object with "format": {FORMAT} and "fields"')
    if len(given["fields"]) > MAX_FIELDS:
        raise PatternInvalid(f"a pattern has at most {MAX_FIELDS} fields")
    for name, each in given["fields"].items():
        try:
            yield name, _field(each)
        except (TypeError, ValueError, AttributeError) as error:
            raise PatternInvalid(f"fields.{name[:100]}: {error}") from None


def _field(given: dict[str, Any]) -> PatternField:
    unknown = set(given) - {"rules", "many", "reading", "shape"}
    if unknown:
        raise ValueError(f"unknown keys: {', '.join(sorted(unknown))}")
    rules = tuple(_rule(each) for each in given.get("rules", ()))
    if not 0 < len(rules) <= MAX_RULES:
        raise ValueError(f"a field has 1 to {MAX_RULES} rules")
    reading = ValueReading(**given.get("reading", {}))
    if reading.kind not in ("text", "number", "url"):
        raise ValueError("reading.kind is text, number or url")
    if reading.part:
        _check_part(reading.part)
    return PatternField(
        rules=rules, many=bool(given.get("many")), reading=reading, shape=ValueShape(**given.get("shape", {}))
    )


def _check_part(part: str) -> None:
    try:
        groups = re.compile(part).groups
    except re.error as error:
        raise ValueError(f"reading.part: {error}") from None
    if len(part) > MAX_PART or groups < 1:
        raise ValueError(f"reading.part has a group for the value, and at most {MAX_PART} characters")


def _rule(given: dict[str, Any]) -> PatternRule:
    from lxml import etree

    rule = PatternRule(**given)
    if not isinstance(rule.xpath, str) or len(rule.xpath) > MAX_XPATH:
        raise ValueError(f"an xpath is a text of at most {MAX_XPATH} characters")
    if not isinstance(rule.weight, (int, float)) or not 0 < rule.weight <= 1000:
        raise ValueError("a weight is above 0 and at most 1000")
    try:
        compiled(rule.xpath)
    except (etree.XPathError, ValueError) as error:
        raise ValueError(f"{rule.xpath[:200]!r} is not an XPath: {error}") from None
    return rule
