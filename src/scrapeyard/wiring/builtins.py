"""Puts all built-in scrapers together."""

from typing import Any

from scrapeyard.builtin import MAP
from scrapeyard.builtin.fetching import Fetch
from scrapeyard.builtin.pages.port import Extractor
from scrapeyard.builtin.reading.thread import ThreadExtractor
from scrapeyard.builtin.registry import Builtin, make_builtins, make_map
from scrapeyard.builtin.services import with_fetch


def all_builtins(extractor: Extractor | None = None) -> dict[str, Builtin]:
    """By id. Without an extractor they read pages in a thread; a worker's read them in processes."""
    reader = extractor or ThreadExtractor()

    async def run_map(fetch: Fetch, given: dict[str, Any]) -> dict[str, Any]:
        from scrapeyard.inputs.site_map import MapScraper  # noqa: PLC0415 - loads slowly, and few runs list URLs

        return await MapScraper(reader)(fetch, given)

    return {**make_builtins(reader), MAP: make_map(with_fetch(run_map))}
