"""One product page of the practice shop."""

from typing import Any

from scrapeyard_sdk import Blocked, Context, Fail, Retry, Skip, assert_fields_present


async def run(ctx: Context, url: str) -> dict[str, Any]:
    page = await ctx.fetch(url)
    if page.status in (429, 503):
        raise Retry(f"the shop is busy ({page.status})", after=5)
    if page.status == 403:
        raise Blocked("the shop refuses us")
    if page.status == 404:
        raise Skip("there is no such product")
    if page.status != 200 or page.css_first("article.product") is None:
        raise Fail(f"{url} is not a product page")
    product = {
        "url": page.url,
        "sku": page.text(".sku"),
        "title": page.text("h1"),
        "price": float(page.attr(".product .price", "data-amount") or 0),
        "currency": page.attr(".product .price", "data-currency"),
        "in_stock": page.text(".availability") == "In stock",
        "rating": float(page.text(".rating") or 0) or None,
        "brand": page.text(".brand"),
        "description": page.text(".description"),
        "breadcrumbs": page.texts(".crumbs li"),
    }
    assert_fields_present(product, "sku", "title", "price", "currency")
    ctx.log("read a product", sku=product["sku"], price=product["price"])
    return product
