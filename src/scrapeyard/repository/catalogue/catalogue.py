"""The catalogue over several sources: resolves names from memory and refreshes in the background."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.errors import ScraperInvalid, ScraperNotFound, ScrapeyardError, SourceUnavailable
from scrapeyard.model import Scraper, ScraperRef, pinned_ref
from scrapeyard.repository.archive.copies import Cache
from scrapeyard.repository.catalogue.entries import Stock
from scrapeyard.repository.catalogue.fetching import Fetcher
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.repository.catalogue.pins import PinnedCopies
from scrapeyard.repository.catalogue.quota import CacheQuota
from scrapeyard.repository.catalogue.refresh import RefreshPace, SourceWatch
from scrapeyard.repository.catalogue.resolve import Index, split
from scrapeyard.repository.catalogue.state import StateFile
from scrapeyard.repository.catalogue.sync import Keeping, SourceSync
from scrapeyard.repository.manifest.channels import Channels
from scrapeyard.repository.manifest.semver import is_version
from scrapeyard.repository.port import Listing, SourceState
from scrapeyard.repository.sources.port import Source
from scrapeyard.telemetry.events import get_log

log = get_log("repository")
Name = tuple[str, str]
"""Id and version."""
MAX_LINES = 20
"""Maximum changes logged one by one; for more at once, only their number is logged."""


def note_changes(before: Index, now: Index, *, changes_too: bool) -> None:
    """Log new problems; with `changes_too`, also log added and removed versions."""
    old, new = _differing(before, now), _differing(now, before)
    known = {(listing.id, listing.problem) for listing in old}
    for listing in new:
        if listing.problem and (listing.id, listing.problem) not in known:
            log.warning("repository.invalid", scraper=listing.id, problem=listing.problem)
    if changes_too:
        _note(_running(old), _running(new))


def _differing(one: Index, other: Index) -> list[Listing]:
    """The listings of `one` for families that differ between the two indexes."""
    families = (family for name, family in one.families.items() if other.families.get(name) is not family)
    return [listing for family in families for listing in family.listings]


def _note(before: dict[Name, Listing], now: dict[Name, Listing]) -> None:
    came = [listing for name, listing in now.items() if name not in before or _differ(before[name], listing)]
    went = [listing for name, listing in before.items() if name not in now]
    if len(came) + len(went) > MAX_LINES:
        log.info("repository.changed", came=len(came), went=len(went))
        return
    for listing in came:
        log.info("repository.loaded", scraper=f"{listing.id}@{listing.version}", source=listing.source)
    for listing in went:
        log.info("repository.removed", scraper=f"{listing.id}@{listing.version}", source=listing.source)


def _running(listings: list[Listing]) -> dict[Name, Listing]:
    return {(listing.id, listing.version): listing for listing in listings if listing.scraper}


def _differ(one: Listing, other: Listing) -> bool:
    return one.scraper is None or other.scraper is None or one.scraper.ref.digest != other.scraper.ref.digest


LONGEST_SECONDS = 300.0
"""Longest wait between refreshes of a source that does not answer."""
TOUCH_SECONDS = 3600.0
"""Seconds between touches of used copies; well below the time after which another process may remove a copy."""


class Upkeep(Struct, frozen=True, kw_only=True):
    """How often the catalogue refreshes, and its limits."""

    refresh_seconds: float = 2.0
    """Between refreshes of a folder that is edited in place."""
    poll_seconds: float = 30.0
    """Between refreshes of any other source."""
    timeout_seconds: float = 60.0
    """For one poll or one download."""
    versions: int = 20
    cache_mb: float = 2048.0
    start_seconds: float = 10.0
    """How long `start` waits for slow sources; they continue in the background."""


class SourcedCatalogue:
    """Knows the built-in scrapers and those of its sources, in order of precedence.

    Copies are stored in `cache`; each source's last offer in the folder `sources` beside it.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        cache: Path,
        builtins: Mapping[str, Scraper],
        terms: LoadTerms,
        upkeep: Upkeep | None = None,
    ) -> None:
        self._upkeep = upkeep or Upkeep()
        self._cache = Cache(cache)
        self._builtins = dict(builtins)
        self._room = CacheQuota(int(self._upkeep.cache_mb * 1024 * 1024))
        self._shelves = [self._shelf(source, terms) for source in sources]
        self._watches = [SourceWatch(shelf, self._pace(shelf.source)) for shelf in self._shelves]
        self._pins = PinnedCopies(self._shelves)
        self._moved: Channels = {}
        self._stocks: list[Stock] = []
        self._index = Index(self._builtins, ())
        self._ready = False
        self._background = Background()

    async def start(self) -> None:
        """Load the saved state, refresh every source once, then keep refreshing. May be called twice."""
        if self._ready or not self._shelves:
            return
        for watch in self._watches:
            watch.start()
        await self._first_looks()
        await self._evict()
        invalid = sum(listing.scraper is None for listing in self._index.listings)
        names = ", ".join(shelf.source.name for shelf in self._shelves)
        log.info("repository.ready", scrapers=len(self._index.listings) - invalid, invalid=invalid, sources=names)
        self._ready = True
        self._background.start(self._keep_copies, name="repository-copies")

    async def stop(self) -> None:
        """Stop refreshing and cancel running downloads. May be called twice."""
        self._ready = False
        await self._background.stop()
        for watch in self._watches:
            await watch.stop()
        for shelf in self._shelves:
            await shelf.stop()

    def resolve(self, wanted: str, digest: str = "") -> Scraper:
        """As the port says; from memory."""
        ref = pinned_ref(wanted, digest)
        if ref is None:
            return self._index.resolve(wanted)
        found = self._at_hand(ref) or self._pins.get(ref)
        if found is None:
            raise SourceUnavailable(f"{ref} with digest {digest[:12]} is not here; try again", obtainable=True)
        return found

    async def obtain(self, wanted: str, digest: str = "") -> Scraper:
        """As the port says."""
        ref = pinned_ref(wanted, digest)
        if ref is None:
            return await self._obtain_any(wanted)
        found = self._at_hand(ref) or self._pins.get(ref)
        if found is None:
            self._pins.check(ref)
            found = await self._pins.find(ref) or await self._refreshed(ref)
        return found

    async def _refreshed(self, ref: ScraperRef) -> Scraper:
        """Refresh the sources once, then look for exactly this content. Raises ScraperNotFound, SourceUnavailable."""
        known = ""
        with contextlib.suppress(ScraperInvalid):
            known = (await self._obtain_any(str(ref), again=True)).ref.digest
        found = self._at_hand(ref) or await self._pins.find(ref)
        if found is None:
            raise self._pins.miss(ref, known)
        return found

    def _at_hand(self, ref: ScraperRef) -> Scraper | None:
        """The version as the index has it; None if that is other content or does not resolve."""
        try:
            scraper = self._index.resolve(str(ref))
        except ScrapeyardError:
            return None
        return scraper if scraper.ref == ref else None

    async def _obtain_any(self, wanted: str, *, again: bool = False) -> Scraper:
        if not again:
            with contextlib.suppress(ScraperNotFound, SourceUnavailable):
                return self._index.resolve(wanted)
        await asyncio.gather(*(shelf.refresh() for shelf in self._asked(wanted)))
        try:
            return self._index.resolve(wanted)
        except ScraperNotFound as error:
            raise self._unsure(error) from None

    async def verify(self, scraper: Scraper) -> bool:
        """As the port says. Content is hashed only if a file was touched since the last time."""
        digest = scraper.ref.digest
        if scraper.folder is None or self._cache.is_unchanged(digest):
            return True
        try:
            if await asyncio.to_thread(self._cache.check, digest):
                return True
            problem = "its content is not what was checked"
        except OSError as error:
            problem = error.strerror or str(error)
        log.error("repository.copy_damaged", scraper=str(scraper.ref), digest=digest[:12], problem=problem)
        self._forget({digest})
        return False

    def listings(self) -> tuple[Listing, ...]:
        """As the port says; from memory."""
        return self._index.listings

    def sources(self) -> tuple[SourceState, ...]:
        """As the port says; from memory."""
        hidden = self._index.hidden
        return tuple(
            replace(state, hidden=hidden.get(state.name, ())) for state in map(SourceSync.state, self._shelves)
        )

    def channels(self, scraper_id: str) -> Mapping[str, str]:
        """As the port says; from memory."""
        return self._index.channels(scraper_id)

    def move_channels(self, moved: Mapping[str, Mapping[str, str]]) -> None:
        """As the port says; fetches an offered version that has no copy yet in the background."""
        for scraper_id, channels in moved.items():
            kept = {**self._moved.get(scraper_id, {}), **channels}
            self._moved[scraper_id] = {channel: version for channel, version in kept.items() if version}
        for shelf, watch in zip(self._shelves, self._watches, strict=True):
            if shelf.move(self._moved):
                watch.wake()
        self._rebuild()

    async def refresh(self) -> None:
        """As the port says. Logs a source that does not answer, and keeps its last known versions."""
        await asyncio.gather(*(shelf.refresh() for shelf in self._shelves))

    def _shelf(self, source: Source, terms: LoadTerms) -> SourceSync:
        upkeep = self._upkeep
        fetcher = Fetcher(source, self._cache, terms, upkeep.timeout_seconds)
        file = StateFile(self._cache.folder.parent / "sources", source.kind, source.name)
        keeping = Keeping(versions=upkeep.versions, timeout_seconds=upkeep.timeout_seconds)
        return SourceSync(source, fetcher=fetcher, file=file, room=self._room, keeping=keeping, changed=self._rebuild)

    def _pace(self, source: Source) -> RefreshPace:
        if source.is_mutable:
            return RefreshPace(seconds=self._upkeep.refresh_seconds, longest=self._upkeep.refresh_seconds)
        return RefreshPace(seconds=self._upkeep.poll_seconds, longest=LONGEST_SECONDS, jitter=0.2)

    async def _first_looks(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._upkeep.start_seconds):
                await asyncio.gather(*(watch.began.wait() for watch in self._watches))

    def _asked(self, wanted: str) -> list[SourceSync]:
        """The sources that offer the version, or all if none does. They keep it from now on, however old it is."""
        scraper_id, version = split(wanted)
        if not is_version(version):
            return self._shelves
        for shelf in self._shelves:
            shelf.ask(scraper_id, version)
        return [shelf for shelf in self._shelves if shelf.offers(scraper_id, version)] or self._shelves

    def _unsure(self, error: ScraperNotFound) -> ScraperNotFound | SourceUnavailable:
        """SourceUnavailable while a source is stale, since it may have the version; otherwise `error`."""
        stale = next((state for state in self.sources() if state.stale), None)
        if stale is None:
            return error
        return SourceUnavailable(f"{error.message}; but {stale.name} may have it, and is out of date: {stale.stale}")

    def _rebuild(self) -> None:
        self._stocks = self._room.assign([shelf.stock() for shelf in self._shelves])
        before, self._index = self._index, Index(self._builtins, self._stocks, self._moved, self._index)
        note_changes(before, self._index, changes_too=self._ready)

    def _used(self) -> set[str]:
        """Digests of the copies that must not be evicted."""
        held = {entry.digest for stock in self._stocks for entry in stock.held()}
        return held | self._index.pointed_left() | self._pins.digests

    async def _keep_copies(self) -> None:
        while True:
            await asyncio.sleep(TOUCH_SECONDS)
            try:
                self._forget(await asyncio.to_thread(self._cache.touch, self._used()))
                await self._evict()
            except OSError as error:
                log.warning("repository.evict_failed", error=error.strerror or str(error))

    async def _evict(self) -> None:
        try:
            gone = await asyncio.to_thread(self._cache.evict, self._used(), self._room.limit)
        except OSError as error:
            log.warning("repository.evict_failed", error=error.strerror or str(error))
            return
        if gone:
            log.info("repository.evicted", count=len(gone))
            self._forget(gone)

    def _forget(self, digests: Collection[str]) -> None:
        self._pins.forget(digests)
        for shelf, watch in zip(self._shelves, self._watches, strict=True):
            if shelf.forget(digests):
                watch.wake()
