"""Scrapy on a whole site: follows every link of the host, and writes five fields of each page to a CSV file."""

import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

URL, FILE, CONCURRENCY = sys.argv[1], sys.argv[2], int(sys.argv[3])


class Site(scrapy.Spider):
    """One host."""

    name = "site"
    start_urls = (URL,)
    allowed_domains = (urlsplit(URL).hostname,)

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        """A row, and what it links to; Scrapy's own filter leaves out what was seen."""
        yield {
            "url": response.url,
            "title": response.css("title::text").get(),
            "description": response.css("meta[name=description]::attr(content)").get(),
            "h1": response.css("h1::text").get(),
            "canonical": response.css("link[rel=canonical]::attr(href)").get(),
        }
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, self.parse)


process = CrawlerProcess(
    {
        "CONCURRENT_REQUESTS": CONCURRENCY,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "FEEDS": {FILE: {"format": "csv"}},
    }
)
process.crawl(Site)
process.start()
