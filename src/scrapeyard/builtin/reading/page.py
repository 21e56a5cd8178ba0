"""A page as data: its head, headings, links, images, text, markdown, article, structured data, product."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from scrapeyard.builtin.reading.bounds import bounded
from scrapeyard.builtin.reading.port import DEFAULT, MAX_TEXT, RawPage
from scrapeyard_sdk.extract.article import read_article
from scrapeyard_sdk.extract.markdown import to_markdown
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

__all__ = ["MAX_FIELD", "MAX_LINKS", "decode", "extract_page", "read_page", "read_raw"]


def extract_page(
    html: bytes | str,
    url: str,
    *,
    encoding: str = "utf-8",
    include: Sequence[str] = DEFAULT,
    headers: Iterable[tuple[str, str]] = (),
    main_only: bool = True,
) -> dict[str, Any]:
    """All fields of a page. `url` makes links absolute; `encoding` is for bytes only.

    A field that the page lacks is None or empty; of `PARTS`, only those that `include` names are present. One that
    cannot be read is None, and `warnings` says why. `headers` are the response's, for `X-Robots-Tag`. `main_only`:
    whether `markdown` is the main part of the page, or all of it.
    """
    return read_page(bounded(decode(html, encoding)), url, include=include, headers=headers, main_only=main_only)


def read_raw(page: RawPage) -> dict[str, Any]:
    """As `extract_page`."""
    return extract_page(
        page.body,
        page.url,
        encoding=page.encoding,
        include=page.include,
        headers=page.headers,
        main_only=page.main_only,
    )


def read_page(
    source: str,
    url: str,
    *,
    include: Sequence[str] = DEFAULT,
    headers: Iterable[tuple[str, str]] = (),
    main_only: bool = True,
) -> dict[str, Any]:
    """As `extract_page`, for text that is within its bounds."""
    tree = LexborHTMLParser(source)
    base = base_of(tree, url)
    page = read_meta(tree, url, headers, base=base)
    page["headings"] = read_headings(tree)
    page["h1"] = next(iter(page["headings"]["h1"]), None)
    readers: dict[str, Callable[[], Any]] = {
        "links": lambda: read_links(tree, base),
        "anchors": lambda: read_anchors(tree, base, url),
        "images": lambda: read_images(tree, base),
        "structured": lambda: read_structured(tree, url),
        "product": lambda: _product(tree, url),
        "article": lambda: read_article(tree, url),
    }
    warnings: list[str] = []
    page |= {part: _read(part, read, warnings) for part, read in readers.items() if part in include}
    page |= read_text_facts(tree)  # from here on the tree is changed
    if "text" in include:
        page["text"] = _read("text", lambda: _text(tree), warnings)
    if "markdown" in include:
        page["markdown"] = _read("markdown", lambda: to_markdown(tree, base, whole=not main_only), warnings)
    return {**page, "warnings": warnings}


def _read(part: str, read: Callable[[], Any], warnings: list[str]) -> Any:
    """The part, or None and a warning: a fault in one part must not cost the others."""
    try:
        return read()
    except MemoryError:
        raise  # nothing else would succeed either
    except Exception as error:  # noqa: BLE001 - libraries raise their own on odd pages
        warnings.append(f"{part} could not be read: {type(error).__name__}: {str(error)[:200]}")
        return None


def decode(html: bytes | str, encoding: str) -> str:
    """Text that can be stored; bytes that do not fit the encoding become U+FFFD."""
    text = html.decode(encoding, "replace") if isinstance(html, bytes) else html
    # NUL and lone surrogates cannot be stored or sent as JSON. UTF-8 has no lone surrogates.
    text = text.replace("\0", "")
    if text.isascii() or (isinstance(html, bytes) and encoding.lower() in ("utf-8", "utf8")):
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _product(tree: LexborHTMLParser, url: str) -> dict[str, Any] | None:
    from scrapeyard_sdk.extract.product.product import read_product  # noqa: PLC0415 - its words of many languages load slowly

    return read_product(tree, url)


def _text(tree: LexborHTMLParser) -> str:
    return "\n".join(lines(tree.body, indent=True))[:MAX_TEXT] if tree.body is not None else ""
