"""All products of a category. A generator: each `yield` is one record of the result."""

from collections.abc import AsyncIterator
from typing import Any

from scrapeyard_sdk import Context, Fail


async def run(ctx: Context, url: str, max_pages: int = 20) -> AsyncIterator[dict[str, Any]]:
    for number in range(1, max_pages + 1):
        page = await ctx.fetch(url)
        if page.status != 200:
            raise Fail(f"{url} answered {page.status}")
        titles, prices = page.texts(".product-card h2"), page.texts(".product-card .price")
        for title, price, link in zip(titles, prices, page.links(".product-card"), strict=True):
            yield {"title": title, "price": price, "url": link, "page": number}
        following = page.links("a[rel=next]")
        if not following:
            return
        url = following[0]
    ctx.log("stopped before the last page", max_pages=max_pages, level="warning")
