"""What a page holds: headings, links, images, and its text as a count and a hash."""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapeyard_sdk.extract.lenient_json import clean
from scrapeyard_sdk.extract.meta import MAX_FIELD, Joiner, folded

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_LINKS = 5000
MAX_IMAGES = 2000
MAX_HEADINGS = 100
_MAX_ANCHOR = 300
_UNSEEN = "script, style, noscript, template, iframe, object, svg, canvas, head, [hidden]"


def read_headings(tree: "LexborHTMLParser") -> dict[str, list[str]]:
    """The text of every `h1` and `h2`, in order, without empty ones."""
    return {level: list(_headings(tree, level)) for level in ("h1", "h2")}


def read_links(tree: "LexborHTMLParser", base: str) -> list[str]:
    """Where links lead: absolute, without fragment, each once, in order."""
    return list(dict.fromkeys(link for _, link in _anchors(tree, base)))[:MAX_LINKS]


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
    """The same tree without what no reader sees."""
    for node in tree.css(_UNSEEN):
        if node.tag not in ("html", "body"):
            node.decompose()
    return tree


def _headings(tree: "LexborHTMLParser", level: str) -> Iterator[str]:
    for node in tree.css(level)[:MAX_HEADINGS]:
        text = folded(node.text())[:MAX_FIELD]
        if text:
            yield text


def _anchors(tree: "LexborHTMLParser", base: str) -> "Iterator[tuple[LexborNode, str]]":
    found, joiner = 0, Joiner(base)
    for node in tree.css("a[href], area[href]"):
        href = (node.attributes.get("href") or "").strip()
        link = None if href.startswith("#") else joiner.absolute(href)
        if link:
            yield node, link
            found += 1
            if found >= MAX_LINKS:
                return


def _image(node: "LexborNode", joiner: Joiner) -> dict[str, str | None] | None:
    attributes = node.attributes
    source = joiner.absolute(attributes.get("src") or attributes.get("data-src"))
    if source is None:
        return None
    return {"url": source, "alt": folded(attributes["alt"] or "")[:MAX_FIELD] if "alt" in attributes else None}


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
