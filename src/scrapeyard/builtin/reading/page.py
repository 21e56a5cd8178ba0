"""A page as data: what its head says, headings, links, images, text, markdown, article, structured data, product.

Any bytes are taken: garbage gives empty fields, never an error. What is longer than its cap is cut. The readings
themselves are in the SDK, where scripts have them too.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from scrapeyard.builtin.reading.bounds import bounded
from scrapeyard.builtin.reading.markdown import to_markdown
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


def extract_page(
    html: bytes | str,
    url: str,
    *,
    encoding: str = "utf-8",
    include: Sequence[str] = DEFAULT,
    headers: Iterable[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Everything a page says of itself. `url` makes links absolute; `encoding` is for bytes only.

    A field the page does not have is None or empty; of `PARTS` only those are there that `include` names. `headers`
    are the answer's, for `X-Robots-Tag`.
    """
    return read_page(bounded(decode(html, encoding)), url, include=include, headers=headers)


def read_page(
    source: str, url: str, *, include: Sequence[str] = DEFAULT, headers: Iterable[tuple[str, str]] = ()
) -> dict[str, Any]:
    """The same for text that is within its bounds."""
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
"""What must be read while the tree is whole."""


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
