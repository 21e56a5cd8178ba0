"""What a scraper imports.

    from scrapeyard_sdk import Context, Retry

    async def run(ctx: Context, url: str) -> dict:
        page = await ctx.fetch(url)
        if page.status == 503:
            raise Retry("busy", after=30)
        return {"title": page.text("h1")}

Loading it needs the standard library alone.
"""

from scrapeyard_sdk import registry
from scrapeyard_sdk.base import (
    BaseHttpScraper,
    BasePlaywrightScraper,
    BaseScraper,
    extract_text,
    parse_html,
    select_one,
)
from scrapeyard_sdk.checks import CheckFailed, assert_fields_present, assert_html_contains
from scrapeyard_sdk.context import Context, SyncContext
from scrapeyard_sdk.node import Node, Selection
from scrapeyard_sdk.outcomes import (
    ArtifactError,
    Blocked,
    BrowserError,
    EnqueueError,
    Fail,
    FetchError,
    Retry,
    ScraperError,
    Skip,
    StateError,
)
from scrapeyard_sdk.page import Page
from scrapeyard_sdk.registry import scraper

__all__ = [
    "ArtifactError",
    "BaseHttpScraper",
    "BasePlaywrightScraper",
    "BaseScraper",
    "Blocked",
    "BrowserError",
    "CheckFailed",
    "Context",
    "EnqueueError",
    "Fail",
    "FetchError",
    "Node",
    "Page",
    "Retry",
    "ScraperError",
    "Selection",
    "Skip",
    "StateError",
    "SyncContext",
    "assert_fields_present",
    "assert_html_contains",
    "extract_text",
    "parse_html",
    "registry",
    "scraper",
    "select_one",
]
