"""The catalogue: which scrapers there are, resolved from memory."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from scrapeyard.model import Scraper

STABLE = "stable"
"""The channel that a call without a version takes, where it points to a version."""


class Listing(Struct, frozen=True, kw_only=True):
    """One version of a scraper as a listing shows it."""

    id: str
    version: str
    scraper: Scraper | None
    """None when it is invalid."""
    problem: str = ""
    """Why it cannot run."""
    source: str = ""
    """Name of the source it comes from; empty for a built-in."""
    place: str = ""
    """Where in the source: a folder, a tag, a key."""


class SourceState(Struct, frozen=True, kw_only=True):
    """How fresh a source's scrapers are."""

    name: str
    kind: str
    mark: str
    """Commit id, entity tag, or empty."""
    scrapers: int
    """Versions that it offers and that can run."""
    checked_at: float | None
    """When it was last asked and answered; None: not since the start."""
    changed_at: float | None
    """When what it offers last changed here; None: not since the start."""
    stale: str
    """Why what is served may be out of date; empty when it is fresh."""


class Catalogue(Protocol):
    """Knows every scraper, the built-in ones included. Resolving touches no disk and no network."""

    async def start(self) -> None:
        """What was known before, then a first look at every source, then keep looking in the background."""

    async def stop(self) -> None:
        """Stop looking. May be called twice."""

    def resolve(self, wanted: str) -> Scraper:
        """`site/task`, or `site/task@` and a version, a range (`^1.4`, `~1.4`, `1.x`, `>=1.2 <2`) or a channel
        (`stable`, `beta`). A version that has left its source answers to its exact name while its copy is here. Raises
        ScraperNotFound, ScraperInvalid (there, but its files are wrong), BadRequest (not a scraper's name) or
        SourceUnavailable (offered, but not here yet); where that has the detail `obtainable`, nobody has tried to get
        it: `obtain` does."""

    async def obtain(self, wanted: str) -> Scraper:
        """As `resolve`; a version that is not known here yet makes the sources be asked once, now. For a worker whose
        gateway knew of a version earlier. Raises SourceUnavailable also when it is not found and a source is stale."""

    def listings(self) -> tuple[Listing, ...]:
        """All of them, by id and version, oldest first."""

    def sources(self) -> tuple[SourceState, ...]:
        """Every source in order of precedence."""

    def channels(self, scraper_id: str) -> Mapping[str, str]:
        """Channel → version, as now in force; empty when there are none. An unset `stable` is the newest release, an
        unset `beta` the newest of all; those are not listed here."""

    def move_channels(self, moved: Mapping[str, Mapping[str, str]]) -> None:
        """Take over the channels that operators moved, by scraper id; they win over what sources say. An empty version
        takes a move back."""

    async def refresh(self) -> None:
        """Look at every source now; returns when what was there is known and downloaded."""
