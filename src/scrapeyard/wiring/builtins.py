"""Puts all built-in scrapers together."""

from typing import Any

from scrapeyard.builtin import MAP
from scrapeyard.builtin.fetching import Fetch
from scrapeyard.builtin.pages.port import Extractor
from scrapeyard.builtin.reading.thread import ThreadExtractor
from scrapeyard.builtin.registry import Builtin, make_browser_builtins, make_builtins, make_map
from scrapeyard.builtin.services import Services, with_fetch


def all_builtins(extractor: Extractor | None = None) -> dict[str, Builtin]:
    """By id. Without an extractor they read pages in a thread; a worker's read them in processes."""
    reader = extractor or ThreadExtractor()

    async def run_map(fetch: Fetch, given: dict[str, Any]) -> dict[str, Any]:
        from scrapeyard.inputs.site_map import MapScraper  # noqa: PLC0415 - loads slowly, and few runs list URLs

        return await MapScraper(reader)(fetch, given)

    return {
        **make_builtins(reader),
        **make_browser_builtins(_run_actions, _run_replay),
        MAP: make_map(with_fetch(run_map)),
    }


async def _run_actions(services: Services, given: dict[str, Any]) -> dict[str, Any]:
    from scrapeyard.builtin.actions.interpreter import run_actions  # noqa: PLC0415 - loads slowly, for few

    return await run_actions(services, given)


async def _run_replay(services: Services, given: dict[str, Any]) -> dict[str, Any]:
    from scrapeyard.builtin.replay.player import run_replay  # noqa: PLC0415 - as above

    return await run_replay(services, given)
