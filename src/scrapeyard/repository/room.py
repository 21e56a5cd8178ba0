"""Who gets into a cache that is too small for all: the newest versions of every scraper."""

from collections.abc import Sequence

from msgspec.structs import replace

from scrapeyard.repository.entries import Entry, Stock

FULL = "the cache is full (repository.cache_mb)"


class Room:
    """The bytes that copies in use may take together. The same copy counts once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken = 0
        self._worst = 0

    def admits(self, size: int, rank: int) -> bool:
        """Whether a version of this size (0: not known) is worth fetching: it fits, or pushes an older one out."""
        return self._taken + size < self.limit or rank < self._worst

    def take(self, entry: Entry) -> None:
        """One more copy, until the next `allot`."""
        self._taken += entry.size
        self._worst = max(self._worst, entry.rank)

    def allot(self, stocks: Sequence[Stock]) -> list[Stock]:
        """The same stocks, where those that do not fit say so instead of answering."""
        held = [entry for stock in stocks for entry in stock.entries if entry.scraper]
        if sum(entry.size for entry in held) <= self.limit:
            self._note(held)
            return list(stocks)
        inside = self._choose(held)
        self._note([entry for entry in held if entry.digest in inside])
        return [replace(stock, entries=tuple(_shown(entry, inside) for entry in stock.entries)) for stock in stocks]

    def _choose(self, held: list[Entry]) -> set[str]:
        inside: set[str] = set()
        left = self.limit
        for entry in sorted(held, key=lambda entry: (entry.rank, entry.release.id)):
            if entry.digest not in inside and entry.size <= left:
                inside.add(entry.digest)
                left -= entry.size
        return inside

    def _note(self, inside: list[Entry]) -> None:
        self._taken = sum({entry.digest: entry.size for entry in inside}.values())
        self._worst = max((entry.rank for entry in inside), default=0)


def full(entry: Entry) -> Entry:
    """What stands for a version that has no room."""
    return replace(entry, scraper=None, problem=FULL, waits=True)


def _shown(entry: Entry, inside: set[str]) -> Entry:
    return full(entry) if entry.scraper and entry.digest not in inside else entry
