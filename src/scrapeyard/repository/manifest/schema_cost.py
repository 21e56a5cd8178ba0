"""How much work a JSON Schema can ask for, reckoned before it is ever used.

A few lines of schema can ask for an endless check: references that double at each step, or recursion with branches.
The validator does not bound that, so we refuse what expands too far, and tell which schemas recurse.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

MAX_DEPTH = 32
"""Levels of nesting in the schema's text."""
MAX_CHAIN = 150
"""Steps through nesting and references together."""
MAX_WEIGHT = 20_000
"""Parts of the schema with every reference written out."""
MAX_PATTERNS = 64

_DATA = frozenset({"const", "default", "enum", "examples"})
_ASIDE = frozenset({"$defs", "definitions"})
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class SchemaRefused(Exception):
    """The schema is not one we take; the message says why and what to do."""


class Weight(Struct, frozen=True, kw_only=True):
    """What one look at one value may cost."""

    parts: int
    loops: int
    """Ways in which the schema comes back to itself; with more than one, each level of a value multiplies the cost."""

    def effort(self, size: int, depth: int) -> int:
        """An upper bound, within reason, for telling every error in a value of that many parts and levels."""
        return size * self.parts * self.loops ** min(max(depth, 2), 64) if self.loops > 1 else size * self.parts


def weigh(schema: dict[str, Any]) -> Weight:
    """Reckon a schema's cost. Raises SchemaRefused when it is too deep, too heavy or refers outside itself."""
    anchors: dict[str, Any] = {}
    patterns = 0
    for part in _parts(schema, 0):
        patterns += _count_patterns(part)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(part.get(keyword), str):
                anchors[part[keyword]] = part
        if part is not schema and isinstance(part.get("$id"), str):
            raise SchemaRefused("a $id inside the schema; remove it and refer by #/$defs/…")
    if patterns > MAX_PATTERNS:
        raise SchemaRefused(f"{patterns} patterns; at most {MAX_PATTERNS} are allowed")
    scale = _Scale(schema, anchors)
    parts, _ = scale.weigh(schema, 0)
    return Weight(parts=parts, loops=scale.loops)


def _parts(node: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth > MAX_DEPTH:
        raise SchemaRefused(f"nested deeper than {MAX_DEPTH} levels; flatten it")
    if isinstance(node, dict):
        yield node
        for key, child in node.items():
            if key not in _DATA:
                yield from _parts(child, depth + 1)
    elif isinstance(node, list):
        for child in node:
            yield from _parts(child, depth + 1)


def _count_patterns(part: dict[str, Any]) -> int:
    named = part.get("patternProperties")
    return isinstance(part.get("pattern"), str) + (len(named) if isinstance(named, dict) else 0)


class _Scale:
    """Weighs with memory: each part once, however often it is referred to."""

    def __init__(self, root: dict[str, Any], anchors: dict[str, Any]) -> None:
        self._root = root
        self._anchors = anchors
        self._known: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()
        self.loops = 0

    def weigh(self, node: Any, chain: int) -> tuple[int, int]:
        """Parts, and ways back to a part that is being weighed."""
        if not isinstance(node, (dict, list)):
            return 0, 0
        if id(node) in self._open:
            return 1, 1
        if id(node) not in self._known:
            self._known[id(node)] = self._sum(node, chain)
        return self._known[id(node)]

    def _sum(self, node: dict[str, Any] | list[Any], chain: int) -> tuple[int, int]:
        if chain > MAX_CHAIN:
            raise SchemaRefused(f"references and nesting go on for more than {MAX_CHAIN} steps; shorten them")
        self._open.add(id(node))
        below = [self.weigh(child, chain + 1) for child in self._children(node)]
        self._open.discard(id(node))
        parts, loops = 1 + sum(each[0] for each in below), sum(each[1] for each in below)
        if parts > MAX_WEIGHT:
            raise SchemaRefused(f"its references expand to more than {MAX_WEIGHT} parts; simplify it")
        self.loops = max(self.loops, loops)
        return parts, loops

    def _children(self, node: dict[str, Any] | list[Any]) -> Iterator[Any]:
        if isinstance(node, list):
            yield from node
            return
        for key, child in node.items():
            if key in _REFERENCES and isinstance(child, str):
                yield self._target(child)
            elif key not in _DATA and key not in _ASIDE:
                yield child

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#"):
            raise SchemaRefused(f"{reference[:100]!r} refers outside the schema; put the part under $defs")
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return self._anchors.get(pointer)
        node: Any = self._root
        for step in pointer.split("/")[1:]:
            node = _step(node, step.replace("~1", "/").replace("~0", "~"))
        return node


def _step(node: Any, step: str) -> Any:
    if isinstance(node, dict):
        return node.get(step)
    if isinstance(node, list) and step.isdecimal() and int(step[:9]) < len(node):
        return node[int(step[:9])]
    return None
