"""The catalogue: which scrapers there are, resolved from memory."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from scrapeyard.errors import SourceUnavailable
from scrapeyard.model import Scraper

STABLE = "stable"
"""The channel that a call without a version uses, if it points to a version."""


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
    is_offered: bool = True
    """False if no source offers the version any more, and only a copy serves calls."""


class SourceState(Struct, frozen=True, kw_only=True):
    """How fresh a source's scrapers are."""

    name: str
    kind: str
    mark: str
    """Commit id, entity tag, or empty."""
    scrapers: int
    """Versions that it offers and that can run."""
    checked_at: float | None
    """When it last answered a poll, of this process or an earlier one; None if never."""
    changed_at: float | None
    """When its offer last changed in this process; None if not since the start."""
    stale: str
    """Why its versions may be out of date; empty if they are fresh."""
    hidden: tuple[str, ...] = ()
    """Ids of its scrapers that do not run, because an earlier source has the same id."""


class Catalogue(Protocol):
    """Knows every scraper, the built-in ones included. Resolving touches no disk and no network."""

    async def start(self) -> None:
        """Load the saved state, refresh every source once, then keep refreshing in the background."""

    async def stop(self) -> None:
        """Stop refreshing. May be called twice."""

    def resolve(self, wanted: str, digest: str = "") -> Scraper:
        """`site/task`, or `site/task@` and a version, a range (`^1.4`, `~1.4`, `1.x`, `>=1.2 <2`, `^1 || ^3`) or a
        channel (`stable`, `beta`). A version that its source no longer offers resolves by exact version while its copy
        exists. Raises ScraperNotFound, ScraperInvalid (its files are wrong), BadRequest (not a scraper's name) or
        SourceUnavailable (offered, but not downloaded). If that error has the detail `obtainable`, no download was
        tried yet: call `obtain`.

        With a `digest`, `wanted` is an exact version, and only that content will do: raises SourceUnavailable if other
        content of the version is here."""

    async def obtain(self, wanted: str, digest: str = "") -> Scraper:
        """As `resolve`, but refreshes the sources once if the version is not known yet. For a worker whose gateway knew
        the version earlier. Also raises SourceUnavailable if it is not found and a source is stale. With a `digest`,
        looks for that content among the copies on disk and at the sources."""

    async def verify(self, scraper: Scraper) -> bool:
        """Whether the copy on disk still has the content that was checked. If not, the copy is dropped: call `obtain`
        with the digest. Call it right before a run; it costs a few file system calls."""

    def listings(self) -> tuple[Listing, ...]:
        """All of them, by id and version, oldest first."""

    def sources(self) -> tuple[SourceState, ...]:
        """Every source in order of precedence."""

    def channels(self, scraper_id: str) -> Mapping[str, str]:
        """Channel → version, as now in force; empty when there are none. An unset `stable` is the newest release, an
        unset `beta` the newest of all; those are not listed here."""

    def move_channels(self, moved: Mapping[str, Mapping[str, str]]) -> None:
        """Apply the channels that operators moved, by scraper id; they override the sources. An empty version undoes a
        move."""

    async def refresh(self) -> None:
        """Refresh every source now; returns when its offer is known and downloaded."""


async def find(catalogue: Catalogue, wanted: str) -> Scraper:
    """As `resolve`, from memory. Only the first call that pins an old version waits until it is downloaded."""
    try:
        return catalogue.resolve(wanted)
    except SourceUnavailable as error:
        if not error.details.get("obtainable"):
            raise
        return await catalogue.obtain(wanted)
