"""Products of a page that loads more while one scrolls. A browser scrolls; the page's own helpers read the result."""

from collections.abc import AsyncIterator
from typing import Any

from scrapeyard_sdk import Context, Fail

CARD = ".product-card"


async def run(ctx: Context, url: str, most: int = 1000) -> AsyncIterator[dict[str, Any]]:
    async with ctx.browser(block=["image", "font"]) as tab:
        answer = await tab.goto(url)
        if not answer.ok:
            raise Fail(f"{url} answered {answer.status}")
        await tab.wait_for_selector(CARD)
        grew = await tab.scroll(to="bottom", rounds=50)
        page = await tab.page()
    cards = page.css(CARD)[:most]
    ctx.log("scrolled to the end", grew=grew, products=len(cards))
    for card in cards:
        yield {
            "title": card.text("h2"),
            "price": card.text(".price"),
            "url": page.url_join(card["href"]),
        }
