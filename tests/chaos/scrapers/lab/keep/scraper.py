"""Keeps a page as an artifact."""

from typing import Any

from scrapeyard_sdk import Context


async def run(ctx: Context, url: str) -> dict[str, Any]:
    page = await ctx.fetch(url)
    await ctx.artifact("page.html", page.body, "text/html")
    ctx.log("kept a page", bytes=len(page.body))
    print("on stdout")  # noqa: T201  what a script prints is kept with its logs
    return {"bytes": len(page.body)}
