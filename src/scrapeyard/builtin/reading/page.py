"""A page as data: its head, headings, links, images, text, markdown, article, structured data, product."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from html_to_markdown import ConversionError, ConversionOptions, PreprocessingOptions, convert
from selectolax.lexbor import LexborHTMLParser, LexborNode

from scrapeyard.builtin.reading.bounds import bounded
from scrapeyard.builtin.reading.port import DEFAULT, MAX_TEXT
from scrapeyard_sdk.extract.article import read_article
from scrapeyard_sdk.extract.page import (
    MAX_FIELD,
    MAX_LINKS,
    base_of,
    read_anchors,
    read_headings,
    read_images,
    read_links,
    read_meta,
    read_text_facts,
)
from scrapeyard_sdk.extract.structured import read_structured
from scrapeyard_sdk.text import lines

__all__ = ["MAX_FIELD", "MAX_LINKS", "decode", "extract_page", "read_page"]

MAX_MARKDOWN = 1_000_000
_MAX_HTML = 2_000_000
_PIECE = 64 * 1024
"""Characters converted at once. The converter holds the GIL; other threads run between pieces."""

_NOISE = 'nav, footer, aside, form, dialog, [role="navigation"], [role="banner"], [role="contentinfo"]'
_CONTAINERS = frozenset({"body", "main", "article", "section", "div"})


def to_markdown(tree: LexborHTMLParser, base: str) -> str:
    """Markdown of the page's main part, or of its whole body if none is marked. Changes the tree.

    Pages without text give an empty string, as do ones nested deeper than about a thousand elements.
    """
    root = _main(tree)
    if root is None:
        return ""
    for node in root.css(_NOISE):
        # css() also returns the root itself when it fits, and without it nothing would be left.
        if node.mem_id != root.mem_id:
            node.decompose()
    options = ConversionOptions(
        extract_metadata=False,
        preprocessing=PreprocessingOptions(preset="standard", remove_navigation=False, remove_forms=True),
        base_url=base,
    )
    pieces = (_convert(html, options) for html in _pieces(root))
    return "\n\n".join(piece.strip() for piece in pieces if piece.strip())[:MAX_MARKDOWN]


def _convert(html: str, options: ConversionOptions) -> str:
    try:
        return convert(html, options).content or ""
    except ConversionError:
        # The converter refuses what looks binary to it; the words are still worth having.
        return LexborHTMLParser(html).text(separator=" ", strip=True)


def _main(tree: LexborHTMLParser) -> LexborNode | None:
    marked = tree.css('main, [role="main"]') or tree.css("article")
    if len(marked) == 1 and marked[0].text(strip=True):
        return marked[0]
    return tree.body


def _pieces(root: LexborNode) -> Iterator[str]:
    piece, room = "", _MAX_HTML
    for html in _blocks(root, depth=0):
        room -= len(html)
        if room < 0:
            break
        if len(piece) + len(html) > _PIECE:
            yield piece
            piece = ""
        piece += html
    yield piece


def _blocks(node: LexborNode, depth: int) -> Iterator[str]:
    html = node.html or ""
    if len(html) <= _PIECE or node.tag not in _CONTAINERS or depth > 20:
        yield html
        return
    for child in node.iter(include_text=True):
        yield from _blocks(child, depth + 1)


def extract_page(
    html: bytes | str,
    url: str,
    *,
    encoding: str = "utf-8",
    include: Sequence[str] = DEFAULT,
    headers: Iterable[tuple[str, str]] = (),
) -> dict[str, Any]:
    """All fields of a page. `url` makes links absolute; `encoding` is for bytes only.

    A field that the page lacks is None or empty; of `PARTS`, only those that `include` names are present. `headers`
    are the response's, for `X-Robots-Tag`.
    """
    return read_page(bounded(decode(html, encoding)), url, include=include, headers=headers)


def read_page(
    source: str, url: str, *, include: Sequence[str] = DEFAULT, headers: Iterable[tuple[str, str]] = ()
) -> dict[str, Any]:
    """As `extract_page`, for text that is within its bounds."""
    tree = LexborHTMLParser(source)
    base = base_of(tree, url)
    page = read_meta(tree, url, headers)
    page["headings"] = read_headings(tree)
    page["h1"] = next(iter(page["headings"]["h1"]), None)
    page |= {part: read(tree, base, url) for part, read in _READERS.items() if part in include}
    page |= read_text_facts(tree)
    if "text" in include:
        page["text"] = _text(tree)
    if "markdown" in include:
        page["markdown"] = to_markdown(tree, base)
    return page


_READERS: dict[str, Callable[[LexborHTMLParser, str, str], Any]] = {
    "links": lambda tree, base, _: read_links(tree, base),
    "anchors": read_anchors,
    "images": lambda tree, base, _: read_images(tree, base),
    "structured": lambda tree, _, url: read_structured(tree, url),
    "product": lambda tree, _, url: _product(tree, url),
    "article": lambda tree, _, url: read_article(tree, url),
}
"""Parts that must be read before the tree is changed."""


def decode(html: bytes | str, encoding: str) -> str:
    """Text that can be stored; bytes that do not fit the encoding become U+FFFD."""
    text = html.decode(encoding, "replace") if isinstance(html, bytes) else html
    # NUL and lone surrogates cannot be stored or sent as JSON.
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _product(tree: LexborHTMLParser, url: str) -> dict[str, Any] | None:
    from scrapeyard_sdk.extract.product.product import read_product  # noqa: PLC0415 - its words of many languages load slowly

    return read_product(tree, url)


def _text(tree: LexborHTMLParser) -> str:
    return "\n".join(lines(tree.body))[:MAX_TEXT] if tree.body is not None else ""
