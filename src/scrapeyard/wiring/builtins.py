"""Puts all built-in scrapers together."""

from functools import cache
from typing import TYPE_CHECKING, Any

from scrapeyard.builtin import DOCUMENT, EXTRACT, MAP, SEARCH
from scrapeyard.builtin.fetching import Fetch
from scrapeyard.builtin.pages.port import Extractor
from scrapeyard.builtin.reading.processes import ProcessExtractor
from scrapeyard.builtin.reading.thread import ThreadExtractor
from scrapeyard.builtin.registry import (
    Builtin,
    make_browser_builtins,
    make_builtins,
    make_document,
    make_extract,
    make_map,
    make_search,
)
from scrapeyard.builtin.services import Run, Services, with_fetch
from scrapeyard.engines.http.site import Sites
from scrapeyard.settings import Settings
from scrapeyard.store.ports.operations import PatternStore
from scrapeyard.store.ports.store import Store
from scrapeyard.worker.attempts.drift import DriftWatch

if TYPE_CHECKING:
    from scrapeyard.builtin.extraction.book import PatternBook
    from scrapeyard.wiring.engine import Up


def all_builtins(
    extractor: Extractor | None = None, extract: Run | None = None, *, searches: bool = False
) -> dict[str, Builtin]:
    """By id. Without an extractor they read pages in a thread; a worker's read them in processes. `extract` is the code
    of `builtin/extract`; None: one that has no patterns and the default settings. `searches`: whether there is an
    engine for `builtin/search`."""
    reader = extractor or ThreadExtractor()
    run_extract = extract or lazy_ladder(reader, Settings())

    async def run_map(fetch: Fetch, given: dict[str, Any]) -> dict[str, Any]:
        from scrapeyard.inputs.site_map import MapScraper  # noqa: PLC0415 - loads slowly, and few runs list URLs

        return await MapScraper(reader)(fetch, given)

    async def run_document(services: Services, given: dict[str, Any]) -> dict[str, Any]:
        from scrapeyard.builtin.actions.document import DocumentScraper  # noqa: PLC0415 - loads slowly, for few

        return await DocumentScraper(reader, run_extract)(services, given)

    return {
        **make_builtins(reader),
        **make_browser_builtins(_run_actions, _run_replay),
        EXTRACT: make_extract(run_extract),
        DOCUMENT: make_document(run_document),
        MAP: make_map(with_fetch(run_map)),
        **({SEARCH: make_search()} if searches else {}),
    }


async def start_builtins(settings: Settings, store: Store, up: "Up") -> tuple[dict[str, Builtin], DriftWatch]:
    """Those of a worker, with what they need started by `up`; and the watch over what its scrapers find."""
    extractor = ProcessExtractor(settings.worker.page_readers_here)
    await up(extractor.start, extractor.stop)
    drift = DriftWatch(store.drift)
    await up(drift.start, drift.stop)
    book, extract = make_ladder(extractor, settings, store.patterns, drift)
    await up(book.start, book.stop)
    return all_builtins(extractor, extract, searches=settings.escalation.searches), drift


def make_ladder(
    extractor: Extractor,
    settings: Settings,
    patterns: PatternStore | None = None,
    drift: DriftWatch | None = None,
) -> tuple["PatternBook", Run]:
    """The patterns of a worker, which are to be stopped, and the code of `builtin/extract`."""
    from scrapeyard.builtin.extraction.book import PatternBook  # noqa: PLC0415 - loads slowly, for few
    from scrapeyard.builtin.extraction.ladder import Ladder  # noqa: PLC0415
    from scrapeyard.builtin.extraction.scraper import ExtractScraper  # noqa: PLC0415

    book = PatternBook(patterns, extractor, note=drift.note if drift is not None else None)
    return book, ExtractScraper(Ladder(extractor, book, settings.ai), Sites(settings.sites.whole_hosts))


def lazy_ladder(extractor: Extractor, settings: Settings) -> Run:
    """The code of `builtin/extract` for commands without a server, loaded when it first runs."""
    made = cache(lambda: make_ladder(extractor, settings)[1])

    async def run(services: Services, given: dict[str, Any]) -> dict[str, Any]:
        return await made()(services, given)

    return run


async def _run_actions(services: Services, given: dict[str, Any]) -> dict[str, Any]:
    from scrapeyard.builtin.actions.interpreter import run_actions  # noqa: PLC0415 - loads slowly, for few

    return await run_actions(services, given)


async def _run_replay(services: Services, given: dict[str, Any]) -> dict[str, Any]:
    from scrapeyard.builtin.replay.player import run_replay  # noqa: PLC0415 - as above

    return await run_replay(services, given)
