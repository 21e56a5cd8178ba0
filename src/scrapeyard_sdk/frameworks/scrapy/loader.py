"""Finds a spider among the modules of a project, and keeps those modules from starting crawls of their own."""

import importlib
import pkgutil
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

import scrapy.crawler
from scrapy import Spider
from scrapy.settings import Settings
from scrapy.utils.misc import load_object
from scrapy.utils.spider import iter_spider_classes
from twisted.internet.defer import Deferred

from scrapeyard_sdk.context import Context
from scrapeyard_sdk.outcomes import ScraperError

_USUAL = "scrapy.spiderloader.SpiderLoader"
_STARTERS = ("AsyncCrawlerProcess", "AsyncCrawlerRunner", "CrawlerProcess", "CrawlerRunner")


def load_spider(settings: Settings, name: str, ctx: Context) -> type[Spider]:
    """The class of the spider. A module that cannot be imported is warned of, and does not stop the other spiders.

    Raises what such a module raised if the spider is not in the others, and ScraperError if no module failed.
    """
    for starter in _STARTERS:
        if hasattr(scrapy.crawler, starter):
            setattr(scrapy.crawler, starter, _InertProcess)
    _InertProcess.ctx = ctx
    loader = settings.get("SPIDER_LOADER_CLASS", _USUAL)
    if loader != _USUAL and not str(getattr(loader, "__module__", "")).startswith("scrapy."):
        own: type[Spider] = load_object(loader).from_settings(settings.frozencopy()).load(name)
        return own
    failures: list[tuple[str, BaseException]] = []
    found = None
    for top in settings.getlist("SPIDER_MODULES"):
        for module in _modules(top, failures):
            found = next((each for each in iter_spider_classes(module) if each.name == name), found)
    if found is None:
        raise failures[0][1] if failures else ScraperError(f"the project has no spider called {name}")
    for module_name, error in failures:
        ctx.log(f"{module_name} cannot be imported: {type(error).__name__}: {error}", "warning")
    if hasattr(found, "start_requests") and not hasattr(Spider, "start_requests") and found.start is Spider.start:
        found.start = _start_as_before
    spider: type[Spider] = found
    return spider


async def _start_as_before(spider: Any) -> AsyncIterator[Any]:
    """What `start_requests` gives: from 2.16 on, Scrapy ignores it without a word."""
    for each in spider.start_requests():
        yield each


def _modules(name: str, failures: list[tuple[str, BaseException]]) -> Iterator[ModuleType]:
    """A module and all below it."""
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a project's module may raise anything
        failures.append((name, error))
        return
    yield module
    for each in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield from _modules(f"{name}.{each.name}", failures)


class _InertProcess:
    """Stands for CrawlerProcess and CrawlerRunner: a file that crawls when it is imported does nothing instead."""

    ctx: Context

    def __init__(self, settings: Any = None, *_: Any, **_more: Any) -> None:
        self.settings = settings

    def crawl(self, *_: Any, **_more: Any) -> "Deferred[Any]":
        """Nothing; the run crawls."""
        self.ctx.log("the project's own call of crawl() is ignored: this run crawls the spider", "warning")
        return Deferred()

    def start(self, *_: Any, **_more: Any) -> None:
        """Nothing."""

    def join(self) -> "Deferred[Any]":
        """Never done: what would follow is for after the crawl."""
        return Deferred()

    stop = start
