"""An extractor turns fetched bytes into fields, in a place where they can do no harm."""

from typing import Any, Protocol

from msgspec import Struct

from scrapeyard.errors import ScrapeyardError

PARTS = (
    *("markdown", "html", "raw_html", "text", "links", "anchors", "article", "metadata", "structured", "product"),
    *("images", "tables", "records", "next_page", "data"),
)
"""The large fields, which are present only on request: the input's `formats`."""
DEFAULT = ("links", "text", "markdown", "data")
FIELDS = (
    *("title", "description", "h1", "canonical", "language", "keywords", "robots", "hreflang", "opengraph", "twitter"),
    *("meta", "headings", "authors", "published", "modified", "word_count", "text_hash", "warnings"),
)
"""What every page has."""
MAX_TEXT = 1_000_000


class RawPage(Struct, frozen=True, kw_only=True):
    """A response from a site, and the fields to extract."""

    url: str
    """After redirects; makes links absolute."""
    body: bytes
    encoding: str
    kind: str = "html"
    """Of `scrapeyard.builtin.pages.kinds`."""
    headers: tuple[tuple[str, str], ...] = ()
    include: tuple[str, ...] = ()
    """Of `scrapeyard.builtin.pages.port.PARTS`."""
    main_only: bool | None = None
    """Whether `markdown` and `html` are the main part of the page, or all of it. None: the main part as `markdown`,
    unless `include_tags` chooses parts, and all of it as `html`."""
    include_tags: tuple[str, ...] = ()
    """CSS selectors of what is read of the body; empty: all of it."""
    exclude_tags: tuple[str, ...] = ()
    """CSS selectors of what is left out."""
    fields: dict[str, Any] | None = None
    """Selectors by field. If given, these are read and nothing else."""
    task: dict[str, Any] | None = None
    """Of `scrapeyard.builtin.extraction.reading`. If given, it is done and nothing else."""


class PageUnreadable(ScrapeyardError):
    """Reading the page exceeded its time or memory limit. Request fewer parts, or leave the page out."""

    code = "page_unreadable"


class Extractor(Protocol):
    """Reads pages. Never blocks the event loop for more than a few milliseconds."""

    async def extract(self, page: RawPage) -> dict[str, Any]:
        """The fields of a page, as `read_raw` gives them. Raises PageUnreadable."""
