"""Where a value that a page states stands: a selector that selects its node, and the path within a script's JSON.

The readers of structured data tell a value and its source. The node is looked for afterwards. A value that is not found
has no place: a selector that selects something else would be worse than none.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, NamedTuple

from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser, LexborNode

from scrapeyard.builtin.extraction.fields import read_text, same
from scrapeyard.builtin.extraction.reduced import path_of
from scrapeyard_sdk.extract.lenient_json import Budget, read_json
from scrapeyard_sdk.extract.patterns.tree import PageTree, fold
from scrapeyard_sdk.extract.structured import MAX_BLOCKS

_MAX_PLACES = 20_000
"""Of one source that are looked at."""
_MAX_NUMBER = 60
"""Characters of a text that may be a number."""
_LEAST_LINK = 3
"""Characters of a link that is part of an address."""
_MAX_SCRIPT = 2_000_000
_MAX_TEXT = 500
"""Characters of a text that is shown whole."""
_VALUES = ("content", "href", "src", "datetime", "value", "resource", "data")
"""Attributes that hold the value of a marked element."""
_NAME = re.compile(r"[A-Za-z_]\w*")


class StatedPlace(Struct, frozen=True, kw_only=True):
    """Where a value stands."""

    text: str
    selector: str
    """XPath of an element or an attribute."""
    json_path: str = ""
    """JSONPath of the value in the element's JSON."""


class _Seen(NamedTuple):
    """A text that may be the value's."""

    text: str
    where: Callable[[], str]
    """Its selector."""
    names: tuple[str, ...] = ()
    """What its place is called."""
    json_path: str = ""


class StatedPlaces:
    """The places of one page."""

    def __init__(self, tree: LexborHTMLParser, page: PageTree) -> None:
        self._tree = tree
        self._page = page

    def find(self, source: str, value: Any, names: Sequence[str] = ()) -> StatedPlace | None:
        """The place of a value of that source; of a list, that of its first. One with such a name comes before others,
        one that is the value before one that has it among other words. None if there is none."""
        first = value[0] if isinstance(value, list) and value else value
        source = "links" if source in ("page", "meta") and str(first).startswith("http") else source
        best: tuple[int, _Seen] | None = None
        for seen in islice(self._of(source), _MAX_PLACES):
            rank = _rank(seen, first, names)
            if rank and (best is None or rank > best[0]):
                best = rank, seen
            if rank == _BEST:
                break
        if best is None:
            return None
        text = best[1].text if len(best[1].text) <= _MAX_TEXT else fold(str(first))
        return StatedPlace(text=text, selector=best[1].where(), json_path=best[1].json_path)

    def _of(self, source: str) -> Iterator[_Seen]:
        match source:
            case "json-ld":
                yield from self._json
            case "microdata":
                yield from self._marked("itemprop")
            case "rdfa":
                yield from self._marked("property")
            case "opengraph" | "meta":
                yield from self._head()
            case "script":
                yield from self._scripts()
            case "page":
                yield from self._texts()
            case "attributes":
                yield from self._attributes()
            case "links":
                yield from chain(self._json, self._marked("itemprop"), self._head(), self._attributes())

    @cached_property
    def _json(self) -> list[_Seen]:
        budget, found = Budget(), list[_Seen]()
        for node in self._tree.css('script[type*="ld+json" i]')[:MAX_BLOCKS]:
            text, where = node.text(), partial(_numbered, self._tree, node, "type")
            documents = read_json(text, budget)
            has_path = len(documents) == 1
            for document in documents:
                for path, names, leaf in _leaves(document, "$", ()):
                    if has_path or leaf in text:
                        found.append(_Seen(leaf, where, names, path if has_path else ""))
        return found

    def _marked(self, attribute: str) -> Iterator[_Seen]:
        for node in self._tree.css(f"[{attribute}]"):
            names = tuple((node.attributes.get(attribute) or "").replace(":", " ").split())
            for name in _VALUES:
                if node.attributes.get(name):
                    yield _Seen(node.attributes[name] or "", self._where(node, attribute, name), names)
            yield _Seen(fold(node.text()), self._where(node, attribute), names)

    def _head(self) -> Iterator[_Seen]:
        for node in self._tree.css("head > title, h1"):
            yield _Seen(fold(node.text()), self._where(node), (node.tag or "",))
        for node in self._tree.css("meta[content]"):
            named = next((each for each in ("property", "name", "itemprop") if node.attributes.get(each)), "")
            names = tuple((node.attributes.get(named) or "").split(":")) if named else ()
            yield _Seen(node.attributes.get("content") or "", self._where(node, named, "content"), names)
        for css, named, taken in (('link[rel~="canonical" i]', "rel", "href"), ("html[lang]", "", "lang")):
            for node in self._tree.css(css):
                yield _Seen(node.attributes.get(taken) or "", self._where(node, named, taken))

    def _scripts(self) -> Iterator[_Seen]:
        for node in self._tree.css("script:not([src])")[:MAX_BLOCKS]:
            yield _Seen(node.text()[:_MAX_SCRIPT], self._where(node))

    def _where(self, node: LexborNode, attribute: str = "", taken: str = "") -> Callable[[], str]:
        return lambda: _numbered(self._tree, node, attribute) + (f"/@{taken}" if taken else "")

    def _texts(self) -> Iterator[_Seen]:
        for place in self._page.texts:
            yield _Seen(place.text, partial(path_of, place.element))

    def _attributes(self) -> Iterator[_Seen]:
        for element in self._page.elements("//*[@*]"):
            for name, text in element.attrib.items():
                if re.fullmatch(r"[\w-]+", name):
                    yield _Seen(text, partial(_attribute_of, element, name), tuple(re.split(r"[-_]", name)))


_BEST = 4


def _rank(seen: _Seen, value: Any, names: Sequence[str]) -> int:
    """0: not the value's. Otherwise more is better."""
    is_it = _is_value(seen.text, value)
    if not is_it and fold(str(value)).casefold() not in fold(seen.text).casefold():
        return 0
    return 1 + 2 * is_it + any(name in names for name in seen.names)


def _is_value(text: str, value: Any) -> bool:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return len(text) <= _MAX_NUMBER and any(map(str.isdigit, text)) and same(read_text(text, "number"), value)
    link = text.lstrip("./") if str(value).startswith("http") else ""
    return (len(link) > _LEAST_LINK and str(value).endswith(link)) or same(text, str(value))


def _attribute_of(element: Any, name: str) -> str:
    return f"{path_of(element)}/@{name}"


def _numbered(tree: LexborHTMLParser, node: LexborNode, attribute: str = "") -> str:
    """An XPath to an element: by an attribute's value, and its number where several have it."""
    value = node.attributes.get(attribute) or "" if attribute else ""
    is_named = bool(value) and "'" not in value and '"' not in value and "\\" not in value
    css = f'{node.tag}[{attribute}="{value}"]' if is_named else str(node.tag)
    xpath = f"//{node.tag}[@{attribute}='{value}']" if is_named else f"//{node.tag}"
    # CSS ignores the case of some attributes' values, XPath of none.
    twins = [each for each in tree.css(css) if not is_named or each.attributes.get(attribute) == value]
    number = next((number for number, each in enumerate(twins, 1) if each.mem_id == node.mem_id), 1)
    return xpath if len(twins) == 1 else f"({xpath})[{number}]"


def _leaves(value: Any, path: str, names: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The path, the names on it and the text of each plain value."""
    if isinstance(value, dict):
        for name, each in value.items():
            step = f".{name}" if _NAME.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"
            yield from _leaves(each, path + step, (*names, name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}[{number}]", names)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield path, names, str(value)
