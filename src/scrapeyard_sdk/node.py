"""Elements of a page, and lists of them. Selecting uses selectolax; XPath uses lxml, which is loaded when it is asked.

The names of Scrapy's selectors work too: `css("a::attr(href)").getall()`, `xpath("//h1/text()").get()`, `re_first`.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from scrapeyard_sdk.text import lines

if TYPE_CHECKING:
    from datetime import date
    from decimal import Decimal

    from selectolax.lexbor import LexborHTMLParser, LexborNode

    from scrapeyard_sdk.extract.prices import Price

Pattern = str | re.Pattern[str]
_COMMAS = re.compile(r""",(?=(?:[^"'()\[\]]|"[^"]*"|'[^']*'|\([^()]*\)|\[[^\[\]]*\])*$)""")
_MARK = "data-scrapeyard-n"
"""Marks elements while a page is handed from one parser to the other."""


class Text(str):
    """Text that was selected by `::text`, `::attr(…)` or XPath. It is a plain `str` with the names of a selector."""

    __slots__ = ()

    def get(self, default: str | None = None) -> str:  # noqa: ARG002 - as that of a list, which may be empty
        """The text itself."""
        return str(self)

    def getall(self) -> list[str]:
        """The text, in a list."""
        return [str(self)]

    def text(self) -> str:
        """The text, white space folded."""
        return " ".join(self.split())

    def re(self, pattern: Pattern) -> list[str]:
        """What the pattern finds in it: its groups, or the whole match if it has none."""
        return found_by(pattern, self)

    def re_first(self, pattern: Pattern, default: str | None = None) -> str | None:
        """The first that the pattern finds; `default` if there is none."""
        return next(iter(self.re(pattern)), default)


class Node:
    """One element of a page. True in a condition, so `if page.css_first(".price"):` reads as it means."""

    __slots__ = ("_document", "_node")

    def __init__(self, node: "LexborNode", document: "HtmlTree") -> None:
        self._node = node
        self._document = document

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._node.mem_id == other._node.mem_id

    def __hash__(self) -> int:
        return hash(self._node.mem_id)

    def __repr__(self) -> str:
        return f"<Node {self.tag}>"

    def __getitem__(self, name: str) -> str:
        """An attribute. Raises KeyError if the element has none of that name."""
        value = self.attr(name)
        if value is None:
            raise KeyError(name)
        return value

    @property
    def tag(self) -> str:
        """The element's name, in lower case."""
        return self._node.tag or ""

    @property
    def html(self) -> str:
        """The element and all inside it."""
        return self._node.html or ""

    @overload
    def text(self) -> str: ...

    @overload
    def text(self, selector: str, default: str | None = None) -> str | None: ...

    def text(self, selector: str | None = None, default: str | None = None) -> str | None:
        """All text inside, on one line, white space folded. With a selector: of the first match, or `default`."""
        if selector is None:
            return " ".join(lines(self._node))
        found = self.css_first(selector)
        return default if found is None else found.text()

    def attr(self, name: str, default: str | None = None) -> str | None:
        """An attribute; one without a value is an empty string, one that is not there is `default`."""
        attributes = self._node.attributes
        return (attributes[name] or "") if name in attributes else default

    @property
    def attrs(self) -> dict[str, str]:
        """All attributes."""
        return {name: value or "" for name, value in self._node.attributes.items()}

    attrib = attrs

    def get(self, name: str | None = None, default: str | None = None) -> str | None:
        """An attribute by name, as `attr`; without a name, the element's HTML."""
        return self.html if name is None else self.attr(name, default)

    def getall(self) -> list[str]:
        """The element's HTML, in a list."""
        return [self.html]

    @property
    def parent(self) -> "Node | None":
        """The element around this one; None for the outermost."""
        above = self._node.parent
        return None if above is None or not above.is_element_node else Node(above, self._document)

    @property
    def children(self) -> "Selection":
        """The elements right inside this one."""
        return Selection(Node(each, self._document) for each in self._node.iter() if each.is_element_node)

    @property
    def next(self) -> "Node | None":
        """The element after this one with the same parent; None if it is the last."""
        return self._beside("next")

    @property
    def previous(self) -> "Node | None":
        """The element before this one with the same parent; None if it is the first."""
        return self._beside("prev")

    def css(self, selector: str) -> "Selection":
        """Every element below (or at) this one that the selector matches. With `::text` or `::attr(name)`: their own
        texts, or an attribute."""
        return self._document.css(self._node, selector)

    def css_first(self, selector: str) -> "Node | None":
        """The first match; None when there is none."""
        return self._document.css_first(self._node, selector)

    def xpath(self, expression: str) -> Any:
        """Evaluate XPath from this element; `.//a` looks inside it. Results as of `Page.xpath`."""
        return self._document.xpath(expression, self._node)

    def re(self, pattern: Pattern) -> list[str]:
        """What the pattern finds in the element's HTML: its groups, or the whole match if it has none."""
        from html import unescape

        return found_by(pattern, unescape(self.html))

    def re_first(self, pattern: Pattern, default: str | None = None) -> str | None:
        """The first that the pattern finds; `default` if there is none."""
        return next(iter(self.re(pattern)), default)

    def number(self, *, decimal: str | None = None) -> "Decimal | None":
        """The first number in the text; None if it has none. `decimal` is the decimal sign, if it is known."""
        from scrapeyard_sdk.extract.numbers import parse_number

        return parse_number(self.text(), decimal=decimal)

    def price(self, hint: str | None = None) -> "Price":
        """The price in the text: `amount` and `currency`. `hint` is another text that may name the currency."""
        from scrapeyard_sdk.extract.prices import parse_price

        return parse_price(self.text(), hint)

    def date(self, *, order: str | None = None) -> "date | None":
        """The date in the element's `datetime` attribute or its text; None if there is none, or if `order` is needed to
        tell day and month apart."""
        from scrapeyard_sdk.extract.dates import parse_date

        said = self.attr("datetime") or self.attr("content")
        return (parse_date(said) if said else None) or parse_date(self.text(), order=order)

    def _beside(self, side: str) -> "Node | None":
        found = getattr(self._node, side)
        while found is not None and not found.is_element_node:
            found = getattr(found, side)
        return None if found is None else Node(found, self._document)


class Selection(list[Node]):
    """What a selector matched, in order. With `::text` or `::attr(name)` its members are texts."""

    def get(self, default: str | None = None) -> str | None:
        """The HTML of the first match, or its text if texts were selected; `default` if nothing matched."""
        return self[0].get() if self else default

    def getall(self) -> list[str]:
        """The same of every match."""
        return [each.get() or "" for each in self]

    extract_first, extract = get, getall

    def texts(self) -> list[str]:
        """The text of every match, each on one line."""
        return [each.text() for each in self]

    @property
    def attrib(self) -> dict[str, str]:
        """The attributes of the first match; empty if nothing matched."""
        return self[0].attrs if self and isinstance(self[0], Node) else {}

    def css(self, selector: str) -> "Selection":
        """Everything that the selector matches inside the matches."""
        return Selection(found for each in self for found in each.css(selector))

    def xpath(self, expression: str) -> "Selection":
        """Everything that the expression gives inside the matches."""
        return Selection(found for each in self for found in _listed(each.xpath(expression)))

    def re(self, pattern: Pattern) -> list[str]:
        """What the pattern finds in the matches."""
        return [found for each in self for found in each.re(pattern)]

    def re_first(self, pattern: Pattern, default: str | None = None) -> str | None:
        """The first that the pattern finds; `default` if there is none."""
        return next((found for each in self for found in each.re(pattern)), default)


def found_by(pattern: Pattern, text: str) -> list[str]:
    """All groups of all matches; whole matches if the pattern has no groups."""
    return [found or "" for match in re.finditer(pattern, text) for found in (match.groups() or (match.group(),))]


class HtmlTree:
    """A parsed page, and the same page for XPath once that is asked."""

    def __init__(self, html: str) -> None:
        try:
            from selectolax.lexbor import LexborHTMLParser
        except ImportError:
            raise RuntimeError("css and text need selectolax, which this worker has not installed") from None
        self.tree: LexborHTMLParser = LexborHTMLParser(html)
        self._twin: _Twin | None = None

    def css(self, root: "LexborHTMLParser | LexborNode", selector: str) -> Selection:
        """Raises ValueError for an invalid selector."""
        if "::" not in selector:
            return Selection(Node(node, self) for node in _selected(root, selector))
        from scrapeyard_sdk.extract.selectors import OWN_TEXT, split_selector

        found = Selection()
        for part in _COMMAS.split(selector):
            css, take, deep = split_selector(part)
            for node in _selected(root, (css or "*") if take else part):
                if not take:
                    found.append(Node(node, self))
                else:
                    found += _own_texts(node, deep=deep) if take == OWN_TEXT else _attribute(node, take)
        return found

    def css_first(self, root: "LexborHTMLParser | LexborNode", selector: str) -> Node | None:
        """The first match; None when there is none."""
        if "::" in selector:
            return next(iter(self.css(root, selector)), None)
        from selectolax.lexbor import SelectolaxError

        try:
            node = root.css_first(selector)
        except SelectolaxError:
            raise _not_css(selector) from None
        return None if node is None else Node(node, self)

    def xpath(self, expression: str, node: "LexborNode | None" = None) -> Any:
        """Elements as nodes and texts as Text, in a Selection; a number, a truth value or one text as it is."""
        found = self.evaluate(expression, node)
        if not isinstance(found, list):
            return str(found) if isinstance(found, str) else found
        wrapped: list[Any] = [Text(each) if isinstance(each, str) else Node(each, self) for each in found]
        return Selection(wrapped)

    def evaluate(self, expression: str, node: "LexborNode | None" = None, *, inside: bool = False) -> Any:
        """What XPath gives from an element: a list of elements of the tree and texts, or a number, a truth value or a
        text. With `inside` the element is a document of its own: `//a` finds nothing around it. Raises ValueError."""
        if self._twin is None:
            self._twin = _Twin(self.tree)
        return self._twin.evaluate(expression, node, inside=inside)


class _Twin:
    """The page as lxml has it, with the way from its elements to those of the tree and back."""

    def __init__(self, tree: "LexborHTMLParser") -> None:
        try:
            html = import_module("lxml.html")
        except ImportError:
            raise RuntimeError(
                "xpath needs lxml, which this environment has not installed; use css, or add lxml to the requirements"
            ) from None
        self._copied: tuple[Any, Any, dict[Any, Any]] | None = None
        self._nodes = list(tree.css("*"))
        for number, node in enumerate(self._nodes):
            node.attrs[_MARK] = str(number)
        # From bytes: lxml refuses text that declares an encoding.
        data = (tree.html or "<html></html>").encode("utf-8", "replace")
        self._root = html.document_fromstring(data, parser=html.HTMLParser(encoding="utf-8"))
        for node in self._nodes:
            del node.attrs[_MARK]
        marked = [(each, each.attrib.pop(_MARK, None)) for each in self._root.iter() if isinstance(each.tag, str)]
        self._number = {each: int(number) for each, number in marked if number is not None}
        self._element = {self._nodes[number].mem_id: each for each, number in self._number.items()}

    def evaluate(self, expression: str, node: "LexborNode | None", *, inside: bool) -> Any:
        """What lxml says, with the tree's own nodes for elements. Raises ValueError."""
        start = self._root if node is None else self._element.get(node.mem_id)
        if start is None:
            return []
        if not inside or start is self._root:
            found = _evaluated(expression, start)
        else:
            copy, origins = self._alone(start)
            found = _evaluated(expression, copy)
            if isinstance(found, list):
                found = [each if isinstance(each, str) else origins.get(each) for each in found]
        if not isinstance(found, list):
            return found
        return [self._known(each) for each in found if isinstance(each, str) or each in self._number]

    def _alone(self, start: Any) -> tuple[Any, dict[Any, Any]]:
        """A copy of an element as a document, and of which element each one in it is the copy. The last is kept, since
        a record has several fields."""
        if self._copied is None or self._copied[0] is not start:
            made = deepcopy(start)
            made.tail = None
            self._copied = start, made, dict(zip(made.iter(), start.iter(), strict=True))
        return self._copied[1:]

    def _known(self, found: Any) -> Any:
        return found if isinstance(found, str) else self._nodes[self._number[found]]


def _evaluated(expression: str, start: Any) -> Any:
    etree = import_module("lxml.etree")
    try:
        return etree.XPath(expression)(start)
    except etree.XPathSyntaxError as error:
        raise ValueError(f"{expression!r} is not an XPath expression: {error}") from None
    except etree.XPathError as error:
        raise ValueError(f"the XPath expression cannot be evaluated: {error}") from None


def _selected(root: "LexborHTMLParser | LexborNode", selector: str) -> "list[LexborNode]":
    from selectolax.lexbor import SelectolaxError

    try:
        return root.css(selector)
    except SelectolaxError:
        raise _not_css(selector) from None


def _not_css(selector: str) -> ValueError:
    return ValueError(f"{selector!r} is not a CSS selector")


def _attribute(node: "LexborNode", name: str) -> Iterator[Any]:
    if name in node.attributes:
        yield Text(node.attributes[name] or "")


def _own_texts(node: "LexborNode", *, deep: bool) -> Iterator[Any]:
    """The texts right inside an element, or all below it, as they stand."""
    inside = node.traverse(include_text=True) if deep else node.iter(include_text=True)
    return (Text(each.text_content or "") for each in inside if each.is_text_node)


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [Text(found)]
