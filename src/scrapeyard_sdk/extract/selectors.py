"""Selectors as people write them: CSS with `@href`, `::attr(href)` or `::text` at its end, or XPath."""

import re
from dataclasses import dataclass
from typing import Literal

MAX_SELECTOR = 500
OWN_TEXT = "::text"
_XPATH = re.compile(r"\.?/|\(|\.\.")
"""How XPath begins, and CSS never does."""
_TAKEN = re.compile(
    r"(?P<css>.*?)(?P<gap>\s*)(?:@(?P<at>[A-Za-z_][\w:.-]*)|::attr\(\s*(?P<attr>[A-Za-z_][\w:.-]*)\s*\)|::text)\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Selector:
    """What to look for, and what to take of it."""

    kind: Literal["css", "xpath"]
    expression: str
    """Empty: the element in which is looked."""
    take: str = ""
    """An attribute's name, `OWN_TEXT` for the text that is not in elements inside, empty for all of the element."""


def parse_selector(text: str, kind: Literal["css", "xpath"] | None = None) -> Selector:
    """A selector of this kind; None: XPath if it begins as XPath does, otherwise CSS.

    Raises ValueError, which says what is wrong.
    """
    text = text.strip()
    if len(text) > MAX_SELECTOR:
        raise ValueError(f"a selector has at most {MAX_SELECTOR} characters")
    if kind == "xpath" or (kind is None and _XPATH.match(text)):
        return _xpath(text)
    css, take, _ = split_selector(text)
    if css:
        _check_css(css)
    return Selector("css", css, take)


def split_selector(text: str) -> tuple[str, str, bool]:
    """The CSS, what is taken of each match (as `Selector.take`), and whether a space stands between them, which means
    also of the elements inside."""
    found = _TAKEN.fullmatch(text)
    if found is None:
        return text, "", False
    css = found["css"].strip()
    return css, found["at"] or found["attr"] or OWN_TEXT, bool(css and found["gap"])


def _check_css(css: str) -> None:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        LexborHTMLParser("<p>").css(css)
    except (SelectolaxError, UnicodeEncodeError):
        raise ValueError(f"{css!r} is not a CSS selector") from None


def _xpath(text: str) -> Selector:
    try:
        from lxml.etree import XPath, XPathError
    except ImportError:
        raise ValueError("XPath needs lxml; use CSS, or add lxml to the requirements") from None
    try:
        XPath(text)
    except (XPathError, ValueError):
        raise ValueError(f"{text!r} is not an XPath expression") from None
    return Selector("xpath", text)
