"""Who gets into a cache that is too small for all: the newest versions of every scraper."""

from collections.abc import Sequence

from msgspec.structs import replace

from scrapeyard.repository.catalogue.entries import Entry, Stock

FULL = "the cache is full (repository.cache_mb)"


class Room:
    """The bytes that copies in use may take together. The same copy counts once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken = 0
        self._worst: int | None = 0
        self._stocks: Sequence[Stock] = ()

    def admits(self, size: int, rank: int) -> bool:
        """Whether a version of this size (0: not known) is worth fetching: it fits, or pushes an older one out."""
        if self._taken + max(size, 1) <= self.limit:
            return True
        if self._worst is None:
            self._worst = max((entry.rank for stock in self._stocks for entry in stock.held()), default=0)
        return rank < self._worst

    def take(self, entry: Entry) -> None:
        """One more copy, until the next `allot`."""
        self._taken += entry.size
        if self._worst is not None:
            self._worst = max(self._worst, entry.rank)

    def allot(self, stocks: Sequence[Stock]) -> list[Stock]:
        """The same stocks, where those that do not fit say so instead of answering."""
        self._taken = sum(stock.size for stock in stocks)
        self._worst, self._stocks = None, stocks
        if self._taken <= self.limit:
            return list(stocks)
        inside = self._choose([entry for stock in stocks for entry in stock.held()])
        fitted = [_fitted(stock, inside) for stock in stocks]
        self._taken, self._stocks = sum(inside.values()), fitted
        return fitted

    def _choose(self, held: list[Entry]) -> dict[str, int]:
        """Digests and sizes of the best that fit together."""
        inside: dict[str, int] = {}
        left = self.limit
        for entry in sorted(held, key=lambda entry: (entry.rank, entry.release.id)):
            if entry.digest not in inside and entry.size <= left:
                inside[entry.digest] = entry.size
                left -= entry.size
        return inside


def full(entry: Entry) -> Entry:
    """What stands for a version that has no room."""
    return replace(entry, scraper=None, problem=FULL, waits=True)


def _fitted(stock: Stock, inside: dict[str, int]) -> Stock:
    families = {name: _shown(entries, inside) for name, entries in stock.families.items()}
    return replace(stock, families=families)


def _shown(entries: tuple[Entry, ...], inside: dict[str, int]) -> tuple[Entry, ...]:
    if all(entry.scraper is None or entry.digest in inside for entry in entries):
        return entries
    return tuple(full(entry) if entry.scraper and entry.digest not in inside else entry for entry in entries)
