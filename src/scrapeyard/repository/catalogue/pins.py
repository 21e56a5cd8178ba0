"""Exact content for runs and jobs that are pinned to a digest other than the one that the catalogue answers with."""

import asyncio
import time
from collections.abc import Collection, Sequence

from scrapeyard.errors import SourceUnavailable
from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.repository.catalogue.sync import SourceSync

MAX_COPIES = 200
"""Maximum copies kept for pins; the one that was used least recently goes first."""
PAUSE_SECONDS = 5.0
"""How long content that was not found is not looked for again."""


class PinnedCopies:
    """Finds content by digest: in memory, then among the copies on disk, then at the sources."""

    def __init__(self, shelves: Sequence[SourceSync]) -> None:
        self._shelves = shelves
        self._copies: dict[str, Scraper] = {}
        self._missed: dict[str, tuple[float, str]] = {}
        self._lock = asyncio.Lock()

    @property
    def digests(self) -> set[str]:
        """Digests of the copies that are in use."""
        return set(self._copies)

    def get(self, ref: ScraperRef) -> Scraper | None:
        """The scraper from memory; None if it is not there."""
        scraper = self._copies.pop(ref.digest, None)
        if scraper is None:
            return None
        self._copies[ref.digest] = scraper
        return scraper if scraper.ref == ref else None

    async def find(self, ref: ScraperRef) -> Scraper | None:
        """The scraper with exactly this content, from a copy on disk or a source; None if neither has it."""
        async with self._lock:
            return self.get(ref) or await self._search(ref)

    def miss(self, ref: ScraperRef, known: str) -> SourceUnavailable:
        """The error for content that was not found, to be raised. `known` is the digest that the version has here."""
        here = f"here it is {known[:12]}" if known else "it is not here"
        message = f"pinned to {ref} with digest {ref.digest[:12]}; {here}, and no source offers that content now"
        self._missed[ref.digest] = time.monotonic() + PAUSE_SECONDS, message
        return SourceUnavailable(message, retry_after=PAUSE_SECONDS)

    def check(self, ref: ScraperRef) -> None:
        """Raise SourceUnavailable if this content was looked for in vain a moment ago."""
        now = time.monotonic()
        self._missed = {digest: known for digest, known in self._missed.items() if known[0] > now}
        if ref.digest in self._missed:
            until, message = self._missed[ref.digest]
            raise SourceUnavailable(message, retry_after=until - now)

    def forget(self, digests: Collection[str]) -> None:
        """Stop answering with these copies, which are gone."""
        for digest in digests:
            self._copies.pop(digest, None)

    async def _search(self, ref: ScraperRef) -> Scraper | None:
        for shelf in self._asked(ref):
            scraper = await shelf.find_content(ref)
            if scraper is not None:
                self._copies[ref.digest] = scraper
                if len(self._copies) > MAX_COPIES:
                    del self._copies[next(iter(self._copies))]
                return scraper
        return None

    def _asked(self, ref: ScraperRef) -> list[SourceSync]:
        """The sources that offer the version. If none does, those whose rules for signatures are strictest."""
        offering = [shelf for shelf in self._shelves if shelf.offers(ref.id, ref.version)]
        strict = [shelf for shelf in self._shelves if shelf.source.needs_signatures]
        return offering or strict or list(self._shelves)
