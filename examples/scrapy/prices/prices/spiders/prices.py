from datetime import date
from pathlib import Path

import scrapy

from prices.items import PriceItem


class PricesSpider(scrapy.Spider):
    """The prices of the shelves that `wanted.txt` lists."""

    name = "prices"

    async def start(self):
        for shelf in Path("wanted.txt").read_text().split():
            yield scrapy.Request(f"http://127.0.0.1:8800/category/{shelf}", meta={"shelf": shelf})

    def parse(self, response):
        for card in response.css("a.product-card"):
            yield PriceItem(
                name=card.css("h2::text").get(),
                price=card.css(".price::text").re_first(r"[\d.]+"),
                shelf=response.meta["shelf"],
                seen=date(2026, 1, 2),
            )
        yield from response.follow_all(css="a[rel=next]", callback=self.parse, meta={"shelf": response.meta["shelf"]})
