"""Prices of several products. A plain function: calls wait, and fetch_all gets many pages at once."""

from typing import Any

from scrapeyard_sdk import Fail, Page, SyncContext


def run(ctx: SyncContext, urls: list[str]) -> dict[str, Any]:
    if not urls:
        raise Fail("give at least one address in urls")
    batch = ctx.config.get("batch", 8)
    prices: list[dict[str, Any]] = []
    for start in range(0, len(urls), batch):
        if ctx.seconds_left() < 2:
            ctx.log("no time for the rest", done=len(prices), of=len(urls), level="warning")
            break
        prices += [price(page) for page in ctx.fetch_all(urls[start : start + batch])]
    found = [each["amount"] for each in prices if each["amount"] is not None]
    return {"prices": prices, "cheapest": min(found, default=None)}


def price(page: Page) -> dict[str, Any]:
    amount = page.attr(".product .price", "data-amount")
    return {
        "url": page.url,
        "status": page.status,
        "amount": float(amount) if amount else None,
        "currency": page.attr(".product .price", "data-currency"),
    }
