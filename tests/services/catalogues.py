"""What tests of the catalogue ask of one."""

from collections.abc import Callable
from pathlib import Path

from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue

PAGE = Scraper(ref=ScraperRef(id="builtin/page", version="1.0.0"), folder=None)
Make = Callable[..., SourcedCatalogue]
"""Builds a catalogue over sources, which is stopped when its test is over."""


def version_of(catalogue: SourcedCatalogue, wanted: str = "shop/product") -> str:
    """What a name means."""
    return catalogue.resolve(wanted).ref.version


def problems(catalogue: SourcedCatalogue) -> dict[str, str]:
    """Of every version that cannot run."""
    found = catalogue.listings()
    return {f"{listing.id}@{listing.version}": listing.problem for listing in found if listing.scraper is None}


def copies(tmp_path: Path) -> set[str]:
    """Names in the cache."""
    return {path.name for path in (tmp_path / "data" / "cache").iterdir()}
