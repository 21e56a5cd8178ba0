"""Which heading names the thing that the page is about."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scrapeyard_sdk.extract.meta import folded
from scrapeyard_sdk.extract.product.values import likeness

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_KINDS = (
    (1.0, "h1"),
    (0.5, "h2, [itemprop=name]"),
    (0.3, "h3, h4, [class*=title i], [id*=title i], [class*=name i]"),
)
"""Selectors, the likeliest first, with what they weigh before their text is looked at."""
_MAX_NODES = 200
_LONGEST = 300
_SURE = 2.0
_ENOUGH = 0.8


def find_heading(tree: "LexborHTMLParser", titles: Sequence[str]) -> "LexborNode | None":
    """The heading most like the page's titles, or its first; None when nothing is a heading or like one."""
    best: LexborNode | None = None
    weight = _ENOUGH
    for bonus, selector in _KINDS:
        for node in tree.css(selector)[:_MAX_NODES]:
            if (own := _weight(node, titles, bonus)) > weight:
                best, weight = node, own
        if weight > _SURE:
            break
    return best


def _weight(node: "LexborNode", titles: Sequence[str], bonus: float) -> float:
    text = folded(node.text()[: _LONGEST * 4])
    if not text or len(text) > _LONGEST:
        return 0.0
    # A short text is in every title by chance.
    trust = min(1.0, len(text) / 12)
    return max((likeness(text, title) for title in titles), default=0.0) * trust * 2 + bonus
