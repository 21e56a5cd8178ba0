"""The spider of the comparison as a scraper: Scrapy's engine in a sandboxed child, its pages through the worker."""

import json
import tempfile
from pathlib import Path

import uvloop

from benchmarks.peers.crawl import Clock, Errand, errand
from scrapeyard.cli.runs.local import open_yard
from scrapeyard.repository.scrapy.project import read_project
from scrapeyard.repository.scrapy.scrapers import write_scrapers
from scrapeyard.settings import HttpSettings, LimitSettings, LogSettings, Settings
from scrapeyard.telemetry.events import configure

SPIDER = """
import scrapy


class BenchSpider(scrapy.Spider):
    name = "bench"

    async def start(self):
        for number in range(int(self.pages)):
            yield scrapy.Request(f"{self.url}?n={number}", dont_filter=True)

    def parse(self, response):
        if self.extract == "True":
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
"""


async def main(work: Errand) -> None:
    """One run. The time is that of the crawl, as Scrapy tells it, without its start."""
    configure(LogSettings(level="error"))
    settings = Settings(http=HttpSettings(allow_private=True), limits=LimitSettings(fetches=1_000_000))
    crawl = {
        "CONCURRENT_REQUESTS": work.concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": work.concurrency,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "LOG_LEVEL": "ERROR",
    }
    with tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "bench.py").write_text(SPIDER, "utf-8")
        (scraper,) = write_scrapers(read_project(Path(folder) / "bench.py"), Path(folder) / "scrapers").folders
        manifest = scraper / "scraper.toml"  # Scrapy is among the packages of this machine
        manifest.write_text(manifest.read_text("utf-8").replace('requirements = ["scrapy', '#  ["scrapy'), "utf-8")
        async with open_yard(settings) as yard:
            given = {"url": work.url, "pages": work.pages, "extract": str(work.extract), "scrapy": {"settings": crawl}}
            clock = Clock()
            _, outcome = await yard.run(yard.load(scraper), given)
            if outcome.error is not None:
                raise SystemExit(outcome.error.message)
            (kept,) = [each for each in outcome.artifacts if each.name == "scrapy.json"]
            stats = json.loads(await yard.blobs.get(kept.key))["stats"]
            clock.tell(stats["response_received_count"], seconds=stats["elapsed_time_seconds"])


if __name__ == "__main__":
    uvloop.run(main(errand()))
