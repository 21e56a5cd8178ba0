"""An extractor turns fetched bytes into fields, in a place where they can do no harm."""

from typing import Any, Protocol

from msgspec import Struct

from scrapeyard.errors import ScrapeyardError

PARTS = ("links", "text", "markdown", "anchors", "images", "structured", "product", "article")
"""The large fields, which are present only on request."""
DEFAULT = ("links", "text", "markdown")
FIELDS = (
    *("title", "description", "h1", "canonical", "language", "keywords", "robots", "hreflang", "opengraph", "twitter"),
    *("meta", "headings", "word_count", "text_hash", "warnings"),
)
"""What every page has."""
MAX_TEXT = 1_000_000


class RawPage(Struct, frozen=True, kw_only=True):
    """A response from a site, and the fields to extract."""

    url: str
    """After redirects; makes links absolute."""
    body: bytes
    encoding: str
    headers: tuple[tuple[str, str], ...] = ()
    include: tuple[str, ...] = ()
    """Of `scrapeyard.builtin.reading.port.PARTS`."""
    main_only: bool = True
    """Whether `markdown` is the main part of the page, or all of it."""


class PageUnreadable(ScrapeyardError):
    """Reading the page exceeded its time or memory limit. Request fewer parts, or leave the page out."""

    code = "page_unreadable"


class Extractor(Protocol):
    """Reads pages. Never blocks the event loop for more than a few milliseconds."""

    async def extract(self, page: RawPage) -> dict[str, Any]:
        """The fields of an HTML page, as `extract_page` gives them. Raises PageUnreadable."""
