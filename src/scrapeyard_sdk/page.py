"""A page as a script sees it. It is parsed once, when something is first selected."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin

from scrapeyard_sdk.outcomes import FetchError
from scrapeyard_sdk.text import lines

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


class Headers(Mapping[str, str]):
    """Response headers; names in any case. A name that came several times gives its values joined by commas."""

    def __init__(self, pairs: Iterable[Iterable[str]] | Mapping[str, str] = ()) -> None:
        items = pairs.items() if isinstance(pairs, Mapping) else pairs
        self._values: dict[str, list[str]] = {}
        for name, value in items:
            self._values.setdefault(name.lower(), []).append(value)

    def __getitem__(self, name: str) -> str:
        return ", ".join(self._values[name.lower()])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __repr__(self) -> str:
        return f"Headers({dict(self)!r})"

    def get_all(self, name: str) -> list[str]:
        """Each value of a name, as Set-Cookie needs; an empty list when there is none."""
        return list(self._values.get(name.lower(), ()))


class Node:
    """One element of a page. True in a condition, so `if page.css_first(".price"):` reads as it means."""

    __slots__ = ("_node",)

    def __init__(self, node: "LexborNode") -> None:
        self._node = node

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Node {self.tag}>"

    @property
    def tag(self) -> str:
        """The element's name, in lower case."""
        return self._node.tag or ""

    @property
    def html(self) -> str:
        """The element and all inside it."""
        return self._node.html or ""

    def text(self) -> str:
        """All text inside, on one line, white space folded."""
        return " ".join(lines(self._node))

    def attr(self, name: str, default: str | None = None) -> str | None:
        """An attribute; one without a value is an empty string, one that is not there is `default`."""
        attributes = self._node.attributes
        return (attributes[name] or "") if name in attributes else default

    @property
    def attrs(self) -> dict[str, str]:
        """All attributes."""
        return {name: value or "" for name, value in self._node.attributes.items()}

    def css(self, selector: str) -> "list[Node]":
        """Every element below (or at) this one that the selector matches."""
        return _select(self._node, selector)

    def css_first(self, selector: str) -> "Node | None":
        """The first match; None when there is none."""
        return _select_first(self._node, selector)


class Page:
    """What the site answered. Any status is a page; `raise_for_status` is for scripts that want a good one."""

    def __init__(
        self,
        *,
        url: str,
        status: int,
        headers: Iterable[Iterable[str]] | Mapping[str, str] = (),
        body: bytes = b"",
        encoding: str = "utf-8",
        elapsed_ms: float = 0.0,
        redirects: Iterable[str] = (),
        age_seconds: float | None = None,
        way: str = "",
        size: int | None = None,
    ) -> None:
        self.url = url
        self.status = status
        self.headers = Headers(headers)
        self.body = body
        self.encoding = encoding
        self.elapsed_ms = elapsed_ms
        self.redirects = tuple(redirects)
        self.age_seconds = age_seconds
        """Seconds since the page was fetched, if it came from the cache; None if it was fetched just now."""
        self.way = way
        """How it was fetched: profile, proxy, solver."""
        self.size = len(body) if size is None else size
        """Bytes of the page; for a download, the bytes saved."""
        self._html: str | None = None
        self._tree: LexborHTMLParser | None = None
        self._document: Any = None

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url}>"

    @property
    def ok(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status < 300

    @property
    def html(self) -> str:
        """The body as text, in the charset found; bytes that do not fit it become U+FFFD."""
        if self._html is None:
            self._html = self.body.decode(self.encoding, "replace")
        return self._html

    def css(self, selector: str) -> list[Node]:
        """Every element that the selector matches, in order. Raises ValueError for an invalid selector."""
        return _select(self._parsed(), selector)

    def css_first(self, selector: str) -> Node | None:
        """The first match; None when there is none."""
        return _select_first(self._parsed(), selector)

    def text(self, selector: str | None = None, default: str | None = None) -> str | None:
        """The text of the first match, or `default` when nothing matches.

        Without a selector: all the text a reader sees, one line for each block.
        """
        if selector is None:
            body = self._parsed().body
            return default if body is None else "\n".join(lines(body))
        node = self.css_first(selector)
        return default if node is None else node.text()

    def texts(self, selector: str) -> list[str]:
        """The text of every match."""
        return [node.text() for node in self.css(selector)]

    def attr(self, selector: str, name: str, default: str | None = None) -> str | None:
        """An attribute of the first match; `default` when there is no match or no such attribute."""
        node = self.css_first(selector)
        return default if node is None else node.attr(name, default)

    def attrs(self, selector: str, name: str) -> list[str]:
        """An attribute of every match that has it."""
        return [value for node in self.css(selector) if (value := node.attr(name)) is not None]

    def xpath(self, expression: str) -> Any:
        """Evaluate XPath with lxml, where the worker has it. Returns what lxml returns."""
        if self._document is None:
            self._document = _lxml_document(self.html)
        return self._document.xpath(expression)

    def json(self) -> Any:
        """The body as JSON. Raises ValueError when it is not."""
        try:
            return json.loads(self.html.removeprefix("\ufeff"))
        except RecursionError:
            raise ValueError(f"the JSON of {self.url} is nested too deeply") from None

    def links(self, selector: str = "a[href]") -> list[str]:
        """Where the matches lead: absolute http and https URLs without fragments, each once, in order."""
        found = (self._link(href) for href in self.attrs(selector, "href") if not href.strip().startswith("#"))
        return list(dict.fromkeys(link for link in found if link.startswith(("http://", "https://"))))

    def meta(self) -> dict[str, Any]:
        """What the head and the headers say: title, description, robots, Open Graph, canonical, languages, …"""
        from scrapeyard_sdk.extract.page import read_meta

        headers = [("x-robots-tag", value) for value in self.headers.get_all("x-robots-tag")]
        return read_meta(self._parsed(), self.url, headers)

    def structured(self) -> dict[str, Any]:
        """Items of JSON-LD, microdata and RDFa as lists, and the Open Graph table."""
        from scrapeyard_sdk.extract.structured import read_structured

        return read_structured(self._parsed(), self.url)

    def product(self) -> dict[str, Any] | None:
        """The product that the page is about: name, price, availability, codes, …; None when it shows none."""
        from scrapeyard_sdk.extract.product.product import read_product

        return read_product(self._parsed(), self.url)

    def article(self) -> dict[str, Any] | None:
        """The main text with author and date; None when there is none. Raises RuntimeError without trafilatura."""
        from scrapeyard_sdk.extract.article import read_article

        return read_article(self._parsed(), self.url)

    def url_join(self, href: str) -> str:
        """A link of this page as an absolute URL; the page's `<base>` counts. Raises ValueError if it cannot be one."""
        base = self.attr("base[href]", "href")
        return urljoin(urljoin(self.url, base.strip()) if base else self.url, href.strip())

    def raise_for_status(self) -> "Page":
        """This page if its status is below 400. Raises FetchError (`fetch_status`) otherwise.

        A run that ends with this error is retried later if that may help: for 408, 429 and from 500 on.
        """
        if self.status >= 400:
            message = f"{self.url} answered {self.status}"
            raise FetchError("fetch_status", message, site_status=self.status, retry_after=self.retry_after())
        return self

    def retry_after(self) -> float | None:
        """Seconds until the site accepts a new request (`Retry-After`), at most a day; None if it does not say."""
        said = self.headers.get("retry-after", "").strip()
        if said.isascii() and said.isdigit():
            return min(float(said[:10]), 86_400.0)
        moment = _moment(said) if said else None
        return None if moment is None else min(max(0.0, moment - time.time()), 86_400.0)

    def _link(self, href: str) -> str:
        try:
            return urldefrag(self.url_join(href)).url
        except ValueError:
            return ""

    def _parsed(self) -> "LexborHTMLParser":
        if self._tree is None:
            self._tree = _lexbor_tree(self.html)
        return self._tree


def _moment(text: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _select(root: "LexborHTMLParser | LexborNode", selector: str) -> list[Node]:
    from selectolax.lexbor import SelectolaxError

    try:
        return [Node(node) for node in root.css(selector)]
    except SelectolaxError:
        raise ValueError(f"{selector!r} is not a CSS selector") from None


def _select_first(root: "LexborHTMLParser | LexborNode", selector: str) -> Node | None:
    from selectolax.lexbor import SelectolaxError

    try:
        node = root.css_first(selector)
    except SelectolaxError:
        raise ValueError(f"{selector!r} is not a CSS selector") from None
    return None if node is None else Node(node)


def _lexbor_tree(html: str) -> "LexborHTMLParser":
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError:
        raise RuntimeError("css and text need selectolax, which this worker has not installed") from None
    return LexborHTMLParser(html)


def _lxml_document(html: str) -> Any:
    try:
        lxml_html = import_module("lxml.html")
    except ImportError:
        raise RuntimeError(
            "xpath needs lxml, which this worker has not installed; use css, or ask the operator for lxml"
        ) from None
    # From bytes: lxml refuses text that declares an encoding.
    parser = lxml_html.HTMLParser(encoding="utf-8")
    return lxml_html.document_fromstring(html.encode("utf-8", "replace") or b"<html></html>", parser=parser)
