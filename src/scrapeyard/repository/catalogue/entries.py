"""What a shelf holds: one entry for each version that its source offers."""

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from scrapeyard.model import Scraper
from scrapeyard.repository.manifest.channels import Channels
from scrapeyard.repository.port import Listing
from scrapeyard.repository.sources.port import Fault, Release

Key = tuple[str, str, str]
"""Id, version and place: a folder may hold the same version twice."""


class VersionEntry(Struct, frozen=True, kw_only=True):
    """One version: ready to run, or the reason why it is not."""

    release: Release
    scraper: Scraper | None = None
    problem: str = ""
    """Why there is no scraper."""
    waits: bool = False
    """Whether the version is only waiting (not downloaded yet, or no space); other versions answer meanwhile."""
    beside: str = ""
    """What is wrong with other content offered under this name, while this entry serves."""
    size: int = 0
    """Bytes of the copy."""
    rank: int = 0
    """How many newer versions of the scraper there are; 0 also for one that a channel points to."""

    @property
    def digest(self) -> str:
        """Of the copy; empty when there is none."""
        return self.scraper.ref.digest if self.scraper else ""


class Stock(Struct, frozen=True, kw_only=True):
    """What one source offers at one moment. Parts that did not change since the last stock are the same objects."""

    source: str
    families: Mapping[str, tuple[VersionEntry, ...]] = field(default_factory=dict)
    """By scraper id."""
    channels: Channels = field(default_factory=dict)
    left: Mapping[str, tuple[Scraper, ...]] = field(default_factory=dict)
    """Versions that the source no longer offers but whose copies still exist; by scraper id."""
    older: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Versions that the source offers but that are not downloaded ahead; by scraper id."""
    size: int = 0
    """Bytes of the copies together."""

    def held(self) -> Iterator[VersionEntry]:
        """The entries that can run."""
        return (entry for entries in self.families.values() for entry in entries if entry.scraper)


def key_of(release: Release | Fault) -> Key:
    """The key that identifies an entry within one source."""
    return release.id, release.version, release.place


def faulty(fault: Fault) -> VersionEntry:
    """The entry of something that its source cannot offer."""
    release = Release(id=fault.id, version=fault.version, mark="", place=fault.place)
    return VersionEntry(release=release, problem=fault.problem)


def listings_of(entry: VersionEntry, source: str) -> tuple[Listing, ...]:
    """The entry as listings: first the version that answers, then the problem beside it."""
    release = entry.release

    def listing(scraper: Scraper | None, problem: str) -> Listing:
        return Listing(
            id=release.id,
            version=release.version,
            scraper=scraper,
            problem=problem,
            source=source,
            place=release.place,
        )

    first = listing(entry.scraper, entry.problem)
    return (first, listing(None, entry.beside)) if entry.beside else (first,)
