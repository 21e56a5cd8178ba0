"""What is out of stock, from the shop's own JSON; the whole list is kept as an artifact."""

import csv
import io
from typing import Any

from scrapeyard_sdk import CheckFailed, Fail, Retry, Skip, SyncContext


def run(ctx: SyncContext, url: str, first_page: int = 1, pages: int = 1) -> dict[str, Any]:
    products: list[dict[str, Any]] = []
    for number in range(first_page, first_page + min(pages, ctx.config["most_pages"])):
        found = read_page(ctx, url, number)
        if found is None:
            break
        products += found
    if not products:
        raise Skip(f"the list has no page {first_page}")
    ctx.artifact("stock.csv", as_csv(products))
    gone = [{key: each[key] for key in ("sku", "title", "url")} for each in products if not each["in_stock"]]
    return {"checked": len(products), "in_stock": len(products) - len(gone), "out_of_stock": gone}


def read_page(ctx: SyncContext, url: str, number: int) -> list[dict[str, Any]] | None:
    """The products of one page; None behind the last."""
    page = ctx.fetch(url, params={"page": number} if number > 1 else None)
    if page.status in (429, 503):
        raise Retry(f"the shop is busy ({page.status})", after=ctx.config["busy_seconds"])
    if page.status == 404:
        return None
    if not page.ok:
        raise Fail(f"{page.url} answered {page.status}")
    items: list[dict[str, Any]] = page.json()["items"]
    return items


def as_csv(products: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["sku", "title", "price", "in_stock"], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(products)
    return text.getvalue()


def validate_result(result: dict[str, Any]) -> None:
    """A schema cannot add up; this can."""
    if result["in_stock"] + len(result["out_of_stock"]) != result["checked"]:
        raise CheckFailed("the counts do not add up", ["in_stock"])
