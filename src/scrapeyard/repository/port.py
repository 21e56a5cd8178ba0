"""The catalogue: which scrapers there are, resolved from memory."""

from typing import Protocol

from msgspec import Struct

from scrapeyard.model import Scraper


class Listing(Struct, frozen=True, kw_only=True):
    """A scraper as a listing shows it."""

    id: str
    version: str
    scraper: Scraper | None
    """None when it is invalid."""
    problem: str = ""
    """Why it cannot run."""


class Catalogue(Protocol):
    """Knows every scraper, the built-in ones included. Resolving touches no disk and no network."""

    async def start(self) -> None:
        """First look at the source, then keep looking in the background."""

    async def stop(self) -> None:
        """Stop looking. May be called twice."""

    def resolve(self, wanted: str) -> Scraper:
        """`site/task` or `site/task@version`. Raises ScraperNotFound, ScraperInvalid (there, but its files are wrong)
        or BadRequest (not a scraper's name)."""

    def listings(self) -> tuple[Listing, ...]:
        """All of them, by id."""

    async def refresh(self) -> None:
        """Look at the source now; returns when what was there is known."""
