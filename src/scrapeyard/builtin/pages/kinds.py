"""What kind of document a response is, by its content type and its first bytes. Imports nothing heavy."""

from typing import Final

HTML: Final = "html"
PDF: Final = "pdf"
DOCX: Final = "docx"
XLSX: Final = "xlsx"
FEED: Final = "feed"
XML: Final = "xml"
JSON: Final = "json"
CSV: Final = "csv"
TEXT: Final = "text"

_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_KINDS: Final = {
    "text/html": HTML,
    "application/xhtml+xml": HTML,
    "application/pdf": PDF,
    "application/x-pdf": PDF,
    f"{_OFFICE}wordprocessingml.document": DOCX,
    f"{_OFFICE}spreadsheetml.sheet": XLSX,
    "application/rss+xml": FEED,
    "application/atom+xml": FEED,
    "application/rdf+xml": FEED,
    "application/feed+json": JSON,
    "application/json": JSON,
    "text/json": JSON,
    "text/csv": CSV,
    "application/csv": CSV,
    "text/tab-separated-values": CSV,
    "application/xml": XML,
    "text/xml": XML,
}
_UNSAID: Final = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/download", "application/x-download"}
    | {"application/force-download", "application/zip", "application/x-zip-compressed"}
)
"""Types that servers give to files that they do not know."""
_HEAD: Final = 4096


def kind_of(content_type: str, body: bytes) -> str:
    """One of the kinds above; empty for what cannot be read."""
    media = content_type.split(";", 1)[0].strip().lower()
    if media in _UNSAID:
        return _sniffed(body, media)
    kind = _KINDS.get(media, "")
    if not kind:
        kind = JSON if media.endswith("+json") else XML if media.endswith("+xml") else ""
    if kind == XML and _is_feed(body):
        return FEED
    return kind or (TEXT if media.startswith("text/") else "")


def _sniffed(body: bytes, media: str) -> str:
    """By its first bytes. Without a content type only HTML and known files count: a text may be anything."""
    head = body[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"%PDF-"):
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return _packed(body)
    if head[:512].lower().startswith((b"<!doctype html", b"<html")):
        return HTML
    if head.startswith(b"<?xml") or _is_feed(body):
        return FEED if _is_feed(body) else XML
    return JSON if media and head.startswith((b"{", b"[")) else ""


def _packed(body: bytes) -> str:
    """What a zip file is, by the names of its members. It is opened only where it can do no harm."""
    return DOCX if b"word/document.xml" in body else XLSX if b"xl/workbook.xml" in body else ""


def _is_feed(body: bytes) -> bool:
    head = body[:_HEAD].lower()
    return any(mark in head for mark in (b"<rss", b"<feed", b"<rdf:rdf"))
