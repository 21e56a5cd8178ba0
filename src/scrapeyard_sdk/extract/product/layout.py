"""The layout of a page: its main heading, the order of its boxes, breadcrumbs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from scrapeyard_sdk.extract.lenient_json import clean
from scrapeyard_sdk.extract.page import Joiner, folded
from scrapeyard_sdk.extract.product import words
from scrapeyard_sdk.extract.product.values import is_same_item, likeness, unique

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_KINDS = (
    (1.0, "h1"),
    (0.5, "h2, [itemprop=name]"),
    (0.3, "h3, h4, [class*=title i], [id*=title i], [class*=name i]"),
)
"""Selectors, the likeliest first, with their initial weight."""
_MAX_NODES = 200
_LONGEST = 300
_SURE = 2.0
_ENOUGH = 0.8
_LINKED = 1.0
"""What a heading loses that is a link to another page: it is the name of what that page is about."""
_MAX_CLIMB = 6
_TITLES = frozenset({"h2", "h3", "h4", "h5", "h6"})


def find_heading(tree: "LexborHTMLParser", titles: Sequence[str], links: "LinkTargets") -> "LexborNode | None":
    """The heading most like the page's titles, or its first; None when nothing is a heading or like one."""
    best: LexborNode | None = None
    weight = _ENOUGH
    for bonus, selector in _KINDS:
        for node in tree.css(selector)[:_MAX_NODES]:
            own = _weight(node, titles, bonus)
            if own > weight and (own := own - _LINKED * links.is_away(_link_of(node))) > weight:
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


def _link_of(heading: "LexborNode") -> str | None:
    """Where the link around or in a heading leads."""
    node = heading.css_first("a[href]") or heading.parent
    for _ in range(_MAX_CLIMB):
        if node is None or node.tag == "a":
            break
        node = node.parent
    return node.attributes.get("href") if node is not None and node.tag == "a" else None


class LinkTargets:
    """Tells links to other pages from those to the page itself, its parts and the cart."""

    def __init__(self, url: str, base: str) -> None:
        self._url = url
        self._joiner = Joiner(base)
        self._known: dict[str, str | None] = {}

    def is_away(self, href: str | None) -> bool:
        return self.away(href) is not None

    def away(self, href: str | None) -> str | None:
        """The address of another page; None for any other link."""
        if not href or href.startswith("#"):
            return None
        if href not in self._known:
            link = self._joiner.absolute(href.strip())
            is_other = link is not None and not is_same_item(link, self._url) and not words.CART_NAME.search(link)
            self._known[href] = link if is_other else None
        return self._known[href]


MAX_NODES = 100_000
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_NAMING = ("class", "id", "data-test", "data-qa")
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe", "option"})
_ASIDE = frozenset({"nav", "footer", "aside"})
_STRUCK = frozenset({"del", "s", "strike"})

ASIDE, OLD, PRICE, NOW, OTHER, AREA, CODE = 1, 2, 4, 8, 16, 32, 64
"""Flags inherited from enclosing boxes: beside the product · an old price · a price · the current price · some other
amount · the product's own area · an article number."""


@dataclass(frozen=True, slots=True)
class Position:
    """A text, or a box that is named for a price or a code."""

    node: "LexborNode"
    order: int
    flags: int
    text: str


class Layout:
    """A page's texts, and the boxes named for prices and codes, in order."""

    def __init__(self, tree: "LexborHTMLParser", heading: "LexborNode | None", links: LinkTargets) -> None:
        self.texts: list[Position] = []
        self.boxes: list[Position] = []
        self.codes: list[Position] = []
        self.heading = -1
        self._flags: dict[int, int | None] = {}
        self._known: dict[tuple[str, str], int | None] = {}
        self._heading_id = heading.mem_id if heading is not None else -1
        self._around_heading = _around(heading)
        self._links = links
        self._away: list[tuple[LexborNode, str]] = []
        if tree.body is not None:
            self._walk(tree.body)

    def after_heading(self, most: int) -> Iterator[Position]:
        """Texts after the heading (from the top if there is none), except those beside the product."""
        start = max(self.heading, 0)
        seen = 0
        for place in self.texts:
            if place.order >= start and not place.flags & ASIDE:
                seen += 1
                if seen > most:
                    return
                yield place

    def flags_of(self, node: "LexborNode | None") -> int | None:
        """Flags from the boxes around an element; None if it is not visible."""
        return self._flags.get(node.mem_id, 0) if node is not None else 0

    def card_of(self, node: "LexborNode") -> str | None:
        """The address of the other page that a box around the element shows in small; None without such a box."""
        above: LexborNode | None = node
        for _ in range(_MAX_CLIMB):
            if above is None:
                return None
            if found := self._cards.get(above.mem_id):
                return next(iter(found)) if len(found) == 1 else None
            above = above.parent
        return None

    @cached_property
    def _cards(self) -> dict[int, set[str]]:
        """The links to other pages in each box, of those links that look like the head of a card."""
        found: dict[int, set[str]] = {}
        for node, link in self._away:
            above: LexborNode | None = node if _is_title(node) else None
            found.setdefault(node.mem_id, set()).add(link)
            for _ in range(_MAX_CLIMB):
                if above is None or above.mem_id in self._around_heading:
                    break
                found.setdefault(above.mem_id, set()).add(link)
                above = above.parent
        return found

    def _walk(self, body: "LexborNode") -> None:
        for order, node in enumerate(body.traverse(include_text=True)):
            if order > MAX_NODES:
                return
            parent = node.parent
            above = self._flags.get(parent.mem_id, 0) if parent is not None else 0
            if above is None:
                self._skip(node)
            elif node.tag == "-text":
                self._add_text(node, order, above)
            else:
                self._add_box(node, order, above)

    def _skip(self, node: "LexborNode") -> None:
        if node.tag != "-text":
            self._flags[node.mem_id] = None

    def _add_text(self, node: "LexborNode", order: int, flags: int) -> None:
        text = " ".join((node.text_content or "").split())
        if text:
            self.texts.append(Position(node, order, flags, clean(text)))

    def _add_box(self, node: "LexborNode", order: int, above: int) -> None:
        tag = node.tag or ""
        attributes = node.attributes
        names = _names(attributes)
        key = (tag, names)
        if key not in self._known:
            self._known[key] = _named(tag, names)
        own = self._known[key]
        if node.mem_id in self._around_heading:
            own = (own or 0) & ~ASIDE
        elif own is None or "hidden" in attributes or _NOT_SHOWN.search((attributes.get("style") or "")[:200]):
            self._flags[node.mem_id] = None
            return
        self._flags[node.mem_id] = above | own
        if node.mem_id == self._heading_id:
            self.heading = order
        if tag == "a" and (link := self._links.away(attributes.get("href"))):
            self._away.append((node, link))
        if own & CODE:
            self.codes.append(Position(node, order, above, ""))
        if own & PRICE or attributes.get("itemprop") == "price":
            self.boxes.append(Position(node, order, above | own | PRICE, ""))


def _is_title(link: "LexborNode") -> bool:
    """Whether a link is a heading, is in one, or shows a picture."""
    above = link.parent
    for _ in range(2):
        if above is None:
            break
        if above.tag in _TITLES:
            return True
        above = above.parent
    return link.css_first("img, h2, h3, h4, h5, h6") is not None


def _names(attributes: dict[str, str | None]) -> str:
    """The names of an element: class, id, and its test ids."""
    named = (value for name, value in attributes.items() if value and name.startswith(_NAMING))
    return " ".join(named)[:500]


def _around(node: "LexborNode | None") -> set[int]:
    """The boxes that contain the heading; they count as visible and as the product's, whatever their names."""
    found: set[int] = set()
    while node is not None and len(found) < 200:
        found.add(node.mem_id)
        node = node.parent
    return found


def _named(tag: str, names: str) -> int | None:
    """The flags of an element by its names; None if it is not visible."""
    if tag in _UNSEEN or words.UNSEEN_NAME.search(names):
        return None
    flags = (ASIDE if tag in _ASIDE else 0) | (OLD if tag in _STRUCK else 0)
    if not names:
        return flags
    if words.PRICE_NAME.search(names):
        flags |= PRICE
        flags |= OLD if words.OLD_NAME.search(names) else 0
        flags |= NOW if words.NOW_NAME.search(names) else 0
        flags |= OTHER if words.NOT_THE_PRICE.search(names) else 0
    elif words.ELSEWHERE.search(names):
        flags |= ASIDE
    if words.CODE_NAME.search(names):
        flags |= CODE
    if words.PRODUCT_AREA.search(names):
        flags |= AREA
    return flags


# ruff: noqa: RUF001 - the letters of other scripts are meant


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


_BRANDS = (
    '[class*="brand" i], [class*="manufacturer" i], a[href*="/brand" i], a[href*="/marque" i], a[href*="/marke" i], '
    'a[href*="/marca" i], a[href*="manufacturer" i]'
)
_MAX_BRAND = 40


def brand_seen(tree: "LexborHTMLParser", name: str | None) -> str | None:
    """The words that the product's name begins with, if an element that is named for a brand has them alone."""
    if not name:
        return None
    for node in tree.css(_BRANDS)[:_MAX_NODES]:
        text = folded(node.text()[: _MAX_BRAND * 4])
        if 1 < len(text) <= _MAX_BRAND and len(text) < len(name) and f"{name} ".lower().startswith(f"{text} ".lower()):
            return text
    return None
