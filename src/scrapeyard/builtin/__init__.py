"""Built-in scrapers: our own code, run in the worker without a child."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from scrapeyard import __version__
from scrapeyard.builtin.page import INPUT_SCHEMA, OUTPUT_SCHEMA, Fetch, run_page
from scrapeyard.model import Scraper, ScraperRef

__all__ = ["BUILTINS", "PAGE", "Builtin"]

PAGE = "builtin/page"
"""What runs when a call gives only a URL."""


class Builtin(Struct, frozen=True, kw_only=True):
    """A scraper of ours and the code behind it."""

    scraper: Scraper
    run: Callable[[Fetch, dict[str, Any]], Awaitable[dict[str, Any]]]
    """Takes a way to fetch and an input that fits the schema. Raises FetchFailed."""


BUILTINS: dict[str, Builtin] = {
    PAGE: Builtin(
        scraper=Scraper(
            ref=ScraperRef(id=PAGE, version=__version__),
            folder=None,
            entry="",
            name="Page",
            description="One page: title, description, h1, canonical, links, text and markdown.",
            input_schema=INPUT_SCHEMA,
            output_schema=OUTPUT_SCHEMA,
        ),
        run=run_page,
    )
}
"""By id. `folder` is None: there are no files to load."""
