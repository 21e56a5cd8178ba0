"""What a page's head says of it: title, description, robots, Open Graph, Twitter cards, canonical, languages."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin

from scrapeyard_sdk.extract.lenient_json import clean

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_FIELD = 2000
MAX_LINK = 4096
MAX_ENTRIES = 500
"""Of each list and table below; pages with more are made to be long."""
_WHOLE = re.compile(r"https?://[a-z0-9.\-]+(?::\d+)?/[!$&-;=?-Z_a-z~%]*[!$&-;=@-Z_a-z~%]")
"""Links that are absolute and plain, and stay as they are. Joining takes long, and pages have thousands of links."""
_ORIGIN = re.compile(r"https?://[a-z0-9.\-]+(?::\d+)?(?=/|$)")
_ROOTED = re.compile(r"/(?!/)(?:[!$&-:=?-Z_a-z~%]*[!$&-:=@-Z_a-z~%])?")
_CARDS = {"og:": "opengraph", "product:": "opengraph", "article:": "opengraph", "twitter:": "twitter"}


def read_meta(tree: "LexborHTMLParser", url: str, headers: Iterable[Iterable[str]] = ()) -> dict[str, Any]:
    """Everything the head says. A field that is not there is None, a list or table is empty.

    `url` makes links absolute; `headers` (pairs) are the answer's own, for `X-Robots-Tag` and `Link`.
    """
    base = base_of(tree, url)
    metas = _metas(tree)
    return {
        "title": _text(tree, "title"),
        "description": metas.named("description") or metas.named("og:description"),
        "keywords": metas.named("keywords"),
        "canonical": _canonical(tree, base),
        "language": _language(tree, metas),
        "robots": _robots(metas, headers),
        "hreflang": _hreflang(tree, base),
        "opengraph": metas.cards("opengraph"),
        "twitter": metas.cards("twitter"),
        "meta": metas.others(),
    }


def base_of(tree: "LexborHTMLParser", url: str) -> str:
    """What links are relative to: the page's `<base>`, or its address."""
    node = tree.css_first("base[href]")
    return absolute(url, node.attributes.get("href") if node is not None else None) or url


def absolute(base: str, href: str | None) -> str | None:
    """A link as an absolute URL without fragment; None unless it leads to http or https."""
    if not href or len(href) > MAX_LINK:
        return None
    if _WHOLE.fullmatch(href):
        return href
    try:
        link = urldefrag(urljoin(base, "".join(href.split("\n")).strip())).url
    except ValueError:
        return None
    return clean(link) if link.startswith(("http://", "https://")) else None


class Joiner:
    """Makes the links of one page absolute. Does what `absolute` does, faster for the usual kinds."""

    def __init__(self, base: str) -> None:
        self._base = base
        origin = _ORIGIN.match(base)
        self._origin = origin.group() if origin else None

    def absolute(self, href: str | None) -> str | None:
        """As `absolute`."""
        if href and self._origin and len(href) <= MAX_LINK and "/." not in href and _ROOTED.fullmatch(href):
            return self._origin + href
        return absolute(self._base, href)


def folded(text: str) -> str:
    """On one line, white space folded."""
    return " ".join(clean(text).split())


class _Metas:
    """The page's `<meta>` elements by their name, property, itemprop or http-equiv, in lower case."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def named(self, name: str) -> str | None:
        return next((value for value in self._values.get(name, ()) if value), None)

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def cards(self, kind: str) -> dict[str, Any]:
        """One value as text, several as a list."""
        return {
            name: values[0] if len(values) == 1 else values
            for name, values in self._values.items()
            if _card(name) == kind
        }

    def others(self) -> dict[str, str]:
        return {name: values[0] for name, values in self._values.items() if not _card(name)}


def _card(name: str) -> str | None:
    return next((kind for prefix, kind in _CARDS.items() if name.startswith(prefix)), None)


def _metas(tree: "LexborHTMLParser") -> _Metas:
    return _Metas(pair for node in tree.css("meta[content]")[:MAX_ENTRIES] if (pair := _meta(node.attributes)))


def _meta(attributes: Mapping[str, str | None]) -> tuple[str, str] | None:
    name = attributes.get("property") or attributes.get("name") or attributes.get("http-equiv") or ""
    return (clean(name).strip().lower()[:200], folded(attributes.get("content") or "")[:MAX_FIELD]) if name else None


def _text(tree: "LexborHTMLParser", selector: str) -> str | None:
    node = tree.css_first(selector)
    return folded(node.text())[:MAX_FIELD] or None if node is not None else None


def _canonical(tree: "LexborHTMLParser", base: str) -> str | None:
    node = tree.css_first('link[rel~="canonical" i]')
    return absolute(base, node.attributes.get("href")) if node is not None else None


def _language(tree: "LexborHTMLParser", metas: _Metas) -> str | None:
    node = tree.css_first("html[lang]")
    said = (node.attributes.get("lang") if node is not None else None) or metas.named("content-language")
    return clean(said).split(",")[0].strip()[:35] or None if said else None


def _robots(metas: _Metas, headers: Iterable[Iterable[str]]) -> dict[str, Any]:
    """What the page and its headers tell search engines. `index` and `follow` sum it up for all of them."""
    header = [folded(value)[:MAX_FIELD] for name, value in headers if name.lower() == "x-robots-tag"]
    said = [*metas.all("robots"), *(value for value in header if not _names_an_agent(value))]
    words = {word.strip().lower() for each in said for word in each.split(",")}
    return {
        "meta": ", ".join(metas.all("robots")) or None,
        "header": ", ".join(header) or None,
        "index": not words & {"noindex", "none"},
        "follow": not words & {"nofollow", "none"},
    }


def _names_an_agent(value: str) -> bool:
    """`googlebot: noindex` is for one crawler; `unavailable_after: …` and `max-snippet: 10` are for all."""
    head, colon, _ = value.partition(":")
    return bool(colon) and "," not in head and not head.strip().lower().startswith(("unavailable", "max-"))


def _hreflang(tree: "LexborHTMLParser", base: str) -> list[dict[str, str]]:
    found = (_alternate(node, base) for node in tree.css('link[rel~="alternate" i][hreflang]')[:MAX_ENTRIES])
    return [each for each in found if each]


def _alternate(node: "LexborNode", base: str) -> dict[str, str] | None:
    link = absolute(base, node.attributes.get("href"))
    return {"language": clean(node.attributes.get("hreflang") or "")[:35], "url": link} if link else None
