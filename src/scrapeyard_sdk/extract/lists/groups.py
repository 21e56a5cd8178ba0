"""Finds the repeated items of a page: the best group of similar subtrees.

A group is a set of siblings of one structure. Groups whose parents have the same place on the page are one, so that a
grid of rows gives its cells. Children that follow each other as heading, text, heading, text are cut into segments
first. Of all groups the one with the most content counts; menus, footers and sidebars count little.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk.extract.page import folded

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

MAX_NODES = 50_000
"""Elements looked at; what follows them on the page is ignored."""
MAX_RECORDS = 1000
MAX_DEPTH = 100
LEAST = 2
"""Records of a list."""
_LEAST_SCORE = 6.0
_LEAST_ASIDE = 30.0
"""The same for what seems to stand around the content."""
_SIBLINGS = 2000
_LEADERS = 8
_LOOKED_AT = 80
_DEEP = 5
_ALIKE, _ALIKE_BY_CLASS = 0.55, 0.35
_COUNTED = 50
_ROW_SHARE = 0.7
_NOT_CONTENT = frozenset(
    {"script", "style", "noscript", "template", "head", "svg", "select", "iframe", "textarea", "datalist"}
)
_NO_RECORD = frozenset(
    {"br", "hr", "td", "th", "span", "b", "i", "em", "strong", "img", "option", "col", "input", "source", "thead"}
)
_HEADS = frozenset({"dt", "h2", "h3", "h4", "h5", "tr", "a", "div", "p"})
_STATE = re.compile(r"\d|^(odd|even|first|last|active|current|alt|selected|is-\w+|has-\w+|js-\w+)$", re.IGNORECASE)
_WORDS = re.compile(r"[^\W_]{2,}|\d")
_PART = r"(?:^|[-_])(?:{})(?:s|[-_]|$)"
_MENU = re.compile(
    _PART.format(
        "nav|navbar|navigation|menu|footer|breadcrumb|pagination|pager|paging|share|social|language|cookie|toolbar|"
        "filter|facet|tabs|skip|legal"
    )
)
_ASIDE = re.compile(
    _PART.format(
        "sidebar|aside|widget|related|recommended|recommendation|similar|carousel|recent|upsell|bestseller|popular|"
        "trending|advert|ads?|sponsored|promo|teaser|crosssell|also"
    )
)
_LAYOUT = re.compile(r"^(has|with|no|without|is)-")
_PRICE = re.compile(r"[$€£¥₩₽₹]|\b(?:EUR|USD|GBP|CHF|PLN|SEK|kr|zł)\b")


@dataclass(slots=True, eq=False)
class Element:
    """An element of the page, with what is asked of it often."""

    tag: str
    name: str
    """Its tag and its first class that tells no state."""
    attributes: dict[str, str | None]
    parent: "Element | None"
    depth: int
    place: int = 0
    """The same for elements whose ancestors have the same names."""
    number: int = 1
    """Its place among the elements of its parent, from 1, as `:nth-child` counts."""
    children: list["Element"] = field(default_factory=list)
    pieces: list["str | Element"] = field(default_factory=list)
    """Texts and children, in order."""
    own_text: str = ""
    """Its text without that of its children."""
    length: int = 0
    """Characters of the text in it."""
    linked: int = 0
    """Those of them in links."""
    links: int = 0
    images: int = 0
    prices: int = 0

    def text(self) -> str:
        """All text in it, on one line."""
        return folded("".join(self._texts()))

    def _texts(self) -> Iterator[str]:
        for piece in self.pieces:
            if isinstance(piece, str):
                yield piece
            else:
                yield " "
                yield from piece._texts()
                yield " "

    def walk(self) -> Iterator["Element"]:
        """It and all below, in the order of the page."""
        yield self
        for child in self.children:
            yield from child.walk()

    def above(self) -> Iterator["Element"]:
        """Its ancestors, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def build(tree: "LexborHTMLParser") -> Element | None:
    """The body as elements; None for a page without one."""
    if tree.body is None:
        return None
    room = MAX_NODES

    def made(node: Any, parent: Element | None, depth: int, number: int = 1) -> Element:
        nonlocal room
        room -= 1
        attributes = node.attributes
        name = _name(node.tag, attributes)
        place = hash((parent.place if parent is not None else 0, name))
        element = Element(node.tag, name, attributes, parent, depth, place, number)
        below_number = 0
        for child in node.iter(include_text=True):
            below_number += child.is_element_node
            if child.is_text_node:
                element.pieces.append(child.text_content or "")
            elif child.is_element_node and room > 0 and depth < MAX_DEPTH and not _is_left_out(child):
                below = made(child, element, depth + 1, below_number)
                element.children.append(below)
                element.pieces.append(below)
        _count(element)
        return element

    return made(tree.body, None, 0)


def _is_left_out(node: Any) -> bool:
    return node.tag in _NOT_CONTENT or "hidden" in node.attributes


def _name(tag: str, attributes: dict[str, str | None]) -> str:
    named = attributes.get("itemprop") or attributes.get("class") or ""
    chosen = next((word for word in named.split() if not _STATE.search(word)), "")
    return f"{tag}.{chosen[:60]}" if chosen else tag


def _count(element: Element) -> None:
    own = element.own_text = folded(" ".join(piece for piece in element.pieces if isinstance(piece, str)))
    below = element.children
    element.length = len(own) + sum(each.length for each in below)
    element.links = sum(each.links for each in below) + (element.tag == "a" and bool(element.attributes.get("href")))
    element.images = sum(each.images for each in below) + (element.tag in ("img", "picture"))
    element.prices = sum(each.prices for each in below) + bool(len(own) < 60 and _PRICE.search(own))
    element.linked = element.length if element.tag == "a" else sum(each.linked for each in below)


@dataclass(frozen=True, slots=True)
class ItemGroup:
    """Items of one structure. Each is one element, or several that follow each other."""

    items: tuple[tuple[Element, ...], ...]

    @property
    def parent(self) -> Element:
        """The element around the first item."""
        return self.items[0][0].parent or self.items[0][0]


def best_group(body: Element) -> ItemGroup | None:
    """The group with the most content; None if the page has no list of records."""
    scored = [(score(group), group) for group in groups(body)]
    best, group = max(scored, key=lambda each: each[0], default=(0.0, None))
    if group is None:
        return None
    least = _LEAST_SCORE if _standing(group.parent) == 1.0 else _LEAST_ASIDE
    return group if best >= least else None


def groups(body: Element) -> list[ItemGroup]:
    """Every group of the page."""
    merged: dict[tuple[int, str], list[list[tuple[Element, ...]]]] = defaultdict(list)
    for node in body.walk():
        for items in (*_clusters(node), *_segmented(node)):
            merged[node.place, "+".join(each.tag for each in items[0])].append(items)
    return [ItemGroup(tuple(items)) for parts in merged.values() for items in _joined(parts)]


def _joined(parts: list[list[tuple[Element, ...]]]) -> Iterator[list[tuple[Element, ...]]]:
    """Clusters of parents with one place, put together where they are alike."""
    found: list[tuple[frozenset[str], list[tuple[Element, ...]]]] = []
    for items in parts:
        shape = _profile(items[0])
        for known, together in found[:_LEADERS]:
            if _likeness(shape, known) >= _ALIKE:
                together.extend(items)
                break
        else:
            found.append((shape, list(items)))
    return (items[:MAX_RECORDS] for _, items in found if len(items) >= LEAST)


def _clusters(parent: Element) -> Iterator[list[tuple[Element, ...]]]:
    """Children of one tag and structure."""
    by_tag: dict[str, list[Element]] = defaultdict(list)
    for child in parent.children[:_SIBLINGS]:
        if _may_be_record(child):
            by_tag[child.tag].append(child)
    for members in by_tag.values():
        found: list[tuple[frozenset[str], str, list[tuple[Element, ...]]]] = []
        for child in members:
            shape = _profile((child,))
            for known, name, cluster in found:
                same = name == child.name and "." in name
                if _likeness(shape, known) >= (_ALIKE_BY_CLASS if same else _ALIKE):
                    cluster.append((child,))
                    break
            else:
                if len(found) < _LEADERS:
                    found.append((shape, child.name, [(child,)]))
        # One item alone is joined with those of other parents: the last row of a grid may have one cell.
        yield from (cluster for _, _, cluster in found)


def _may_be_record(node: Element) -> bool:
    """A cell may be one if it is a card, a paragraph if it begins with an element: others are text with links."""
    if node.tag == "p":
        first = next((piece for piece in node.pieces if not isinstance(piece, str) or piece.strip()), "")
        return not isinstance(first, str)
    return node.tag not in _NO_RECORD or (node.tag == "td" and node.links > 0 and node.images > 0)


def _segmented(parent: Element) -> Iterator[list[tuple[Element, ...]]]:
    """Children that follow each other in turns, such as `dt` and `dd`, cut before each head."""
    children = parent.children[:_SIBLINGS]
    if len(children) < 2 * LEAST or len({child.name for child in children}) < 2:
        return
    for head in dict.fromkeys(child.name for child in children[:4] if child.tag in _HEADS):
        starts = [place for place, child in enumerate(children) if child.name == head]
        if len(starts) < LEAST + 1:
            continue
        ends = [*starts[1:], min(len(children), starts[-1] + max(_gaps(starts)))]
        segments = [tuple(children[start:end]) for start, end in zip(starts, ends, strict=True)]
        shapes = [frozenset(each.name for each in segment) for segment in segments]
        usual = max(set(shapes), key=shapes.count)
        if len(usual) > 1 and sum(shape == usual for shape in shapes) >= 0.6 * len(shapes) and max(_gaps(starts)) <= 8:
            yield segments
            return


def _gaps(starts: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise(starts)]


def _profile(item: tuple[Element, ...]) -> frozenset[str]:
    """The paths of tags in an item, to some depth."""
    found: set[str] = set()
    open_: list[tuple[Element, str, int]] = [(each, "", 0) for each in item]
    looked = 0
    while open_ and looked < _LOOKED_AT:
        node, path, deep = open_.pop(0)
        looked += 1
        path = f"{path}/{node.tag}"
        found.add(path + ("#" if node.own_text else ""))
        if deep < _DEEP:
            open_ += [(child, path, deep + 1) for child in node.children]
    return frozenset(found)


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def score(group: ItemGroup) -> float:
    """How much content the group has, in points; 0 if its items are no records."""
    items = group.items
    weights = [_Item(each) for each in items]
    if len(items) < LEAST or sum(each.is_record for each in weights) < 0.6 * len(items):
        return 0.0
    points = sum(sorted((each.points for each in weights), reverse=True)[:_COUNTED])
    if sum(each.is_row for each in weights) >= 0.6 * len(items):
        points *= 0.15
    return points * _standing(group.parent) * (0.5 if len(items) == LEAST else 1.0)


class _Item:
    """One item as it counts."""

    def __init__(self, parts: tuple[Element, ...]) -> None:
        self._parts = parts
        self.length = sum(each.length for each in parts)
        self.links = sum(each.links for each in parts)
        self.images = sum(each.images for each in parts)
        self.prices = sum(each.prices for each in parts)
        self.linked = sum(each.linked for each in parts)

    @cached_property
    def texts(self) -> int:
        """Different places with words."""
        walked = (node for part in self._parts for node in part.walk())
        return sum(1 for _, node in zip(range(_LOOKED_AT), walked, strict=False) if _WORDS.search(node.own_text))

    @property
    def is_record(self) -> bool:
        """Whether it has a link and words, or several words apart."""
        if not self.length:
            return False
        return self.texts >= 2 or bool(self.links and (self.texts or self.images))

    @property
    def points(self) -> float:
        """More for text, images, prices and different fields; little for a bare short link, as menus have."""
        points = min(self.length, 300) / 40 + min(self.texts, 6)
        points += 2.0 * (self.images > 0) + 3.0 * (self.prices > 0) + 1.0 * (self.links > 0)
        bare = self.texts <= 1 and not self.images and self.linked >= 0.9 * self.length
        if bare:
            return points * (0.25 if self.length < 30 else 0.6)
        return points * (1.0 if self.links or any(part.tag == "tr" for part in self._parts) else 0.35)

    @cached_property
    def is_row(self) -> bool:
        """Whether it is only a box around records of its own."""
        if len(self._parts) > 1 or not self.length:
            return False
        return _repeated(self._parts[0], 3) >= _ROW_SHARE * self.length


def _repeated(node: Element, deep: int) -> float:
    """Characters in children that are records alike, of the node or of those below it."""
    content = [child for child in node.children if child.length]
    same = [child for child in content if child.name == content[0].name]
    if len(same) >= 2 and len(same) >= 0.6 * len(content) and all(_is_rich(child) for child in same[:5]):
        return sum(child.length for child in same)
    return max((_repeated(child, deep - 1) for child in content), default=0.0) if deep else 0.0


def _is_rich(node: Element) -> bool:
    item = _Item((node,))
    return bool(item.links) and (item.images > 0 or item.texts >= 2) and node.tag not in ("p", "span", "a")


def _standing(parent: Element) -> float:
    """1 for the content of a page, less for what stands around it."""
    for node in _around(parent):
        words = [node.tag, *_words(node)]
        if node.tag in ("main", "body"):
            return 1.0
        if node.tag in ("nav", "footer") or any(_MENU.search(word) for word in words):
            return 0.08
        if node.tag == "aside" or any(_ASIDE.search(word) for word in words):
            return 0.3
        if node.tag == "header" and node.depth <= 3:
            return 0.2
    return 1.0


def _around(parent: Element) -> Iterable[Element]:
    return (parent, *parent.above())


def _words(node: Element) -> list[str]:
    said = " ".join(node.attributes.get(name) or "" for name in ("class", "id", "role")).lower()
    return [word for word in said.split()[:20] if not _LAYOUT.match(word)]
