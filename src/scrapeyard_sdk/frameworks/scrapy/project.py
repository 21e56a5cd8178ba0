"""Runs one spider of a project with Scrapy's own engine, on the loop of the script."""

import asyncio
import io
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.exporters import JsonLinesItemExporter
from scrapy.http import Request
from scrapy.utils.log import configure_logging
from twisted.internet import asyncioreactor

from scrapeyard_sdk.context import Context
from scrapeyard_sdk.frameworks.scrapy import folder
from scrapeyard_sdk.frameworks.scrapy.download import handler_for
from scrapeyard_sdk.frameworks.scrapy.loader import load_spider
from scrapeyard_sdk.frameworks.scrapy.report import Report
from scrapeyard_sdk.frameworks.scrapy.settings import (
    add_given,
    as_text,
    force,
    missing_variable,
    read_settings,
    set_environment,
    skip_pipelines,
)
from scrapeyard_sdk.outcomes import ScraperError

RESERVED = "scrapy"
"""Field of the input that is not for the spider: `settings`, `request`, `start_requests`, `max_requests`."""
_REACTOR = "twisted.internet.reactor"
_MARGIN_SECONDS = 5.0
"""A crawl is closed so long before the run's time is over, so that pipelines can finish."""
_END = object()


class ScrapyProject:
    """A project in the folder `project` beside the script. Make it at the top of the script, for all of its runs."""

    def __init__(
        self, script: str, *, settings: str = "", modules: tuple[str, ...] = (), given: Mapping[str, Any] | None = None
    ) -> None:
        """`settings` is the settings module. A project without one has `modules` with spiders, and `given` settings."""
        self._folder = Path(script).parent / "project"
        self._settings = settings
        self._modules = modules
        self._given = given or {}
        if getattr(sys.modules.get("scraper"), "__file__", "") == script:
            del sys.modules["scraper"]  # many projects have a package of this name
        if not any(isinstance(finder, _NoReactor) for finder in sys.meta_path):
            sys.meta_path.insert(0, _NoReactor())

    async def crawl(self, ctx: Context, spider: str) -> AsyncIterator[dict[str, Any]]:
        """The items of one crawl, as they come. Raises Fail if too much failed; see `report`."""
        report = Report(ctx)
        set_environment(ctx.config.get("environment") or {})
        with folder.entered(self._folder) as beside:
            _install_reactor(asyncio.get_running_loop())
            crawl = _Crawl(ctx, report, self._crawler(ctx, report, spider))
            async for item in crawl.items():
                yield item
            await folder.keep_files(ctx, self._folder, beside)
        await report.keep(spider, crawl.reason, crawl.stats())
        report.conclude(crawl.stats())

    def _crawler(self, ctx: Context, report: Report, spider: str) -> "_SteeredCrawler":
        asked = _asked(ctx)
        try:
            settings = read_settings(self._settings, self._modules, self._given)
            found = load_spider(settings, spider, ctx)
        except KeyError as error:
            if not (name := missing_variable(error)):
                raise
            words = f"the project reads the environment variable {name}; set it in [config.environment] of the manifest"
            raise ScraperError(words) from error
        found.update_settings(settings)  # before Scrapy 2.11, a crawler's settings cannot be changed
        add_given(settings, ctx.config.get("settings") or {}, asked.get("settings") or {})
        skip_pipelines(settings, ctx.config.get("skip_pipelines") or [], ctx)
        crawler: _SteeredCrawler

        def stop(reason: str) -> None:
            crawler.close(reason)

        force(settings, handler_for(ctx, stop), ctx)
        crawler = _SteeredCrawler(found, settings, asked)
        configure_logging(crawler.settings, install_root_handler=False)
        report.listen(crawler.settings.get("LOG_LEVEL"))
        return crawler


def _asked(ctx: Context) -> dict[str, Any]:
    asked = ctx.input.get(RESERVED) or {}
    if not isinstance(asked, dict):
        raise ScraperError(f"input.{RESERVED} must be an object", "invalid_input")
    return asked


class _NoReactor:
    """Keeps the parent of the children from making a reactor, which would be bound to the parent's descriptors."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Raises ImportError for the reactor in this very process; knows no other module."""
        if name == _REACTOR and os.getpid() == self._pid:
            raise ImportError(f"{name} is imported in a run only")


def _install_reactor(loop: asyncio.AbstractEventLoop) -> None:
    """Start Twisted's reactor on a loop that runs already. Does nothing the second time."""
    reactor = sys.modules.get(_REACTOR)
    if getattr(reactor, "_asyncioEventloop", None) is loop:
        return
    sys.modules.pop(_REACTOR, None)
    asyncioreactor.install(loop)
    reactor = sys.modules[_REACTOR]
    reactor.startRunning(installSignalHandlers=False)
    reactor.run = _run_nothing  # type: ignore[attr-defined] # a file may call it when it is imported


def _run_nothing(*_: Any, **_more: Any) -> None:
    """The reactor runs already."""


class _SteeredCrawler(Crawler):  # type: ignore[misc]
    """A crawler that may leave out the start requests, or add one request at the end, as scrapyrt does."""

    def __init__(self, spider: type[Spider], settings: Any, asked: dict[str, Any]) -> None:
        super().__init__(spider, settings)
        self._asked = asked
        self._request = asked.get("request")
        self._scheduled = 0
        self.stopped = ""
        """Why the platform ended the crawl; empty if it did not."""
        self.fault: ScraperError | None = None
        """What is wrong with the call; Scrapy only logs what a receiver of a signal raises."""
        self.signals.connect(self._on_idle, signals.spider_idle)
        self.signals.connect(self._on_scheduled, signals.request_scheduled)

    def close(self, reason: str) -> None:
        """End the crawl: running requests finish, and pipelines are closed."""
        engine = getattr(self, "_engine", None) or getattr(self, "engine", None)
        if engine is None or self.spider is None or self.stopped:
            return
        self.stopped = reason
        _ended(engine, self.spider, reason)

    def _create_spider(self, *args: Any, **kwargs: Any) -> Spider:
        spider = super()._create_spider(*args, **kwargs)
        if self._request is not None and not self._asked.get("start_requests"):
            spider.start, spider.start_requests = _no_start, tuple
        return spider

    def _on_idle(self, spider: Spider) -> None:
        if self._request is None:
            return
        given, self._request = self._request, None
        try:
            request = _request(spider, dict(given))
        except ScraperError as error:
            self.fault = error
            return
        modify = getattr(spider, "modify_realtime_request", None)
        self.engine.crawl(modify(request) if callable(modify) else request)
        raise DontCloseSpider

    def _on_scheduled(self, spider: Spider) -> None:
        most = int(self._asked.get("max_requests") or 0)
        if most and self._scheduled >= most:
            _ended(self.engine, spider, f"stop generating requests, only {most} requests allowed")
        self._scheduled += 1


def _ended(engine: Any, spider: Spider, reason: str) -> None:
    if hasattr(engine, "close_spider_async"):
        asyncio.ensure_future(engine.close_spider_async(reason=reason)).add_done_callback(_heard)
    else:
        engine.close_spider(spider, reason)


def _heard(task: "asyncio.Future[Any]") -> None:
    """A spider that is closed twice is no fault."""
    if not task.cancelled():
        task.exception()


async def _no_start() -> AsyncIterator[Any]:
    return
    yield


def _request(spider: Spider, given: dict[str, Any]) -> Request:
    """The request that a call asks for. Raises ScraperError if it is none, or names no method of the spider."""
    callback, errback = (given.pop(name, None) for name in ("callback", "errback"))
    methods = {"callback": callback or "parse", **({"errback": errback} if errback else {})}
    try:
        named = {kind: getattr(spider, str(name)) for kind, name in methods.items()}
        return Request(**{**given, **named, "dont_filter": True})
    except (AttributeError, TypeError, ValueError) as error:
        raise ScraperError(f"input.{RESERVED}.request: {error}", "invalid_input") from None


class _Crawl:
    """One crawl, whose items come as a stream."""

    def __init__(self, ctx: Context, report: Report, crawler: _SteeredCrawler) -> None:
        self._ctx = ctx
        self._report = report
        self._crawler = crawler
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._exporter: Any = None
        self._written = io.BytesIO()
        self.reason = ""
        for receive, signal in (
            (self._on_item, signals.item_scraped),
            (self._on_dropped, signals.item_dropped),
            (self._on_closed, signals.spider_closed),
        ):
            crawler.signals.connect(receive, signal)

    async def items(self) -> AsyncIterator[dict[str, Any]]:
        """Crawl. Raises what stands in the way of the spider's start."""
        loop = asyncio.get_running_loop()
        seconds = self._ctx.seconds_left()
        timer = loop.call_later(max(0.0, seconds - min(_MARGIN_SECONDS, seconds / 4)), self._crawler.close, "timeout")
        done = self._crawler.crawl(**_arguments(self._ctx)).asFuture(loop)
        done.add_done_callback(lambda _: self._queue.put_nowait(_END))
        try:
            while (item := await self._queue.get()) is not _END:
                yield item
        finally:
            timer.cancel()
        self._report.stopped = self._crawler.stopped
        await done
        if self._crawler.fault is not None:
            raise self._crawler.fault

    def stats(self) -> dict[str, Any]:
        """Scrapy's own statistics."""
        return dict(self._crawler.stats.get_stats())

    def _on_item(self, item: Any) -> None:
        record = self._plain(item)
        if record is not None:
            self._report.items += 1
            self._queue.put_nowait(record)
            pages = self._crawler.stats.get_value("response_received_count", 0)
            self._ctx.progress(self._report.items, message=f"{pages} pages")

    def _on_dropped(self, item: Any, exception: Exception) -> None:
        self._report.drop(self._plain(item), exception)

    def _on_closed(self, reason: str) -> None:
        self.reason = reason

    def _plain(self, item: Any) -> dict[str, Any] | None:
        """The item as Scrapy's feeds write it; None for one that no feed could write."""
        fields = self._crawler.settings.get("FEED_EXPORT_FIELDS") or None
        self._exporter = self._exporter or JsonLinesItemExporter(self._written, fields_to_export=fields)
        self._written.seek(0)
        self._written.truncate()
        try:
            self._exporter.export_item(item)
            record: dict[str, Any] = json.loads(self._written.getvalue())
        except (TypeError, ValueError, RecursionError) as error:
            self._report.fail(f"an item cannot be written as JSON: {error}")
            return None
        return record


def _arguments(ctx: Context) -> dict[str, Any]:
    """The spider's arguments: text, as with `-a`, except those that the manifest says to pass as they are."""
    typed = ctx.config.get("typed_arguments") or ()
    given = {name: value for name, value in ctx.input.items() if name != RESERVED}
    return {name: value if name in typed else as_text(value) for name, value in given.items()}
