"""A page as patterns see it: its texts in the order of the page, and what an XPath finds in it."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

MAX_DEPTH = 200
"""Texts deeper than this are not looked at."""
MAX_TEXT = 2000
"""Characters of a text that can be a value."""
ATTRIBUTES = ("href", "src", "content", "data-src", "datetime", "value", "title", "alt")
"""Attributes that hold values."""
_UNSEEN = ("script", "style", "noscript", "template")
_EMPTY = b"<html/>"
_NAMED = r"//\w+\[(?:@\w+='[^']*'|contains\(concat\(' ', normalize-space\(@class\), ' '\), ' [\w-]+ '\))\]"
_LABELLED = r"//\w+/text\(\)\[normalize-space\(\)='[^']*'\]"
_DOWN = r"(?:/(?:\w+|text\(\)|@\w[\w-]*)(?:\[[^\[\]]*\])?)*"
_ANCHORED = re.compile(rf"({_NAMED}|{_LABELLED}/\.\.|\({_LABELLED}\)\[1\]/\.\.)({_DOWN})(/.*)?", re.DOTALL)
_NTH = re.compile(rf"\(({_NAMED})\)\[(\d+|last\(\))\](/.*)?", re.DOTALL)
_FIRST = re.compile(rf"\(({_NAMED}{_DOWN})\)\[normalize-space\(\)\]\[1\]", re.DOTALL)
"""XPaths as `candidates.py` writes them. Many begin with the same anchor, which is looked for once."""
_MAX_ANCHORS = 50
_HARD_SPACE = re.compile(rb"\xc2\xa0|&nbsp;|&#160;|&#xa0;", re.IGNORECASE)
"""XPath does not count these as white space."""


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where a text stands."""

    text: str
    element: Any
    tail: str
    """What follows the element's path in an XPath: `/text()[2]`, `/@href`, or nothing for all text of the element."""

    @property
    def is_text(self) -> bool:
        """Whether it is a text node, not an attribute or a whole element."""
        return self.tail.startswith("/text()")


class PageTree:
    """One parsed page. Answers of `find` are remembered, so ask a page all questions before the next."""

    def __init__(self, html: str | bytes) -> None:
        self._root = _parse(html)
        self._found: dict[str, tuple[str, ...]] = {}
        self._elements: dict[str, list[Any]] = {}

    @cached_property
    def texts(self) -> list[TextPlace]:
        """Every text node with visible text, in the order of the page."""
        return list(_texts(self._root, 0))

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each text stands on the page."""
        return Counter(place.text for place in self.texts)

    def others(self) -> Iterator[TextPlace]:
        """Attributes that hold values, and whole elements whose text is spread over several nodes."""
        for element in self._root.iter():
            if not isinstance(element.tag, str):
                continue
            for name in ATTRIBUTES:
                value = fold(element.get(name) or "")
                if value:
                    yield TextPlace(value, element, f"/@{name}")
            if 0 < len(element) <= 10:
                text = fold("".join(element.itertext()))
                if text and len(text) <= MAX_TEXT:
                    yield TextPlace(text, element, "")

    def html(self) -> str:
        """The page without scripts and styles; parsed again it is the same tree."""
        from lxml import etree

        return str(etree.tostring(self._root, encoding="unicode", method="html"))

    def find(self, xpath: str) -> tuple[str, ...]:
        """The different texts that an XPath finds, white space folded. Empty also for an XPath that cannot be read."""
        found = self._found.get(xpath)
        if found is None:
            found = self._found[xpath] = tuple(dict.fromkeys(filter(None, map(_text_of, self._look(xpath)))))
        return found

    def elements(self, xpath: str) -> list[Any]:
        """The elements that an XPath finds."""
        found = self._elements.get(xpath)
        if found is None:
            found = self._elements[xpath] = self._evaluate(xpath)
        return found

    def _look(self, xpath: str) -> list[Any]:
        """As `_evaluate`, and faster where the page was asked for the anchor before."""
        if first := _FIRST.fullmatch(xpath):
            return [each for each in self._look(first[1]) if _string_of(each).strip(" \t\r\n")][:1]
        if nth := _NTH.fullmatch(xpath):
            named, number = self.elements(nth[1]), nth[2]
            place = len(named) if number == "last()" else int(number)
            return self._below(named[place - 1 : place], nth[3] or "") if place else []
        if (anchored := _ANCHORED.fullmatch(xpath)) and not (anchored[3] or "").startswith("//"):
            anchors = self.elements(anchored[1])
            if len(anchors) < 2 or (not anchored[3] and len(anchors) <= _MAX_ANCHORS and not _are_nested(anchors)):
                return self._below(anchors, (anchored[2] or "") + (anchored[3] or ""))
        return self._evaluate(xpath)

    def _below(self, anchors: list[Any], path: str) -> list[Any]:
        return [found for anchor in anchors for found in self._evaluate(f".{path}", anchor)] if path else anchors

    def _evaluate(self, xpath: str, start: Any = None) -> list[Any]:
        from lxml import etree

        try:
            found = compiled(xpath)(self._root if start is None else start)
        except (etree.XPathError, ValueError):  # the latter for characters that XML does not have
            return []
        return found if isinstance(found, list) else [found]


@lru_cache(maxsize=4096)
def compiled(xpath: str) -> Any:
    """An XPath, ready to evaluate. Raises lxml's XPathError, or ValueError."""
    from lxml import etree

    return etree.XPath(xpath, smart_strings=False)


def fold(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def _parse(html: str | bytes) -> Any:
    from lxml import etree

    data = _HARD_SPACE.sub(b" ", html.encode("utf-8", "replace") if isinstance(html, str) else html)
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=False)
    try:
        root = etree.fromstring(data if data.strip() else _EMPTY, parser)
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        root = etree.fromstring(_EMPTY, parser)
    etree.strip_elements(root, *_UNSEEN, with_tail=False)
    return root


def _texts(element: Any, depth: int) -> Iterator[TextPlace]:
    if depth > MAX_DEPTH:
        return
    number = 0
    if element.text is not None:
        number += 1
        yield from _place(element.text, element, number)
    for child in element:
        yield from _texts(child, depth + 1)
        if child.tail is not None:
            number += 1
            yield from _place(child.tail, element, number)


def _place(text: str, element: Any, number: int) -> Iterator[TextPlace]:
    folded = fold(text)
    if folded and len(folded) <= MAX_TEXT:
        yield TextPlace(folded, element, f"/text()[{number}]")


def _text_of(found: Any) -> str:
    return fold(_string_of(found))


def _string_of(found: Any) -> str:
    return found if isinstance(found, str) else "".join(found.itertext()) if not _is_number(found) else ""


def _are_nested(elements: list[Any]) -> bool:
    """Whether one stands inside another, so that what is below them has another order than they have."""
    every = set(elements)
    return any(above in every for element in elements for above in element.iterancestors())


def _is_number(found: Any) -> bool:
    """XPath may also give numbers and truth values."""
    return isinstance(found, (bool, float))
