"""A response as data, whatever kind of document it is."""

from typing import Any

from scrapeyard.builtin.pages.bounds import bounded
from scrapeyard.builtin.pages.kinds import HTML
from scrapeyard.builtin.pages.page import decode, read_page
from scrapeyard.builtin.pages.port import RawPage


def read_raw(page: RawPage) -> dict[str, Any]:
    """The fields of a response: those of `page.fields`, or those of its kind of document."""
    if page.kind != HTML:
        from scrapeyard.builtin.reading.documents.reader import read_document  # noqa: PLC0415 - few pages are one

        return read_document(page)
    whole = decode(page.body, page.encoding)
    source = bounded(whole)
    if page.task is not None:
        from scrapeyard.builtin.extraction.reading import read_task  # noqa: PLC0415 - few pages need it

        found = read_task(source, page)
    elif page.fields is None:
        found = read_page(source, page)
    else:
        from scrapeyard.builtin.pages.select import read_fields  # noqa: PLC0415 - few pages need it

        found = read_fields(source, page)
    if len(source) < len(whole):
        found["warnings"].insert(0, f"the page is read up to character {len(source):,} of {len(whole):,}")
    return found
