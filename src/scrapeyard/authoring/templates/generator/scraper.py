"""{{name}}: a list over several pages, one record for each thing on it."""

from collections.abc import AsyncIterator
from typing import Any

from scrapeyard_sdk import Context, Fail


async def run(ctx: Context, url: str, max_pages: int = 10) -> AsyncIterator[dict[str, Any]]:
    for _ in range(max_pages):
        page = await ctx.fetch(url)
        if page.status != 200:
            raise Fail(f"{url} answered {page.status}")
        for title in page.texts("h2"):
            yield {"title": title, "found_on": page.url}
        following = page.links("a[rel=next]")
        if not following:
            return
        url = following[0]
    ctx.log("stopped before the last page", max_pages=max_pages)
