"""Data in a form made for machines: JSON-LD, microdata, RDFa Lite."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from scrapeyard_sdk.extract.lenient_json import Budget, clean, read_json
from scrapeyard_sdk.extract.page import base_of, read_meta
from scrapeyard_sdk.text import lines_in

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_BLOCKS = 100
MAX_ITEMS = 5000


def read_json_ld(tree: "LexborHTMLParser") -> list[Any]:
    """Every document in the page, in its order. Lists are taken apart; `@graph` stays as it is."""
    budget, found = Budget(), []
    for node in tree.css('script[type*="ld+json" i]')[:MAX_BLOCKS]:
        for document in read_json(node.text(), budget):
            found.extend(document if isinstance(document, list) else [document])
    return [each for each in found if isinstance(each, dict)]


def items(documents: list[Any]) -> Iterator[dict[str, Any]]:
    """Every item with a type, outer before inner, as far as the bound goes. Each comes once."""
    waiting, seen = list(reversed(documents)), 0
    while waiting and seen < MAX_ITEMS:
        value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            if value.get("@type"):
                yield value
            waiting.extend(reversed([each for each in value.values() if isinstance(each, (dict, list))]))
        elif isinstance(value, list):
            waiting.extend(reversed(value[:MAX_ITEMS]))


def kinds(item: dict[str, Any]) -> set[str]:
    """The item's types without their address: `{"Product"}`."""
    said = item.get("@type")
    named = said if isinstance(said, list) else [said]
    return {each.rstrip("/").rpartition("/")[2].rpartition(":")[2] for each in named if isinstance(each, str)}


MAX_SCOPES = 2000
MAX_PROPERTIES = 10_000
MAX_VALUE = 10_000
_MAX_CLIMB = 200
_MAX_NODES = 200_000
"""Nodes read for the texts of all properties together; each of several nested items reads everything below it."""
_LEAST_NODES = 20
"""Nodes that each property may still read after that."""

_LINKS = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), "src"),
    "object": "data",
}
_VALUES = {"data": "value", "meter": "value", "time": "datetime"}


def read_microdata(tree: "LexborHTMLParser", base: str) -> list[dict[str, Any]]:
    """The items that are in no other, in the page's order."""
    return _Scopes(base, scope="itemscope", kind="itemtype", prop="itemprop", name="itemid").read(tree)


def read_rdfa(tree: "LexborHTMLParser", base: str) -> list[dict[str, Any]]:
    """The items that are in no other, in the page's order."""
    return _Scopes(base, scope="typeof", kind="typeof", prop="property", name="resource").read(tree)


class _Scopes:
    """One reading of one page."""

    def __init__(self, base: str, *, scope: str, kind: str, prop: str, name: str) -> None:
        self._base = base
        self._scope, self._kind, self._prop, self._name = scope, kind, prop, name
        self._items: dict[int, dict[str, Any]] = {}
        self._owners: dict[int, int] = {}
        self._borrowed: dict[int, int] = {}
        self._room = _MAX_NODES

    def read(self, tree: "LexborHTMLParser") -> list[dict[str, Any]]:
        scopes = tree.css(f"[{self._scope}]")[:MAX_SCOPES]
        for node in scopes:
            self._items[node.mem_id] = self._new(node)
        if not scopes:
            return []
        self._lend(tree, scopes)
        for node in tree.css(f"[{self._prop}]")[:MAX_PROPERTIES]:
            self._add(node)
        return [item for number, item in self._items.items() if number not in self._owners]

    def _new(self, node: "LexborNode") -> dict[str, Any]:
        kinds = [_short(kind) for kind in (node.attributes.get(self._kind) or "").split()[:10]]
        item: dict[str, Any] = {"@type": kinds[0] if len(kinds) == 1 else kinds}
        name = node.attributes.get(self._name)
        return {**item, "@id": clean(name)[:MAX_VALUE]} if name else item

    def _lend(self, tree: "LexborHTMLParser", scopes: "list[LexborNode]") -> None:
        """Add the properties that `itemref` references elsewhere on the page, by element id."""
        wanted = {
            id_: node.mem_id
            for node in scopes
            if self._scope == "itemscope" and node.attributes.get("itemref")
            for id_ in (node.attributes.get("itemref") or "").split()[:50]
        }
        for node in tree.css("[id]") if wanted else ():
            if (owner := wanted.get(node.attributes.get("id") or "")) is not None:
                self._borrowed.setdefault(node.mem_id, owner)

    def _add(self, node: "LexborNode") -> None:
        names = [_short(name)[:200] for name in (node.attributes.get(self._prop) or "").split()[:10]]
        owner = self._owner(node) if names else None
        if owner is None or (self._borrowed and self._is_below(owner, node.mem_id)):
            return
        inner = self._items.get(node.mem_id)
        if inner is not None:
            self._owners[node.mem_id] = owner
        value = inner if inner is not None else self._value(node)
        for name in names:
            _put(self._items[owner], name, value)

    def _owner(self, node: "LexborNode") -> int | None:
        if node.mem_id in self._borrowed:
            return self._borrowed[node.mem_id]
        above = node.parent
        for _ in range(_MAX_CLIMB):
            if above is None:
                return None
            if above.mem_id in self._items:
                return above.mem_id
            if above.mem_id in self._borrowed:
                return self._borrowed[above.mem_id]
            above = above.parent
        return None

    def _is_below(self, owner: int, item: int) -> bool:
        """Whether the owner is the item itself or inside it, since `itemref` may form cycles."""
        seen = 0
        at: int | None = owner
        while at is not None and seen <= MAX_SCOPES:
            if at == item:
                return True
            at, seen = self._owners.get(at), seen + 1
        return False

    def _value(self, node: "LexborNode") -> str:
        attributes, tag = node.attributes, node.tag or ""
        if attributes.get("content") is not None:
            return clean(attributes["content"] or "").strip()[:MAX_VALUE]
        if attributes.get(_LINKS.get(tag, "")):
            return self._absolute(attributes[_LINKS[tag]] or "")
        if self._name == "resource" and attributes.get("resource"):
            return self._absolute(attributes["resource"] or "")
        if attributes.get(_VALUES.get(tag, "")):
            return clean(attributes[_VALUES[tag]] or "").strip()[:MAX_VALUE]
        return self._text(node)

    def _text(self, node: "LexborNode") -> str:
        nodes = list(islice(node.traverse(include_text=True), max(self._room, _LEAST_NODES)))
        self._room -= len(nodes)
        return " ".join(lines_in(nodes, node))[:MAX_VALUE]

    def _absolute(self, href: str) -> str:
        try:
            return clean(urljoin(self._base, href.strip()))[:MAX_VALUE]
        except ValueError:
            return clean(href)[:MAX_VALUE]


def _put(item: dict[str, Any], name: str, value: Any) -> None:
    if name not in item:
        item[name] = value
    elif isinstance(item[name], list) and name != "@type":
        item[name].append(value)
    else:
        item[name] = [item[name], value]


def _short(name: str) -> str:
    """`Product` for `https://schema.org/Product` and for `schema:Product`."""
    for mark in ("://schema.org/", "://www.schema.org/", "://data-vocabulary.org/", "://rdf.data-vocabulary.org/#"):
        if mark in name:
            return clean(name.split(mark, 1)[1].strip("/#")) or name
    prefix, colon, rest = name.partition(":")
    return clean(rest if colon and prefix.lower() in ("schema", "v", "gr") and rest else name)


def read_structured(tree: "LexborHTMLParser", url: str) -> dict[str, Any]:
    """Items of JSON-LD, microdata and RDFa in one shape, and the Open Graph table. Empty where there are none.

    Open Graph has no types to speak of and is a table of names; the others are lists of items with `@type`.
    """
    base = base_of(tree, url)
    return {
        "json_ld": read_json_ld(tree),
        "microdata": read_microdata(tree, base),
        "rdfa": read_rdfa(tree, base),
        "opengraph": read_meta(tree, url, base=base)["opengraph"],
    }
