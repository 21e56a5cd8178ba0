"""The built-in scrapers, each with its description and its code."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from scrapeyard import __version__
from scrapeyard.builtin import (
    ACTIONS,
    DOCUMENT,
    ECHO,
    EXTRACT,
    LIST,
    MAP,
    PAGE,
    PRODUCT,
    REPLAY,
    SEARCH,
    SELECT,
    listing,
    scrapers,
    searching,
    selecting,
)
from scrapeyard.builtin.documenting import DOCUMENT_INPUT, DOCUMENT_OUTPUT
from scrapeyard.builtin.extracting import EXTRACT_INPUT, EXTRACT_OUTPUT
from scrapeyard.builtin.pages.port import Extractor
from scrapeyard.builtin.services import Run, with_fetch
from scrapeyard.model import Defaults, Limits, Scraper, ScraperRef

_BROWSER_LIMITS = Limits(wall_seconds=300)
"""Of the built-ins that perform steps in a browser."""
_ASKING_LIMITS = Limits(wall_seconds=180)
"""Of the built-in that may wait for a model."""
_LIST_LIMITS = Limits(wall_seconds=300)
"""Of the built-in that reads many pages."""
_ONCE = Defaults(retries=0)
"""Steps may order or send something: they are done again only if the call asks for it."""


class Builtin(Struct, frozen=True, kw_only=True):
    """A built-in scraper and its code."""

    scraper: Scraper
    run: Run
    """Called with the services of an attempt and a valid input. Raises FetchFailed."""


def make_builtins(extractor: Extractor) -> dict[str, Builtin]:
    """The built-in scrapers by id. Their `folder` is None, because there are no files to load."""
    made = (
        Builtin(
            scraper=_described(
                PAGE,
                name="Page",
                description="One page: title, meta, headings, links, text, markdown, structured data, product.",
                input_schema=scrapers.PAGE_INPUT,
                output_schema=scrapers.PAGE_OUTPUT,
            ),
            run=with_fetch(scrapers.PageScraper(extractor)),
        ),
        Builtin(
            scraper=_described(
                PRODUCT,
                name="Product",
                description="One product: name, price, availability, codes, brand, category, images, attributes.",
                input_schema=scrapers.PRODUCT_INPUT,
                output_schema=scrapers.PRODUCT_OUTPUT,
            ),
            run=with_fetch(scrapers.ProductScraper(extractor)),
        ),
        Builtin(
            scraper=_described(
                SELECT,
                name="Select",
                description="Fields of one page by CSS or XPath, with types, lists and records in records.",
                input_schema=selecting.SELECT_INPUT,
                output_schema=selecting.SELECT_OUTPUT,
            ),
            run=with_fetch(selecting.SelectScraper(extractor)),
        ),
        _list(extractor),
        Builtin(
            scraper=_described(
                ECHO,
                name="Echo",
                description="Its own input: for trying out jobs and measuring them. It fetches nothing.",
                input_schema=scrapers.ECHO_INPUT,
                output_schema=scrapers.ECHO_OUTPUT,
            ),
            run=with_fetch(scrapers.echo),
        ),
    )
    return {builtin.scraper.ref.id: builtin for builtin in made}


def _list(extractor: Extractor) -> Builtin:
    described = _described(
        LIST,
        name="List",
        description="The records of a listing page and of the pages after it, found without selectors.",
        input_schema=listing.LIST_INPUT,
        output_schema=listing.LIST_OUTPUT,
        limits=_LIST_LIMITS,
    )
    return Builtin(scraper=described, run=listing.ListScraper(extractor))


def make_browser_builtins(run_actions: Run, run_replay: Run) -> dict[str, Builtin]:
    """`builtin/actions` and `builtin/replay`. Their schemas are made of the steps' structs, which takes long, so they
    are written down."""
    schemas = msgspec.json.decode(Path(__file__).with_name("browser_schemas.json").read_bytes())
    about = {
        ACTIONS: ("Actions", "Steps in a browser, written as JSON: open, click, type, wait, extract, with loops."),
        REPLAY: ("Replay", "A recording of Chrome's DevTools, performed in a browser as it is."),
    }
    runs = {ACTIONS: run_actions, REPLAY: run_replay}
    return {
        scraper_id: Builtin(
            scraper=_described(
                scraper_id,
                name=name,
                description=description,
                input_schema=schemas[scraper_id]["input"],
                output_schema=schemas[scraper_id]["output"],
                limits=_BROWSER_LIMITS,
                policy=_ONCE,
            ),
            run=runs[scraper_id],
        )
        for scraper_id, (name, description) in about.items()
    }


def make_extract(run: Run) -> Builtin:
    """`builtin/extract`, which needs a worker's patterns and models."""
    described = _described(
        EXTRACT,
        name="Extract",
        description="Fields of one page by name and type: from its data, a learned pattern, a model or selectors.",
        input_schema=EXTRACT_INPUT,
        output_schema=EXTRACT_OUTPUT,
        limits=_ASKING_LIMITS,
    )
    return Builtin(scraper=described, run=run)


def make_document(run: Run) -> Builtin:
    """`builtin/document`, which stands on the others."""
    described = _described(
        DOCUMENT,
        name="Document",
        description="One page in one visit: steps in a browser, its parts as builtin/page has them, data to a schema.",
        input_schema=DOCUMENT_INPUT,
        output_schema=DOCUMENT_OUTPUT,
        limits=_BROWSER_LIMITS,
        policy=_ONCE,
    )
    return Builtin(scraper=described, run=run)


def make_search() -> Builtin:
    """`builtin/search`. A search may cost money, so it is repeated only if the call asks for it."""
    described = _described(
        SEARCH,
        name="Search",
        description="A web search by the outside engine: addresses, titles and descriptions.",
        input_schema=searching.SEARCH_INPUT,
        output_schema=searching.SEARCH_OUTPUT,
        limits=_BROWSER_LIMITS,
        policy=_ONCE,
    )
    return Builtin(scraper=described, run=searching.run_search)


def make_map(run: Run) -> Builtin:
    """`builtin/map`, whose code stands with the readers of sitemaps, in a package above this one."""
    described = _described(
        MAP,
        name="Map",
        description="The URLs of a site: from its robots.txt, its sitemaps and the links of one page.",
        input_schema=scrapers.MAP_INPUT,
        output_schema=scrapers.MAP_OUTPUT,
    )
    return Builtin(scraper=described, run=run)


def _described(scraper_id: str, **fields: Any) -> Scraper:
    return Scraper(ref=ScraperRef(id=scraper_id, version=__version__), folder=None, entry="", **fields)
