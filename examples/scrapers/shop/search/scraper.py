"""Several searches at once. One that fails is told in its place; the others go on."""

import asyncio
from typing import Any

from scrapeyard_sdk import Context, FetchError, Page, Retry


async def run(ctx: Context, url: str, queries: list[str], most: int = 5) -> dict[str, Any]:
    found = await asyncio.gather(*(search(ctx, url, query, most) for query in queries))
    answered = [each for each in found if each["problem"] is None]
    if queries and not answered:
        raise Retry("no search was answered", after=30)
    ctx.log("searched", queries=len(queries), answered=len(answered))
    return {"searches": found, "hits": sum(each["hits"] for each in answered)}


async def search(ctx: Context, url: str, query: str, most: int) -> dict[str, Any]:
    try:
        page = (await ctx.fetch(url, params={"q": query})).raise_for_status()
    except FetchError as error:
        ctx.log("a search failed", query=query, reason=error.reason, level="warning")
        return {"query": query, "hits": 0, "products": [], "problem": error.reason}
    return {"query": query, "hits": int(page.text(".hits") or 0), "products": products(page, most), "problem": None}


def products(page: Page, most: int) -> list[dict[str, Any]]:
    found = []
    for card in page.css(".product-card")[:most]:
        title, price = card.css_first("h2"), card.css_first(".price")
        found.append(
            {
                "title": title.text() if title else None,
                "price": price.text() if price else None,
                "url": page.url_join(card.attr("href") or ""),
            }
        )
    return found
