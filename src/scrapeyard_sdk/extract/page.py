"""What a page says of itself: its head, headings, links, images, and its text as a count and a hash."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin, urlsplit

from scrapeyard_sdk.extract.lenient_json import clean

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_FIELD = 2000
MAX_LINK = 4096
MAX_ENTRIES = 500
"""Maximum entries of each list and table below; real pages do not have more."""
_WHOLE = re.compile(r"https?://[a-z0-9.\-]+(?::\d+)?/[!$&-;=?-Z_a-z~%]*[!$&-;=@-Z_a-z~%]")
"""Plain absolute links, which need no joining. Joining is slow, and pages have thousands of links."""
_ORIGIN = re.compile(r"https?://[a-z0-9.\-]+(?::\d+)?(?=/|$)")
_ROOTED = re.compile(r"/(?!/)(?:[!$&-:=?-Z_a-z~%]*[!$&-:=@-Z_a-z~%])?")
_CARDS = {
    **dict.fromkeys(("og", "product", "article", "book", "profile", "music", "video", "fb"), "opengraph"),
    **dict.fromkeys(("books", "business", "place", "restaurant", "game", "al"), "opengraph"),
    "twitter": "twitter",
}
"""The vocabularies of Open Graph and of its publisher: objects, app links, the page's own ids."""


def read_meta(
    tree: "LexborHTMLParser", url: str, headers: Iterable[Iterable[str]] = (), *, base: str | None = None
) -> dict[str, Any]:
    """All fields of the head. A missing field is None, a missing list or table is empty.

    `url` makes links absolute; `headers` (pairs) are the answer's own, for `X-Robots-Tag` and `Link`. `base` is what
    `base_of` gives, if the caller knows it.
    """
    joiner = Joiner(base or base_of(tree, url))
    metas = _metas(tree)
    return {
        "title": _text(tree, "title"),
        "description": metas.named("description") or metas.named("og:description"),
        "keywords": metas.named("keywords"),
        "canonical": _canonical(tree, joiner),
        "language": _language(tree, metas),
        "robots": _robots(metas, headers),
        "hreflang": _hreflang(tree, joiner),
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
    prefix, colon, _ = name.partition(":")
    return _CARDS.get(prefix) if colon else None


def _metas(tree: "LexborHTMLParser") -> _Metas:
    return _Metas(pair for node in tree.css("meta[content]")[:MAX_ENTRIES] if (pair := _meta(node.attributes)))


def _meta(attributes: Mapping[str, str | None]) -> tuple[str, str] | None:
    name = attributes.get("property") or attributes.get("name") or attributes.get("http-equiv") or ""
    return (clean(name).strip().lower()[:200], folded(attributes.get("content") or "")[:MAX_FIELD]) if name else None


def _text(tree: "LexborHTMLParser", selector: str) -> str | None:
    node = tree.css_first(selector)
    return folded(node.text())[:MAX_FIELD] or None if node is not None else None


def _canonical(tree: "LexborHTMLParser", joiner: Joiner) -> str | None:
    node = tree.css_first('link[rel~="canonical" i]')
    return joiner.absolute(node.attributes.get("href")) if node is not None else None


def _language(tree: "LexborHTMLParser", metas: _Metas) -> str | None:
    node = tree.css_first("html[lang]")
    said = (node.attributes.get("lang") if node is not None else None) or metas.named("content-language")
    return clean(said).split(",")[0].strip()[:35] or None if said else None


def _robots(metas: _Metas, headers: Iterable[Iterable[str]]) -> dict[str, Any]:
    """Robots rules of the page and its headers. `index` and `follow` summarize them for all crawlers."""
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


def _hreflang(tree: "LexborHTMLParser", joiner: Joiner) -> list[dict[str, str]]:
    found = (_alternate(node, joiner) for node in tree.css('link[rel~="alternate" i][hreflang]')[:MAX_ENTRIES])
    return [each for each in found if each]


def _alternate(node: "LexborNode", joiner: Joiner) -> dict[str, str] | None:
    link = joiner.absolute(node.attributes.get("href"))
    return {"language": clean(node.attributes.get("hreflang") or "")[:35], "url": link} if link else None


MAX_LINKS = 5000
MAX_IMAGES = 2000
MAX_HEADINGS = 100
_MAX_ANCHOR = 300
_CANDIDATE = re.compile(r"([^\s,]\S*[^\s,])(?:\s+([\d.]+[wx]))?\s*(?:,|$)")
_UNSEEN = "script, style, noscript, template, iframe, object, svg, canvas, head, [hidden]"

_HIDDEN = '[style*="display:none" i], [style*="display: none" i]'


def read_headings(tree: "LexborHTMLParser") -> dict[str, list[str]]:
    """The text of every `h1` and `h2`, in order, without empty ones."""
    found: dict[str, list[LexborNode]] = {"h1": [], "h2": []}
    for node in tree.css("h1, h2"):
        found[node.tag or ""].append(node)
    return {level: list(_texts(nodes[:MAX_HEADINGS])) for level, nodes in found.items()}


def read_links(tree: "LexborHTMLParser", base: str) -> list[str]:
    """Where links lead: absolute, without fragment, each once, in order."""
    return list(dict.fromkeys([link for _, link in _anchors(tree, base)]))


def read_anchors(tree: "LexborHTMLParser", base: str, url: str) -> list[dict[str, Any]]:
    """Every link with its words and `rel`; `internal` when it stays on the page's host."""
    host = _host(url)
    return [
        {
            "url": link,
            "text": folded(node.text())[:_MAX_ANCHOR],
            "rel": clean(node.attributes.get("rel") or "").lower().split()[:10],
            "internal": _host(link) == host,
        }
        for node, link in _anchors(tree, base)
    ]


def read_images(tree: "LexborHTMLParser", base: str) -> list[dict[str, str | None]]:
    """Every image with its words; `alt` is None where there is no such attribute, and empty for decoration."""
    joiner = Joiner(base)
    return [image for node in tree.css("img")[:MAX_IMAGES] if (image := _image(node, joiner))]


def read_text_facts(tree: "LexborHTMLParser") -> dict[str, Any]:
    """How many words a reader sees, and a hash that stays the same when only the markup changes.

    The hash is SHA-256 of the words in lower case with single blanks between them; None for a page without words.
    Removes from the tree what is not seen.
    """
    body = drop_unseen(tree).body
    words = clean(body.text(separator=" ")).split() if body is not None else []
    text = " ".join(words).lower()
    return {
        "word_count": len(words),
        "text_hash": hashlib.sha256(text.encode()).hexdigest() if words else None,
    }


def drop_unseen(tree: "LexborHTMLParser") -> "LexborHTMLParser":
    """The same tree without what no reader sees.

    A box that is hidden by its style and has most of the page's words stays: a script would show it.
    """
    # Inner nodes come first: one that is gone with its parent must not be removed again.
    for node in reversed(tree.css(_UNSEEN)):
        if node.tag not in ("html", "body"):
            node.decompose()
    hidden = [node for node in tree.css(_HIDDEN) if node.tag not in ("html", "body")]
    if hidden and tree.body is not None:
        most = len(tree.body.text()) / 2
        for node in reversed(hidden):
            if len(node.text()) < most:
                node.decompose()
    return tree


def _texts(nodes: "list[LexborNode]") -> Iterator[str]:
    for node in nodes:
        text = folded(node.text())[:MAX_FIELD]
        if text:
            yield text


def _anchors(tree: "LexborHTMLParser", base: str) -> "Iterator[tuple[LexborNode, str]]":
    found, joiner = 0, Joiner(base)
    for node in tree.css("a[href], area[href]"):
        href = (node.attrs.get("href") or "").strip()  # `attributes` would read all of them
        link = None if href.startswith("#") else joiner.absolute(href)
        if link:
            yield node, link
            found += 1
            if found >= MAX_LINKS:
                return


def _image(node: "LexborNode", joiner: Joiner) -> dict[str, str | None] | None:
    attributes = node.attributes
    source = next((link for href in _sources(attributes) if (link := joiner.absolute(href))), None)
    if source is None:
        return None
    return {"url": source, "alt": folded(attributes["alt"] or "")[:MAX_FIELD] if "alt" in attributes else None}


def image_source(attributes: Mapping[str, str | None]) -> str | None:
    """The likeliest address of an image, as it is written; None if it has none but its own bytes."""
    return next(_sources(attributes), None)


def _sources(attributes: Mapping[str, str | None]) -> Iterator[str]:
    """The image's addresses, the likeliest first. Pages that load images late have a placeholder in `src`."""
    source = (attributes.get("src") or "").strip()
    late = [attributes.get(name) for name in ("data-src", "data-lazy-src", "data-original")]
    sets = [_largest(attributes.get(name) or "") for name in ("srcset", "data-srcset")]
    found = (each.strip() for each in (source, *late, *sets) if each)
    return (each for each in found if not each.startswith("data:"))


def _largest(srcset: str) -> str | None:
    """The address with the greatest width or density in `a.png 1x, b.png 2x`."""
    found = [(each[0], _size(each[1])) for each in _CANDIDATE.findall(srcset[:MAX_LINK])]
    return max(found, key=lambda each: each[1], default=(None, 0.0))[0]


def _size(descriptor: str) -> float:
    try:
        return float(descriptor[:-1] or 1)
    except ValueError:
        return 0.0


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
