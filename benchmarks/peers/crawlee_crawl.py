"""Crawlee: its HTTP crawlers, in memory, with as much concurrency as the others."""

import asyncio
import logging
from datetime import timedelta
from typing import Any

from crawlee import ConcurrencySettings, Request
from crawlee.configuration import Configuration
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext, ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

from benchmarks.peers.crawl import Clock, errand, numbered

ERRAND = errand()


async def main() -> None:
    """Fetch the page as often as told."""
    done = 0
    settings: dict[str, Any] = {
        "storage_client": MemoryStorageClient(),
        "configuration": Configuration(purge_on_start=False),
        "concurrency_settings": ConcurrencySettings(
            min_concurrency=ERRAND.concurrency,
            max_concurrency=ERRAND.concurrency,
            desired_concurrency=ERRAND.concurrency,
        ),
        "max_request_retries": 0,
        "request_handler_timeout": timedelta(seconds=60),
        "configure_logging": False,
    }
    requests = [Request.from_url(numbered(ERRAND.url, number)) for number in range(ERRAND.pages)]
    if ERRAND.extract:
        parsing = ParselCrawler(**settings)

        @parsing.router.default_handler
        async def read(context: ParselCrawlingContext) -> None:
            nonlocal done
            page = context.selector
            done += bool(
                {
                    "title": page.css("title::text").get(),
                    "description": page.css("meta[name=description]::attr(content)").get(),
                    "h1": page.css("h1::text").get(),
                    "canonical": page.css("link[rel=canonical]::attr(href)").get(),
                    "links": page.css("a::attr(href)").getall(),
                    "items": [
                        (item.css(".name::text").get(), item.css(".price::text").get(), item.css(".stock::text").get())
                        for item in page.css("article.product")
                    ],
                }
            )

        clock = Clock()
        await parsing.run(requests)
    else:
        plain = HttpCrawler(**settings)

        @plain.router.default_handler
        async def take(context: HttpCrawlingContext) -> None:
            nonlocal done
            body = await context.http_response.read()
            done += len(body) > 0

        clock = Clock()
        await plain.run(requests)
    clock.tell(done)


logging.disable(logging.WARNING)
asyncio.run(main())
