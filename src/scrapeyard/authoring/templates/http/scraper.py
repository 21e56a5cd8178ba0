"""{{name}}: one page, one result."""

from typing import Any

from scrapeyard_sdk import Context, Fail, Retry


async def run(ctx: Context, url: str) -> dict[str, Any]:
    page = await ctx.fetch(url)
    if page.status in (429, 503):
        raise Retry(f"the site is busy ({page.status})", after=10)
    if page.status != 200:
        raise Fail(f"{url} answered {page.status}")
    ctx.log("fetched", url=page.url)
    return {"url": page.url, "title": page.text("h1")}
