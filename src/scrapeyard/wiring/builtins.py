"""Puts all built-in scrapers together."""

from scrapeyard.builtin import MAP
from scrapeyard.builtin.pages.port import Extractor
from scrapeyard.builtin.reading.thread import ThreadExtractor
from scrapeyard.builtin.registry import Builtin, make_builtins, make_map
from scrapeyard.builtin.services import with_fetch
from scrapeyard.inputs.site_map import MapScraper


def all_builtins(extractor: Extractor | None = None) -> dict[str, Builtin]:
    """By id. Without an extractor they read pages in a thread; a worker's read them in processes."""
    extractor = extractor or ThreadExtractor()
    return {**make_builtins(extractor), MAP: make_map(with_fetch(MapScraper(extractor)))}
