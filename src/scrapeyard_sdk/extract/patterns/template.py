"""Which pages are of one kind: those made by one template, whatever stands in them."""

import zlib
from collections.abc import Sequence

from scrapeyard_sdk.extract.patterns.candidates import is_name
from scrapeyard_sdk.extract.patterns.tree import PageTree

KEPT = 64
"""Marks of a page that are compared."""
ALIKE = 0.3
"""Pages with so large a share of common marks are of one kind."""

Marks = tuple[int, ...]


def marks(tree: PageTree) -> Marks:
    """A page's template in a few numbers: the smallest hashes of its named elements, each with the one above it."""
    names = {_name(element) for element in tree.elements("//body//*[@class or @id or @itemprop]")}
    return tuple(sorted({zlib.crc32(name.encode("utf-8", "replace")) for name in names if name})[:KEPT])


def likeness(one: Sequence[int], other: Sequence[int]) -> float:
    """From 0 to 1: about which share of their marks two templates have in common."""
    smallest = sorted(set(one) | set(other))[:KEPT]
    if not smallest:
        return 1.0
    both = set(one) & set(other)
    return sum(mark in both for mark in smallest) / len(smallest)


def templates_of(pages: Sequence[Marks]) -> list[list[int]]:
    """The numbers of the pages, by template: a page joins those of which one is like it."""
    found: list[list[int]] = []
    for number, page in enumerate(pages):
        near = [group for group in found if any(likeness(page, pages[each]) >= ALIKE for each in group)]
        found = [group for group in found if group not in near]
        found.append([*(each for group in near for each in group), number])
    return sorted((sorted(group) for group in found), key=len, reverse=True)


def _name(element: object) -> str:
    above = element.getparent()  # type: ignore[attr-defined]
    return f"{_own(above)}>{_own(element)}" if above is not None else ""


def _own(element: object) -> str:
    get = element.get  # type: ignore[attr-defined]
    words = [*(get("class") or "").split(), get("id") or "", get("itemprop") or ""]
    return " ".join((str(element.tag), *sorted(word for word in words if is_name(word))))  # type: ignore[attr-defined]
