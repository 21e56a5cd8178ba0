"""A page as data: title, description, heading, canonical address, links, text, markdown, language.

Any bytes are taken: garbage gives empty fields, never an error. What is longer than its cap is cut.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urldefrag, urljoin

from selectolax.lexbor import LexborHTMLParser

from scrapeyard.extract.bounds import bounded
from scrapeyard.extract.markdown import to_markdown
from scrapeyard_sdk.text import lines

FORMATS = ("links", "text", "markdown")
MAX_LINKS = 5000
MAX_LINK = 4096
MAX_FIELD = 2000
MAX_TEXT = 1_000_000

_UNSEEN = "script, style, noscript, template, iframe, object, svg, canvas, head, [hidden]"


def extract_page(
    html: bytes | str, url: str, *, encoding: str = "utf-8", formats: Sequence[str] = FORMATS
) -> dict[str, Any]:
    """Everything a page says of itself. `url` makes links absolute; `encoding` is for bytes only.

    A field the page does not have is None; `links`, `text` and `markdown` are there only if `formats` names them.
    """
    tree = LexborHTMLParser(bounded(_decode(html, encoding)))
    base = _base(tree, url)
    page: dict[str, Any] = {
        "title": _field(tree, "title"),
        "description": _meta(tree, "description"),
        "h1": _field(tree, "h1"),
        "canonical": _absolute(base, _attribute(tree, 'link[rel~="canonical" i]', "href")),
        "language": _language(tree),
    }
    if "links" in formats:
        page["links"] = list(_links(tree, base))
    if "text" in formats or "markdown" in formats:
        for node in tree.css(_UNSEEN):
            node.decompose()
    if "text" in formats:
        page["text"] = _text(tree)
    if "markdown" in formats:
        page["markdown"] = to_markdown(tree, base)
    return page


def _decode(html: bytes | str, encoding: str) -> str:
    text = html.decode(encoding, "replace") if isinstance(html, bytes) else html
    # NUL and lone surrogates cannot be stored or sent as JSON.
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _base(tree: LexborHTMLParser, url: str) -> str:
    return _absolute(url, _attribute(tree, "base[href]", "href")) or url


def _attribute(tree: LexborHTMLParser, selector: str, name: str) -> str | None:
    node = tree.css_first(selector)
    value = node.attributes.get(name) if node is not None else None
    return value.strip() or None if value else None


def _field(tree: LexborHTMLParser, selector: str) -> str | None:
    node = tree.css_first(selector)
    return _folded(node.text())[:MAX_FIELD] or None if node is not None else None


def _meta(tree: LexborHTMLParser, name: str) -> str | None:
    for selector in (f'meta[name="{name}" i]', f'meta[property="og:{name}" i]'):
        value = _attribute(tree, selector, "content")
        if value:
            return _folded(value)[:MAX_FIELD]
    return None


def _language(tree: LexborHTMLParser) -> str | None:
    said = _attribute(tree, "html[lang]", "lang") or _attribute(
        tree, 'meta[http-equiv="content-language" i]', "content"
    )
    return said.split(",")[0].strip()[:35] or None if said else None


def _links(tree: LexborHTMLParser, base: str) -> Iterator[str]:
    seen: set[str] = set()
    for node in tree.css("a[href], area[href]"):
        href = (node.attributes.get("href") or "").strip()
        link = None if href.startswith("#") else _absolute(base, href)
        if link and link not in seen:
            seen.add(link)
            yield link
            if len(seen) >= MAX_LINKS:
                return


def _absolute(base: str, href: str | None) -> str | None:
    if not href or len(href) > MAX_LINK:
        return None
    try:
        link = urldefrag(urljoin(base, "".join(href.split("\n")))).url
    except ValueError:
        return None
    return link if link.startswith(("http://", "https://")) else None


def _text(tree: LexborHTMLParser) -> str:
    return "\n".join(lines(tree.body))[:MAX_TEXT] if tree.body is not None else ""


def _folded(text: str) -> str:
    return " ".join(text.split())
