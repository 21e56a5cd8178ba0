"""Rules that lead to one place of a page: by its path, by named elements around it, by a label before it."""

import re
from collections.abc import Container, Iterator
from typing import Any

from scrapeyard_sdk.extract.patterns.tree import PageTree, TextPlace

MAX_ANCHORED = 9
"""Elements above a place that may name it."""
MAX_LABEL = 60
"""Characters of a label."""
LOOK_BACK = 6
"""Texts before a place among which its label is looked for."""
MAX_LABELS = 2
_NAME = re.compile(r"[A-Za-z_][\w-]{0,60}")
_GENERATED = re.compile(r"\d{3,}")
"""A name with a number in it is likely that of one page."""
_NAMING = ("itemprop", "property", "name")

Costs = dict[str, float]
"""XPath to cost: how unlikely it is to hold on other pages. Less is better."""


def candidates(tree: PageTree, number: int | None, place: TextPlace, constants: Container[str]) -> Costs:
    """XPaths that lead to a place, with their costs. `number`: its position in `tree.texts`, if it is there."""
    costs: Costs = {}
    for xpath, cost in _all(tree, number, place, constants):
        costs[xpath] = min(cost, costs.get(xpath, cost))
    return costs


def _all(
    tree: PageTree, number: int | None, place: TextPlace, constants: Container[str]
) -> Iterator[tuple[str, float]]:
    line = _line(place.element)
    yield from _by_path(line, place)
    yield from _by_names(tree, line, place)
    if number is not None:
        yield from _by_labels(tree, number, place, constants)


def _by_path(line: list[Any], place: TextPlace) -> Iterator[tuple[str, float]]:
    path = "/" + "/".join(map(_step, line))
    for tail, cost in _tails(place):
        yield path + tail, 3 + cost


def _tails(place: TextPlace) -> Iterator[tuple[str, float]]:
    yield place.tail, 0.05
    if place.is_text:
        yield "/text()", 0.0


def _by_names(tree: PageTree, line: list[Any], place: TextPlace) -> Iterator[tuple[str, float]]:
    for depth in range(len(line) - 1, max(-1, len(line) - 1 - MAX_ANCHORED), -1):
        paths = list(_variants(line[depth + 1 :]))
        far = 0.25 * (len(line) - 1 - depth)
        for anchor, cost in _anchors(line[depth]):
            for start, end, more in _which(tree, anchor, line[depth]):
                for path in paths:
                    for tail, last in _tails(place):
                        yield f"{start}{path}{tail}{end}", cost + far + more + last


def _which(tree: PageTree, anchor: str, element: Any) -> Iterator[tuple[str, str, float]]:
    """Where several elements have the anchor's name: all of them, the first that has a text, or this one by its
    position. As what goes before and behind the path, and the cost."""
    named = tree.elements(anchor)
    yield anchor, "", 0.0
    if len(named) < 2:
        return
    yield f"({anchor}", ")[normalize-space()][1]", 0.4
    position = next((number for number, each in enumerate(named, 1) if each is element), 0)
    if position > 1:
        yield f"({anchor})[{position}]", "", 0.8
    if position == len(named):
        yield f"({anchor})[last()]", "", 0.9


def _anchors(element: Any) -> Iterator[tuple[str, float]]:
    """XPaths that name an element, wherever it stands."""
    given = element.get("id") or ""
    if is_name(given):
        yield f"//{element.tag}[@id='{given}']", 0.0
    for attribute in _NAMING:
        value = element.get(attribute) or ""
        if 0 < len(value) <= MAX_LABEL and "'" not in value:
            yield f"//{element.tag}[@{attribute}='{value}']", 0.0
    for name in _classes(element):
        yield f"//{element.tag}[{_has_class(name)}]", 1.0


def _by_labels(tree: PageTree, number: int, place: TextPlace, constants: Container[str]) -> Iterator[tuple[str, float]]:
    seen = 0
    for back in range(number - 1, max(-1, number - 1 - LOOK_BACK), -1):
        label = tree.texts[back]
        if label.text not in constants or len(label.text) > MAX_LABEL:
            continue
        seen += 1
        cost = 1 + 0.3 * (number - back - 1) + 0.3 * (seen - 1) + (0.8 if len(label.text) <= 2 else 0)
        yield from _after_label(tree, label, place, number - back, cost)
        if seen == MAX_LABELS:
            return


def _after_label(
    tree: PageTree, label: TextPlace, place: TextPlace, distance: int, cost: float
) -> Iterator[tuple[str, float]]:
    every = f"//{label.element.tag}/text()[normalize-space()={_quoted(label.text)}]"
    for start, more in ((every, 0.0), (f"({every})[1]", 0.1))[: 2 if tree.counts[label.text] > 1 else 1]:
        yield f"{start}/following::text()[normalize-space()][{distance}]", cost + 0.5 + more
        if label.element is place.element:
            yield f"{start}/following-sibling::text()[normalize-space()][1]", cost + more
        for path in _from_to(label.element, place.element):
            for tail, last in _tails(place):
                yield f"{start}/..{path}{tail}", cost + more + last


def _from_to(start: Any, end: Any) -> Iterator[str]:
    """Paths from one element to another that stands after it or inside it."""
    above, below = _line(start), _line(end)
    shared = sum(1 for _ in _while_same(above, below))
    if shared == len(above):
        yield from _variants(below[shared:]) if below[shared:] else ()
    elif shared == len(below):
        yield "/.." * (len(above) - shared)
    else:
        yield from _across(above[shared], below[shared], len(above) - 1 - shared, below[shared + 1 :])


def _while_same(one: list[Any], other: list[Any]) -> Iterator[Any]:
    for left, right in zip(one, other, strict=False):
        if left is not right:
            return
        yield left


def _across(start: Any, end: Any, up: int, below: list[Any]) -> Iterator[str]:
    siblings = list(start.itersiblings())
    if end not in siblings:
        return
    between = siblings[: siblings.index(end) + 1]
    position = sum(1 for each in between if each.tag == end.tag)
    heads = [f"following-sibling::{end.tag}[{position}]"]
    if len(between) == 1:
        heads.append(f"following-sibling::*[1][self::{end.tag}]")
    if position > 1:
        heads.append(f"following-sibling::{end.tag}")
    for head in heads:
        for path in _variants(below):
            yield f"{'/..' * up}/{head}{path}"


def _variants(chain: list[Any]) -> Iterator[str]:
    """Paths down a chain of elements: by position, with the last one free, with all free, the last one by class."""
    if not chain:
        yield ""
        return
    fixed = "".join(f"/{_step(each)}" for each in chain[:-1])
    last = chain[-1]
    paths = [f"{fixed}/{_step(last)}", f"{fixed}/{last.tag}", "".join(f"/{each.tag}" for each in chain)]
    paths += [f"{fixed}/{last.tag}[{_has_class(name)}]" for name in _classes(last)[:2]]
    yield from dict.fromkeys(paths)


def _line(element: Any) -> list[Any]:
    """The elements from the root down to this one."""
    return [element, *element.iterancestors()][::-1]


def _step(element: Any) -> str:
    before = sum(1 for each in element.itersiblings(preceding=True) if each.tag == element.tag)
    return f"{element.tag}[{before + 1}]"


def _classes(element: Any) -> list[str]:
    return [name for name in (element.get("class") or "").split() if is_name(name)]


def is_name(text: str) -> bool:
    """Whether a class or an id is likely the same on all pages of a template."""
    return bool(_NAME.fullmatch(text)) and not _GENERATED.search(text)


def _has_class(name: str) -> str:
    return f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"


def _quoted(text: str) -> str:
    """A text as XPath writes it, which has no escapes."""
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    return "concat(" + ', "\'", '.join(f"'{part}'" for part in text.split("'")) + ")"
