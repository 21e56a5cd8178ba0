"""Scrapy: one spider, retries, cookies, robots and logging off, so that it does no more than the others."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

from benchmarks.peers.crawl import Clock, errand, numbered

ERRAND = errand()
DONE = 0
CLOCK = Clock()


class Spider(scrapy.Spider):
    """Fetches the page as often as told."""

    name = "bench"

    async def start(self) -> AsyncIterator[Any]:
        """All requests; Scrapy holds back what is too much at once."""
        global CLOCK  # noqa: PLW0603 - Scrapy makes the spider itself
        CLOCK = Clock()
        for number in range(ERRAND.pages):
            yield scrapy.Request(numbered(ERRAND.url, number), dont_filter=True)

    def parse(self, response: Response, **_: Any) -> Iterator[dict[str, Any]]:
        """One page."""
        global DONE  # noqa: PLW0603
        DONE += 1
        if ERRAND.extract:
            yield {
                "title": response.css("title::text").get(),
                "description": response.css("meta[name=description]::attr(content)").get(),
                "h1": response.css("h1::text").get(),
                "canonical": response.css("link[rel=canonical]::attr(href)").get(),
                "links": [response.urljoin(link) for link in response.css("a::attr(href)").getall()],
                "items": [
                    {
                        "name": item.css(".name::text").get(),
                        "price": item.css(".price::text").get(),
                        "stock": item.css(".stock::text").get(),
                        "sku": item.attrib["data-sku"],
                    }
                    for item in response.css("article.product")
                ],
            }


process = CrawlerProcess(
    {
        "CONCURRENT_REQUESTS": ERRAND.concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": ERRAND.concurrency,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
    }
)
process.crawl(Spider)
process.start()
CLOCK.tell(DONE)
