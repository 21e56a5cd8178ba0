"""The main text of a page, and who wrote it when. By trafilatura, where it is installed."""

from importlib import import_module
from typing import Any

from scrapeyard_sdk.extract.lenient_json import clean

MAX_HTML = 2_000_000
"""Characters looked at."""
MAX_TEXT = 1_000_000
_FIELDS = ("title", "author", "date", "language", "description", "sitename", "image")


def read_article(html: str, url: str) -> dict[str, Any] | None:
    """The page's main text without what surrounds it; None for a page that has none.

    Raises RuntimeError, which says what to do, where trafilatura is not installed.
    """
    try:
        trafilatura = import_module("trafilatura")
    except ImportError:
        raise RuntimeError(
            "article needs trafilatura, which this environment has not; add it to the scraper's requirements"
        ) from None
    found = trafilatura.bare_extraction(
        html[:MAX_HTML], url=url, with_metadata=True, include_comments=False, include_formatting=False
    )
    text = clean(found.text or "")[:MAX_TEXT] if found is not None else ""
    if not text:
        return None
    said = {name: clean(str(getattr(found, name)))[:2000] if getattr(found, name) else None for name in _FIELDS}
    tags = [clean(str(tag))[:200] for tag in (*(found.categories or ()), *(found.tags or ()))][:50]
    return {**said, "tags": tags, "text": text}
