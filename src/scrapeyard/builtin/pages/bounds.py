"""How much of a page may be parsed.

The HTML standard requires work that is quadratic in the input: a parser compares each new element with every open one,
compares each new attribute with the others, and reopens unclosed `<b>`s in every paragraph. A page of 70 KB can take
minutes, or gigabytes. So the work is estimated first, and a page is cut where it would exceed a budget that no real
page comes near.

The estimate reads tags by a simple rule, not as a parser would: a page that hides tags in comments and quotes can
deceive it, up to the limit on its length.
"""

import re
from collections.abc import Iterator

MAX_HTML = 5_000_000
"""Characters parsed; what follows is ignored."""

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,30})([^<>]*)")
MAX_LIGHT = 64 * 1024
_LIGHT_TAGS = 3000
_LIGHT_REOPENING = 400_000
_HUGE_TAG = re.compile(r"<[^<>]{8192}")
_LONG = 200
_DEPTH_BUDGET = 100_000_000
_ATTRIBUTE_BUDGET = 100_000_000
_REOPEN_BUDGET = 1_000_000

_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
_CLOSED_BY_THE_NEXT = frozenset(
    {
        "a",
        "p",
        "li",
        "td",
        "th",
        "tr",
        "dt",
        "dd",
        "option",
        "optgroup",
        "tbody",
        "thead",
        "tfoot",
        "rp",
        "rt",
        "body",
        "html",
        "head",
    }
)
_REOPENED = frozenset({"b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"})


def _in_any_case(name: str) -> str:
    """Twice as fast as a pattern that ignores case."""
    return "".join(f"[{letter}{letter.upper()}]" for letter in name)


_REOPENED_NAME = "|".join(_in_any_case(name) for name in sorted(_REOPENED, key=len, reverse=True))
_REOPENING = re.compile(f"<(?:{_REOPENED_NAME})[\\s/>]")
_FORMATTING = re.compile(f"<(/?)({_REOPENED_NAME})(?![a-zA-Z0-9:-])")


def is_light(html: str) -> bool:
    """Whether a page surely parses within a few milliseconds; ignores closing tags, which may be hidden in comments."""
    if len(html) > MAX_LIGHT or (tags := html.count("<")) > _LIGHT_TAGS:
        return False
    reopens = tags * tags > _LIGHT_REOPENING and tags * len(_REOPENING.findall(html)) > _LIGHT_REOPENING
    return not reopens and not _HUGE_TAG.search(html)


def bounded(html: str) -> str:
    """The page, or as much of its beginning as can be parsed in about a second."""
    if is_light(html):
        return html
    html = html[:MAX_HTML]
    return html if _is_surely_within(html) else html[: _Reckoning().end_of(html)]


def _is_surely_within(html: str) -> bool:
    """Whether no budget can be spent, by upper bounds that are far cheaper than the estimate."""
    opening = html.count("<") - html.count("</")
    return (
        opening * opening / 2 <= _DEPTH_BUDGET
        and opening * _most_reopened(html) <= _REOPEN_BUDGET
        and sum(_cost_of_attributes(tag) for tag in _long_tags(html)) <= _ATTRIBUTE_BUDGET
    )


def _cost_of_attributes(text: str) -> int:
    return len(text.split()) ** 2


def _long_tags(html: str) -> Iterator[str]:
    """The texts of tags with long attributes. Splitting is several times as fast as a pattern."""
    pieces = (piece.partition(">")[0] for piece in html.split("<") if len(piece) > _LONG)
    return (piece for piece in pieces if len(piece) > _LONG)


def _most_reopened(html: str) -> int:
    """How many elements that a parser reopens are open at once, at most."""
    opened: dict[str, int] = {}
    now = most = 0
    for close, written in _FORMATTING.findall(html):
        name = written.lower()
        if not close:
            opened[name] = opened.get(name, 0) + 1
            now += 1
            most = max(most, now)
        elif opened.get(name):
            opened[name] -= 1
            now -= 1
    return most


class _Reckoning:
    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._depth = 0
        self._reopened = 0
        self._spent_on_depth = 0
        self._spent_on_attributes = 0
        self._spent_on_reopening = 0

    def end_of(self, html: str) -> int:
        for tag in _TAG.finditer(html):
            close, name, rest = tag.groups()
            name = name.lower()
            if close:
                self._close(name)
            elif name not in _VOID:
                self._add(name)
            if len(rest) > _LONG:
                self._spent_on_attributes += _cost_of_attributes(rest)
            if self._is_spent:
                return tag.start()
        return len(html)

    def _add(self, name: str) -> None:
        self._spent_on_depth += self._depth
        self._spent_on_reopening += self._reopened
        if name in _CLOSED_BY_THE_NEXT:
            return
        self._open[name] = self._open.get(name, 0) + 1
        self._depth += 1
        self._reopened += name in _REOPENED

    def _close(self, name: str) -> None:
        if self._open.get(name):
            self._open[name] -= 1
            self._depth -= 1
            self._reopened -= name in _REOPENED

    @property
    def _is_spent(self) -> bool:
        return (
            self._spent_on_depth > _DEPTH_BUDGET
            or self._spent_on_attributes > _ATTRIBUTE_BUDGET
            or self._spent_on_reopening > _REOPEN_BUDGET
        )
