"""A decorated function takes the place of a folder with a manifest."""

from typing import Any

from scrapeyard_sdk import Context, scraper


@scraper("package/headline", version="1.0.0", limits={"wall_seconds": 20})
async def headline(ctx: Context, url: str) -> dict[str, Any]:
    """The headline of a page."""
    page = await ctx.fetch(url)
    return {"url": page.url, "headline": page.raise_for_status().text("h1")}
