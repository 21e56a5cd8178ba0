"""The fields that selectors find on a page.

A field that is not found, or is not of the type that was asked for, is None, and a warning says so. Nothing is guessed.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import regex
from selectolax.lexbor import LexborNode

from scrapeyard.builtin.pages.convert import CONVERTERS, NotOfThatType, PageFacts
from scrapeyard.builtin.pages.port import MAX_TEXT, RawPage
from scrapeyard_sdk.extract.lenient_json import clean
from scrapeyard_sdk.extract.page import base_of
from scrapeyard_sdk.extract.selectors import OWN_TEXT, Selector, parse_selector
from scrapeyard_sdk.node import HtmlTree
from scrapeyard_sdk.text import lines

MAX_MATCHES = 1000
"""Elements of one list."""
MAX_WARNINGS = 100
_MAX_SEARCHED = 20_000
"""Characters in which a regular expression is searched."""
_REGEX_SECONDS = 2.0
"""For all regular expressions of a page."""

Rule = dict[str, Any]
Found = LexborNode | str


class RequiredMissing(Exception):
    """A required field was not found: the record does not count."""


def read_fields(source: str, page: RawPage) -> dict[str, Any]:
    """`fields` by name, and `warnings`. `fields` is None if a required one is missing; the last warning says which."""
    document = HtmlTree(source)
    tree = document.tree
    language = tree.css_first("html[lang]")
    said = (language.attributes.get("lang") if language is not None else None) or ""
    reader = _Reader(document, PageFacts(base=base_of(tree, page.url), language=said))
    try:
        found = reader.record(tree.root, page.fields or {}, "") if tree.root is not None else {}
    except RequiredMissing as missing:
        return {"fields": None, "warnings": [*reader.warnings(), str(missing)]}
    return {"fields": found, "warnings": reader.warnings()}


class _Reader:
    """Reads the fields of one page, within bounds for the whole page."""

    def __init__(self, document: HtmlTree, context: PageFacts) -> None:
        self._document = document
        self._context = context
        self._room = MAX_TEXT
        self._seconds = _REGEX_SECONDS
        self._warnings: dict[str, int] = {}
        self._patterns: dict[str, Any] = {}
        self._selectors: dict[tuple[str, Any], Selector] = {}

    def warnings(self) -> list[str]:
        """Each once, with how often it came."""
        told = [f"{words} ({times} times)" if times > 1 else words for words, times in self._warnings.items()]
        more = [f"… and {len(told) - MAX_WARNINGS} more"] if len(told) > MAX_WARNINGS else []
        return told[:MAX_WARNINGS] + more

    def record(self, node: LexborNode, rules: dict[str, Any], path: str) -> dict[str, Any]:
        """Every field of an element. Raises RequiredMissing."""
        return {name: self._field(node, _rule(rule), f"{path}{name}") for name, rule in rules.items()}

    def _field(self, node: LexborNode, rule: Rule, path: str) -> Any:
        value = self._records(node, rule, path) if "each" in rule else self._values(node, rule, path)
        if value is None or value == []:
            if rule.get("required"):
                raise RequiredMissing(f"{path}: required, and not found")
            value = rule.get("default", value)
        return value

    def _records(self, node: LexborNode, rule: Rule, path: str) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = []
        for match in self._find(node, rule, path):
            if isinstance(match, str):
                self._warn(f"{path}: `each` must select elements, not text")
                break
            try:
                records.append(self.record(match, rule["fields"], f"{path}."))
            except RequiredMissing as missing:
                self._warn(f"{missing}: that record is left out")
        return records

    def _values(self, node: LexborNode, rule: Rule, path: str) -> Any:
        found = self._find(node, rule, path)
        if rule.get("list"):
            return [value for match in found if (value := self._value(match, rule, path)) is not None]
        return self._value(found[0], rule, path) if found else None

    def _value(self, match: Found, rule: Rule, path: str) -> Any:
        try:
            value = self._converted(match, rule, path)
        except NotOfThatType as error:
            self._warn(f"{path}: {error}")
            return None
        self._room -= len(value if isinstance(value, str) else str(value))
        if self._room < 0:
            self._warn(f"the fields have more than {MAX_TEXT:,} characters: what comes after that is null")
            return None
        return value

    def _converted(self, match: Found, rule: Rule, path: str) -> Any:
        convert: Callable[..., Any] = CONVERTERS[rule.get("as", "text")]
        pattern = rule.get("regex")
        if pattern is None:
            return convert(match, rule, self._context)
        text = self._searched(pattern, _text(match), path)
        return None if text is None else convert(text, rule, self._context)

    def _searched(self, pattern: str, text: str, path: str) -> str | None:
        """The first group of the first match, or all of it if the pattern has no group; None if nothing matches."""
        if self._seconds <= 0:
            raise NotOfThatType("not searched: the regular expressions took too long")
        if pattern not in self._patterns:
            self._patterns[pattern] = regex.compile(pattern)
        began = time.monotonic()
        try:
            found = self._patterns[pattern].search(text[:_MAX_SEARCHED], timeout=min(self._seconds, 0.5))
        except TimeoutError:
            raise NotOfThatType("the regular expression takes too long; make it simpler") from None
        finally:
            self._seconds -= time.monotonic() - began
        if found is None:
            where = f" in the first {_MAX_SEARCHED:,} characters" if len(text) > _MAX_SEARCHED else ""
            self._warn(f"{path}: the regular expression matches nothing{where}")
            return None
        return str(next((group for group in found.groups() if group is not None), found.group()))

    def _find(self, node: LexborNode, rule: Rule, path: str) -> list[Found]:
        try:
            found = list(self._matches(node, rule))
        except ValueError as error:
            self._warn(f"{path}: {error}")
            return []
        if not found and "default" not in rule:
            self._warn(f"{path}: nothing found")
        if len(found) > MAX_MATCHES:
            self._warn(f"{path}: only the first {MAX_MATCHES:,} of {len(found):,} matches are taken")
        return found[:MAX_MATCHES]

    def _matches(self, node: LexborNode, rule: Rule) -> Iterator[Found]:
        """What the rule's selector finds, and takes of it."""
        selector = self._selector(rule)
        take = rule.get("attr") or selector.take
        found = self._by_xpath if selector.kind == "xpath" else _by_css
        for match in found(node, selector.expression):
            if isinstance(match, str) or not take:
                yield match
            elif take == OWN_TEXT:
                yield clean(" ".join((match.text(deep=False) or "").split()))
            elif take in match.attributes:
                yield clean(match.attributes[take] or "")

    def _by_xpath(self, node: LexborNode, expression: str) -> list[Found]:
        """Elements and texts that XPath finds in the element. Raises ValueError."""
        found = self._document.evaluate(expression, node, inside=True)
        listed = found if isinstance(found, list) else [found]
        return [each if isinstance(each, LexborNode) else clean(_plain(each)) for each in listed]

    def _selector(self, rule: Rule) -> Selector:
        kind = next((name for name in ("css", "xpath") if name in rule), None)
        written = rule.get(kind or "each", "")
        if (written, kind) not in self._selectors:
            self._selectors[written, kind] = parse_selector(written, kind)
        return self._selectors[written, kind]

    def _warn(self, words: str) -> None:
        if words in self._warnings or len(self._warnings) < 10 * MAX_WARNINGS:
            self._warnings[words] = self._warnings.get(words, 0) + 1


def _rule(given: Any) -> Rule:
    """A rule in its long form. A text is a selector of either kind."""
    if not isinstance(given, str):
        return dict(given)
    return {"xpath" if parse_selector(given).kind == "xpath" else "css": given}


def _by_css(node: LexborNode, css: str) -> list[Found]:
    """The elements inside this one; itself for an empty selector."""
    return [each for each in node.css(css) if each.mem_id != node.mem_id] if css else [node]


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}" if not value.is_integer() else str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _text(match: Found) -> str:
    return match if isinstance(match, str) else clean(" ".join(lines(match)))
