"""Which versions fit into a cache that is too small for all, and in which order they are fetched."""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from scrapeyard.repository.catalogue.entries import Stock, VersionEntry
from scrapeyard.repository.manifest.semver import is_prerelease, precedence
from scrapeyard.repository.sources.port import Release

FULL = "the cache is full (repository.cache_mb)"


class CacheQuota:
    """The total bytes that copies in use may take. The same copy counts once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken = 0
        self._worst: int | None = 0
        self._stocks: Sequence[Stock] = ()

    def admits(self, size: int, rank: int) -> bool:
        """Whether to fetch a version of this size (0 if unknown): it fits, or it displaces an older one."""
        if self._taken + max(size, 1) <= self.limit:
            return True
        if self._worst is None:
            self._worst = max((entry.rank for stock in self._stocks for entry in stock.held()), default=0)
        return rank < self._worst

    def take(self, entry: VersionEntry) -> None:
        """Count one more copy, until the next `assign`."""
        self._taken += entry.size
        if self._worst is not None:
            self._worst = max(self._worst, entry.rank)

    def assign(self, stocks: Sequence[Stock]) -> list[Stock]:
        """The same stocks, with every entry that does not fit replaced by one that says so."""
        self._taken = sum(stock.size for stock in stocks)
        self._worst, self._stocks = None, stocks
        if self._taken <= self.limit:
            return list(stocks)
        inside = self._choose([entry for stock in stocks for entry in stock.held()])
        fitted = [_fitted(stock, inside) for stock in stocks]
        self._taken, self._stocks = sum(inside.values()), fitted
        return fitted

    def _choose(self, held: list[VersionEntry]) -> dict[str, int]:
        """Digests and sizes of the best-ranked entries that fit together."""
        inside: dict[str, int] = {}
        left = self.limit
        for entry in sorted(held, key=lambda entry: (entry.rank, entry.release.id)):
            if entry.digest not in inside and entry.size <= left:
                inside[entry.digest] = entry.size
                left -= entry.size
        return inside


def full(entry: VersionEntry) -> VersionEntry:
    """The entry of a version that has no space in the cache."""
    return replace(entry, scraper=None, problem=FULL, waits=True)


def _fitted(stock: Stock, inside: dict[str, int]) -> Stock:
    families = {name: _shown(entries, inside) for name, entries in stock.families.items()}
    return replace(stock, families=families)


def _shown(entries: tuple[VersionEntry, ...], inside: dict[str, int]) -> tuple[VersionEntry, ...]:
    if all(entry.scraper is None or entry.digest in inside for entry in entries):
        return entries
    return tuple(full(entry) if entry.scraper and entry.digest not in inside else entry for entry in entries)


Pins = Mapping[str, Collection[str]]
"""By scraper id: versions that are kept regardless of age."""


def select(releases: Collection[Release], versions: int, pointed: Pins, asked: Pins) -> list[tuple[int, Release]]:
    """The `versions` newest of each scraper, those that channels point to and those that were asked for, each with its
    rank, the best first: the version that answers by default and those of channels, then by age."""
    by_id: dict[str, list[Release]] = {}
    for release in releases:
        by_id.setdefault(release.id, []).append(release)
    chosen: list[tuple[int, Release]] = []
    for scraper_id, family in by_id.items():
        kept = asked.get(scraper_id, ())
        ranks = _ranks({release.version for release in family}, pointed.get(scraper_id, ()))
        found = ((ranks[release.version], release) for release in family)
        chosen += [(rank, release) for rank, release in found if rank < versions or release.version in kept]
    return sorted(chosen, key=_order)


def _ranks(versions: Collection[str], pointed: Collection[str]) -> dict[str, int]:
    """Rank by age, but rank the newest release first even if prereleases are newer."""
    newest = sorted(versions, key=precedence, reverse=True)
    ranks = {version: rank for rank, version in enumerate(newest)}
    default = next((version for version in newest if not is_prerelease(version)), newest[0])
    return ranks | dict.fromkeys((version for version in (default, *pointed) if version in ranks), 0)


def _order(ranked: tuple[int, Release]) -> tuple[int, str, str]:
    rank, release = ranked
    return rank, release.id, release.place
