"""What a scraper imports.

    from scrapeyard_sdk import Context, Retry

    async def run(ctx: Context, url: str) -> dict:
        page = await ctx.fetch(url)
        if page.status == 503:
            raise Retry("busy", after=30)
        return {"title": page.text("h1")}

Loading it needs the standard library alone.
"""

from scrapeyard_sdk.checks import CheckFailed, assert_fields_present, assert_html_contains
from scrapeyard_sdk.context import Context, SyncContext
from scrapeyard_sdk.outcomes import ArtifactError, Blocked, Fail, FetchError, Retry, Skip
from scrapeyard_sdk.page import Node, Page
from scrapeyard_sdk.registry import scraper

__all__ = [
    "ArtifactError",
    "Blocked",
    "CheckFailed",
    "Context",
    "Fail",
    "FetchError",
    "Node",
    "Page",
    "Retry",
    "Skip",
    "SyncContext",
    "assert_fields_present",
    "assert_html_contains",
    "scraper",
]
