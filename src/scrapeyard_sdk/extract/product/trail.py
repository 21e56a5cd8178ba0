"""Breadcrumbs that a page shows without marking them up."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

from typing import TYPE_CHECKING

from scrapeyard_sdk.extract.meta import folded
from scrapeyard_sdk.extract.product.values import unique

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_PLACES = '[aria-label*="breadcrumb" i], [class*="breadcrumb" i], [id*="breadcrumb" i], [class*="crumbs" i]'
_MAX_PLACES = 20
_MAX_CRUMBS = 20
_MAX_CRUMB = 120


def trail_seen(tree: "LexborHTMLParser") -> list[str]:
    """Names, outermost first; empty when the page shows none."""
    for place in tree.css(_PLACES)[:_MAX_PLACES]:
        crumbs = _crumbs(place)
        if len(crumbs) > 1:
            return crumbs
    return []


def _crumbs(place: "LexborNode") -> list[str]:
    nodes = place.css("li") or place.css("a, span")
    texts = (folded(node.text(separator=" ")).strip(" />»›|·→") for node in nodes[: _MAX_CRUMBS * 3])
    return unique((text for text in texts if 0 < len(text) <= _MAX_CRUMB), _MAX_CRUMBS)
