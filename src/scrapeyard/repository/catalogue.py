"""The catalogue over a local folder, watched."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path

from scrapeyard.model import Limits, Scraper
from scrapeyard.repository.cache import Cache
from scrapeyard.repository.index import Index
from scrapeyard.repository.loading import Terms
from scrapeyard.repository.port import Listing
from scrapeyard.repository.scan import Entries, Look, Scanner
from scrapeyard.telemetry.events import get_log

log = get_log("repository")


class FolderCatalogue:
    """Knows the built-in scrapers and those of one folder; without a folder, the built-in ones alone.

    A change is seen within `refresh_seconds` and the time of one look. Looking runs in a thread. A folder that vanishes
    or cannot be read leaves the last known scrapers in place.
    """

    def __init__(
        self,
        scrapers: Path | None,
        cache: Path,
        builtins: Mapping[str, Scraper],
        ceiling: Limits,
        refresh_seconds: float,
        *,
        direct_network: Collection[str] = (),
    ) -> None:
        self._root = scrapers
        self._cache = Cache(cache)
        self._builtins = dict(builtins)
        self._terms = Terms(ceiling=ceiling, direct_network=direct_network)
        self._refresh_seconds = refresh_seconds
        self._entries: Entries = {}
        self._index = Index(self._builtins, ())
        self._looking = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._away = False
        self._cut = False

    async def start(self) -> None:
        """First look, then remove copies that nothing refers to, then watch. May be called twice."""
        if self._root is None or self._watch is not None:
            return
        self._stopping.clear()
        await self.refresh()
        await self._prune()
        listings = self._index.listings
        invalid = sum(listing.scraper is None for listing in listings)
        log.info("repository.ready", scrapers=len(listings) - invalid, invalid=invalid, folder=str(self._root))
        self._watch = asyncio.create_task(self._keep_looking(), name="repository-watch")

    async def stop(self) -> None:
        """Stop looking, after the look that is under way. May be called twice."""
        self._stopping.set()
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch

    def resolve(self, wanted: str) -> Scraper:
        """As the port says; from memory."""
        return self._index.resolve(wanted)

    def listings(self) -> tuple[Listing, ...]:
        """As the port says; from memory."""
        return self._index.listings

    async def refresh(self) -> None:
        """As the port says. A folder that cannot be read is logged, and what was known stays."""
        if self._root is None:
            return
        async with self._looking:
            scanner = Scanner(root=self._root, cache=self._cache, terms=self._terms)
            try:
                look = await asyncio.to_thread(scanner.look, self._entries)
            except OSError as error:
                self._note_away(error)
            else:
                self._note_back(look)
                self._adopt(look.entries)

    async def _keep_looking(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._refresh_seconds)
                return
            try:
                await self.refresh()
            except Exception as error:  # noqa: BLE001 - a fault in one look must not end the watch
                log.error("repository.look_failed", error=repr(error))

    def _adopt(self, entries: Entries) -> None:
        before, self._entries = self._entries, entries
        if entries == before:
            return
        assert self._root is not None  # noqa: S101 - only a catalogue with a folder looks
        root = self._root
        old, self._index = (
            self._index,
            Index(self._builtins, ((folder.relative_to(root), entry.listing) for folder, entry in entries.items())),
        )
        self._note_problems(old)
        if self._watch is not None:
            self._note_changes(before)

    async def _prune(self) -> None:
        used = {entry.listing.scraper.ref.digest for entry in self._entries.values() if entry.listing.scraper}
        try:
            removed = await asyncio.to_thread(self._cache.prune, used)
        except OSError as error:
            log.warning("repository.prune_failed", error=str(error))
            return
        if removed:
            log.info("repository.pruned", count=removed)

    def _note_away(self, error: OSError) -> None:
        if not self._away:
            log.warning("repository.away", folder=str(self._root), error=error.strerror or str(error))
        self._away = True

    def _note_back(self, look: Look) -> None:
        if self._away:
            log.info("repository.back", folder=str(self._root))
        if look.cut and not self._cut:
            log.warning("repository.too_many", folder=str(self._root), count=len(look.entries))
        self._away, self._cut = False, look.cut

    def _note_problems(self, old: Index) -> None:
        known = {(listing.id, listing.problem) for listing in old.listings}
        for listing in self._index.listings:
            if listing.problem and (listing.id, listing.problem) not in known:
                log.warning("repository.invalid", scraper=listing.id, problem=listing.problem)

    def _note_changes(self, before: Entries) -> None:
        for folder, entry in self._entries.items():
            old, scraper = before.get(folder), entry.listing.scraper
            if scraper is not None and (old is None or old.listing != entry.listing):
                log.info("repository.loaded", scraper=str(scraper.ref), folder=str(folder))
        for folder in before.keys() - self._entries.keys():
            log.info("repository.removed", scraper=before[folder].listing.id, folder=str(folder))
