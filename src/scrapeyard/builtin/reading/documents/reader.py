"""Documents that are not HTML, as the fields of a page: PDF, DOCX, XLSX, feeds, JSON, CSV and plain text.

A document that cannot be read has a warning and no values: none is guessed.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from scrapeyard.builtin.pages import kinds
from scrapeyard.builtin.pages.bounds import bounded
from scrapeyard.builtin.pages.page import read_page
from scrapeyard.builtin.pages.port import MAX_TEXT, RawPage
from scrapeyard.builtin.reading.documents.document import Document, DocumentRefused
from scrapeyard_sdk.extract.lenient_json import clean


def read_document(page: RawPage) -> dict[str, Any]:
    """The fields of a document, as `read_page` gives those of a page. Never raises for what the document has in it."""
    if page.fields is not None:
        return {"fields": None, "warnings": [f"the page is {page.kind}, not HTML: no field can be selected"]}
    try:
        found = _reader(page.kind)(page)
    except DocumentRefused as refusal:
        return {"warnings": [f"{page.kind}: {refusal}"]}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - libraries raise their own on broken documents
        return {"warnings": [f"{page.kind} could not be read: {type(error).__name__}: {str(error)[:200]}"]}
    return _fields(found, page)


def _reader(kind: str) -> Callable[[RawPage], Document]:
    if kind == kinds.PDF:
        from scrapeyard.builtin.reading.documents.pdf import read_pdf as read  # noqa: PLC0415 - one kind at a time
    elif kind == kinds.DOCX:
        from scrapeyard.builtin.reading.documents.office import read_docx as read  # noqa: PLC0415
    elif kind == kinds.XLSX:
        from scrapeyard.builtin.reading.documents.office import read_xlsx as read  # noqa: PLC0415
    elif kind == kinds.FEED:
        from scrapeyard.builtin.reading.documents.feed import read_feed as read  # noqa: PLC0415
    elif kind == kinds.JSON:
        from scrapeyard.builtin.reading.documents.plain import read_json_text as read  # noqa: PLC0415
    elif kind == kinds.CSV:
        from scrapeyard.builtin.reading.documents.plain import read_csv as read  # noqa: PLC0415
    else:
        from scrapeyard.builtin.reading.documents.plain import read_text as read  # noqa: PLC0415
    return read


def _fields(found: Document, page: RawPage) -> dict[str, Any]:
    if found.html:
        return _by_way_of_html(found, page)
    warnings = list(found.warnings)
    text = clean(found.text)
    words = text.split()
    parts = {
        "text": text,
        "markdown": clean(found.markdown or text),
        "links": found.links,
        "tables": found.tables,
        "data": found.data,
        "metadata": {"title": found.title, **found.metadata},
    }
    for name in ("text", "markdown"):
        if name in page.include and len(parts[name]) > MAX_TEXT:
            warnings.append(f"{name} has the first {MAX_TEXT:,} characters of {len(parts[name]):,}")
            parts[name] = parts[name][:MAX_TEXT]
    folded = " ".join(words).lower()
    return {
        "title": found.title,
        "word_count": len(words),
        "text_hash": hashlib.sha256(folded.encode()).hexdigest() if words else None,
        **{name: value for name, value in parts.items() if name in page.include},
        "warnings": warnings,
    }


def _by_way_of_html(found: Document, page: RawPage) -> dict[str, Any]:
    shown = tuple(name for name in page.include if name not in ("raw_html", "product", "structured", "article"))
    fields = read_page(bounded(clean(found.html)), replace(page, include=shown, main_only=False))
    return {**fields, "title": found.title or fields["h1"], "warnings": found.warnings + fields["warnings"]}
