"""A page as data: its head, headings, links, images, text, markdown, article, structured data, product."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from scrapeyard.builtin.pages.bounds import bounded
from scrapeyard.builtin.pages.clean_html import clean_html, narrowed
from scrapeyard.builtin.pages.port import DEFAULT, MAX_TEXT, RawPage
from scrapeyard.builtin.pages.tables import tables_of
from scrapeyard_sdk.extract.article import read_article
from scrapeyard_sdk.extract.credits import read_credits
from scrapeyard_sdk.extract.lists import read_next_page, read_records
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
    main_only: bool | None = None,
) -> dict[str, Any]:
    """All fields of an HTML page. `url` makes links absolute; `encoding` is for bytes only.

    A field that the page lacks is None or empty; of `PARTS`, only those that `include` names are present. One that
    cannot be read is None, and `warnings` says why. `headers` are the response's, for `X-Robots-Tag`. `main_only` is
    as in `RawPage`.
    """
    body = html if isinstance(html, bytes) else b""
    page = RawPage(
        url=url, body=body, encoding=encoding, headers=tuple(headers), include=tuple(include), main_only=main_only
    )
    return read_page(bounded(decode(html, encoding)), page)


def read_page(source: str, page: RawPage) -> dict[str, Any]:
    """As `extract_page`, for text that is within its bounds. The body of `page` is not looked at."""
    url, include, warnings = page.url, page.include, list[str]()
    tree = LexborHTMLParser(source)
    base = base_of(tree, url)
    head = read_meta(tree, url, page.headers, base=base)
    head |= read_credits(tree, url)
    head["headings"] = read_headings(tree)
    head["h1"] = next(iter(head["headings"]["h1"]), None)
    readers: dict[str, Callable[[], Any]] = {
        "metadata": lambda: dict(head),
        "data": lambda: None,  # HTML is none
        "raw_html": lambda: source,
        "structured": lambda: read_structured(tree, url),
        "product": lambda: _product(tree, url),
        "article": lambda: read_article(part, url),
        "links": lambda: read_links(part, base),
        "anchors": lambda: read_anchors(part, base, url),
        "images": lambda: read_images(part, base),
        "tables": lambda: tables_of(part, warnings),
        "records": lambda: _records(part, url),
        "next_page": lambda: read_next_page(tree, url),
        "html": lambda: clean_html(part.html or "", base, main_only=bool(page.main_only)),
    }
    part = narrowed(tree, page.include_tags, page.exclude_tags, warnings)
    found = {name: _read(name, read, warnings) for name, read in readers.items() if name in include}
    found |= read_text_facts(part)  # from here on the tree is changed
    if "text" in include:
        found["text"] = _read("text", lambda: _text(part), warnings)
    if "markdown" in include:
        from scrapeyard_sdk.extract.markdown import to_markdown  # noqa: PLC0415 - a server that reads no pages needs none

        whole = bool(page.include_tags) if page.main_only is None else not page.main_only
        found["markdown"] = _read("markdown", lambda: to_markdown(part, base, whole=whole), warnings)
    _cut(found, warnings)
    return {**head, **found, "warnings": warnings}


def _cut(found: dict[str, Any], warnings: list[str]) -> None:
    """Cut what is too long, and say so."""
    for name in ("raw_html", "html", "text"):
        text = found.get(name)
        if text is not None and len(text) > MAX_TEXT:
            found[name] = text[:MAX_TEXT]
            warnings.append(f"{name} has the first {MAX_TEXT:,} characters of {len(text):,}")


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


def _records(tree: LexborHTMLParser, url: str) -> dict[str, Any] | None:
    found = read_records(tree, url)
    if found is None:
        return None
    return {"records": found.records, "columns": found.columns, "more_button": found.more_button}


def _text(tree: LexborHTMLParser) -> str:
    return "\n".join(lines(tree.body, indent=True)) if tree.body is not None else ""
