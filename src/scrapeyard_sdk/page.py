"""A page as a script sees it. It is parsed once, when something is first selected."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin

from scrapeyard_sdk.node import HtmlTree, Node, Pattern, Selection, found_by
from scrapeyard_sdk.outcomes import FetchError
from scrapeyard_sdk.text import lines

if TYPE_CHECKING:
    from typing import Unpack

    from scrapeyard_sdk.extract.tables import Table
    from scrapeyard_sdk.fetch import FetchOptions
    from scrapeyard_sdk.forms import Form


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
        fetch: Callable[..., Any] | None = None,
    ) -> None:
        self.url = url
        self.status = status
        self._pairs = headers
        self._headers: Headers | None = None
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
        self._document: HtmlTree | None = None
        self._fetch = fetch

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url}>"

    @property
    def headers(self) -> Headers:
        """The response headers."""
        if self._headers is None:
            self._headers = Headers(self._pairs)
        return self._headers

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

    @property
    def title(self) -> str | None:
        """The text of `<title>`; None if the page has none."""
        return self.text("title") or None

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies that this answer sets, by name."""
        pairs = (each.partition(";")[0].partition("=") for each in self.headers.get_all("set-cookie"))
        return {name.strip(): value.strip().strip('"') for name, equals, value in pairs if equals and name.strip()}

    def css(self, selector: str) -> Selection:
        """Every element that the selector matches, in order. With `::text` or `::attr(name)`: their own texts, or an
        attribute. Raises ValueError for an invalid selector."""
        return self._parsed().css(self._parsed().tree, selector)

    def css_first(self, selector: str) -> Node | None:
        """The first match; None when there is none."""
        return self._parsed().css_first(self._parsed().tree, selector)

    def text(self, selector: str | None = None, default: str | None = None) -> str | None:
        """The text of the first match, or `default` when nothing matches.

        Without a selector: all the text a reader sees, one line for each block.
        """
        if selector is None:
            body = self._parsed().tree.body
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
        """Evaluate XPath with lxml, where the environment has it: elements as nodes, texts and attributes as text, in a
        list with `get` and `getall`; a number, a truth value or `string(…)` as it is. Raises ValueError."""
        return self._parsed().xpath(expression)

    def re(self, pattern: Pattern) -> list[str]:
        """What the pattern finds in the HTML: its groups, or the whole match if it has none."""
        return found_by(pattern, self.html)

    def re_first(self, pattern: Pattern, default: str | None = None) -> str | None:
        """The first that the pattern finds; `default` if there is none."""
        return next(iter(self.re(pattern)), default)

    def json(self, path: str | None = None, default: Any = None) -> Any:
        """The body as JSON, or what stands at a path in it, such as `offers[0].price` or `items[*].name`; `default` if
        nothing stands there. Raises ValueError when the body is not JSON."""
        try:
            value = json.loads(self.html.removeprefix("\ufeff"))
        except RecursionError:
            raise ValueError(f"the JSON of {self.url} is nested too deeply") from None
        if path is None:
            return value
        from scrapeyard_sdk.extract.paths import look

        return look(value, path, default)

    def links(self, selector: str = "a[href]") -> list[str]:
        """Where the matches lead: absolute http and https URLs without fragments, each once, in order."""
        found = (self._link(href) for href in self.attrs(selector, "href") if not href.strip().startswith("#"))
        return list(dict.fromkeys(link for link in found if link.startswith(("http://", "https://"))))

    def meta(self) -> dict[str, Any]:
        """What the head and the headers say: title, description, robots, Open Graph, canonical, languages, …"""
        from scrapeyard_sdk.extract.page import read_meta

        headers = [("x-robots-tag", value) for value in self.headers.get_all("x-robots-tag")]
        return read_meta(self._parsed().tree, self.url, headers)

    def structured(self) -> dict[str, Any]:
        """Items of JSON-LD, microdata and RDFa as lists, and the Open Graph table."""
        from scrapeyard_sdk.extract.structured import read_structured

        return read_structured(self._parsed().tree, self.url)

    def product(self) -> dict[str, Any] | None:
        """The product that the page is about: name, price, availability, codes, …; None when it shows none."""
        from scrapeyard_sdk.extract.product.product import read_product

        return read_product(self._parsed().tree, self.url)

    def article(self) -> dict[str, Any] | None:
        """The main text with author and date; None when there is none. Raises RuntimeError without trafilatura."""
        from scrapeyard_sdk.extract.article import read_article

        return read_article(self._parsed().tree, self.url)

    def markdown(self, *, whole: bool = False) -> str:
        """The main part as Markdown; all that is visible if `whole`. Raises RuntimeError without html-to-markdown."""
        try:
            from scrapeyard_sdk.extract.markdown import to_markdown
        except ImportError:
            raise RuntimeError(
                "markdown needs html-to-markdown, which this environment has not; add it to the scraper's requirements"
            ) from None
        from scrapeyard_sdk.extract.page import base_of, drop_unseen

        copy = HtmlTree(self.html).tree  # it is changed
        return to_markdown(drop_unseen(copy), base_of(copy, self.url), whole=whole)

    def tables(self) -> "list[Table]":
        """Every table: `caption`, `headers`, `rows`, and `records`, which has the rows by their headers."""
        from scrapeyard_sdk.extract.tables import read_tables

        return read_tables(self._parsed().tree)

    def records(self) -> list[dict[str, Any]]:
        """The records of the page's main list, found without selectors; empty if it shows none."""
        from scrapeyard_sdk.extract.lists import read_records

        found = read_records(self._parsed().tree, self.url)
        return [] if found is None else found.records

    def next_page(self) -> str | None:
        """Where the list goes on; None on its last page."""
        from scrapeyard_sdk.extract.lists import read_next_page

        return read_next_page(self._parsed().tree, self.url)

    def images(self) -> list[dict[str, str | None]]:
        """Every image: `url`, and `alt`, which is None where the page has no such attribute."""
        from scrapeyard_sdk.extract.page import base_of, read_images

        tree = self._parsed().tree
        return read_images(tree, base_of(tree, self.url))

    def forms(self, selector: str = "form") -> "list[Form]":
        """Every form; `submit` fills and sends one."""
        from scrapeyard_sdk.forms import Form, controls_of

        root = self.css_first("html")
        return [
            Form(
                form,
                join=lambda action: self.url_join(action) if action.strip() else self.url,
                encoding=self.encoding,
                fetch=self._fetch_with,
                controls=controls_of(form, root),
            )
            for form in self.css(selector)
        ]

    def follow(self, link: str | Node, **options: "Unpack[FetchOptions]") -> Any:
        """Get the page that a link of this one leads to: an element with `href` or `src`, or an address, which may be
        relative. Await it in an `async def` script. Options and errors as in `Context.fetch`."""
        return self._fetch_with(self.url_join(_address(link)), {}, **options)

    def url_join(self, href: str) -> str:
        """A link of this page as an absolute URL; the page's `<base>` counts. Raises ValueError if it cannot be one."""
        base = self.attr("base[href]", "href")
        return urljoin(urljoin(self.url, base.strip()) if base else self.url, href.strip())

    urljoin = url_join

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

    def _fetch_with(self, url: str, settled: dict[str, Any], **options: Any) -> Any:
        """Get a page with options that are settled; headers are joined with the caller's."""
        if self._fetch is None:
            raise RuntimeError("this page was not fetched by a run, so nothing can be fetched from it")
        headers = {**settled.pop("headers", {}), **(options.pop("headers", None) or {})}
        return self._fetch(url, **options, **settled, **({"headers": headers} if headers else {}))

    def _parsed(self) -> HtmlTree:
        if self._document is None:
            self._document = HtmlTree(self.html)
        return self._document


def _address(link: str | Node) -> str:
    if isinstance(link, str):
        return link
    address = link.attr("href") or link.attr("src")
    if not address:
        raise ValueError(f"the element {link.tag} has neither href nor src")
    return address


def _moment(text: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
