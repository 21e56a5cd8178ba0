"""One source in the catalogue: polls it, fetches what is new, and reports how fresh that is."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.repository.catalogue.entries import Stock, VersionEntry, key_of
from scrapeyard.repository.catalogue.fetching import Fetcher, NotNow, OtherContent, why
from scrapeyard.repository.catalogue.known import MAX_LEFT, SourceVersions
from scrapeyard.repository.catalogue.quota import CacheQuota, full, select
from scrapeyard.repository.catalogue.state import Kept, State, StateFile, offer_of, state_of
from scrapeyard.repository.manifest.channels import Channels
from scrapeyard.repository.port import SourceState
from scrapeyard.repository.sources.port import Offer, Release, Source, validate_offer
from scrapeyard.telemetry.events import get_log

log = get_log("repository")
AT_ONCE = 4
"""Downloads at once from one source."""
BATCH = 32
"""Copies read in one go when a process starts."""
SHOW_SECONDS = 1.0
"""During a long fetch, versions that have arrived are published this often."""
MAX_ASKED = 1000
NOTE_SECONDS = 60.0
"""How often the time of the last answer is saved."""
Ranked = tuple[int, Release]


class Keeping(Struct, frozen=True, kw_only=True):
    """How much of a source is kept, and how long it may take to answer."""

    versions: int = 20
    timeout_seconds: float = 60.0


class SourceSync:
    """Holds what one source offers. `changed` is called in the event loop whenever the stock changes."""

    def __init__(
        self,
        source: Source,
        *,
        fetcher: Fetcher,
        file: StateFile,
        room: CacheQuota,
        keeping: Keeping,
        changed: Callable[[], None],
    ) -> None:
        self.source = source
        self._fetcher = fetcher
        self._file = file
        self._room = room
        self._keeping = keeping
        self._changed = changed
        self._holdings = SourceVersions()
        self._offer = Offer(mark="", releases=())
        self._asked: dict[str, set[str]] = {}
        self._moved: Channels = {}
        self._recalled = False
        self._wishes, self._heeded = 0, 0
        """Requests for versions beyond the default selection, and how many of them a refresh has handled."""
        self._complete = False
        self._answered = False
        """Whether the source made an offer to this process, so that it can fetch what is in it."""
        self._shown = (0, 0.0)
        self._saved = (0, "")
        self._stale = ""
        self._checked_at: float | None = None
        self._answered_before: float | None = None
        """When the source last answered an earlier process."""
        self._noted_at = 0.0
        self._changed_at: float | None = None
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()

    @property
    def is_stale(self) -> bool:
        """Whether the last refresh failed or is incomplete."""
        return bool(self._stale)

    def stock(self) -> Stock:
        """What it has now."""
        return self._holdings.stock(self.source.name)

    def state(self) -> SourceState:
        """How fresh that is."""
        return SourceState(
            name=self.source.name,
            kind=self.source.kind,
            mark=self._offer.mark,
            scrapers=self._holdings.count(),
            checked_at=self._checked_at or self._answered_before,
            changed_at=self._changed_at,
            stale=self._stale or ("" if self._checked_at else "not asked since the start"),
        )

    def offers(self, scraper_id: str, version: str) -> bool:
        """Whether the last offer has this version, here or not."""
        wanted = scraper_id, version
        return any((release.id, release.version) == wanted for release in self._offer.releases)

    async def find_content(self, ref: ScraperRef) -> Scraper | None:
        """The version with exactly this content, from its copy or from the source; None if neither has it."""
        name = ref.id, ref.version
        offered = [release for release in self._offer.releases if (release.id, release.version) == name]
        copied = Release(id=ref.id, version=ref.version, mark="", place=str(ref))
        entry = await asyncio.to_thread(self._fetcher.recall, copied, ref.digest)
        for release in offered:
            if entry is not None:
                break
            with contextlib.suppress(NotNow, OtherContent):
                entry = await self._fetcher.fetch(release, ref.digest)
        return entry.scraper if entry and entry.scraper and entry.scraper.ref == ref else None

    def ask(self, scraper_id: str, version: str) -> None:
        """Keep this version too from the next refresh on, however old it is."""
        if sum(map(len, self._asked.values())) >= MAX_ASKED:
            self._asked.clear()
        self._asked.setdefault(scraper_id, set()).add(version)
        self._wishes += 1

    def move(self, moved: Channels) -> bool:
        """Apply the channels that operators moved. Returns whether an offered version must now be fetched."""
        self._moved = moved
        wanted = {(scraper_id, version) for scraper_id, names in moved.items() for version in names.values()}
        wanted -= self._holdings.names()
        asks = bool(wanted) and any((release.id, release.version) in wanted for release in self._offer.releases)
        self._wishes += asks
        return asks

    def forget(self, digests: Collection[str]) -> bool:
        """Stop answering with these copies, which are gone. Returns whether some must be fetched again."""
        lost = self._holdings.forget(digests)
        self._wishes += lost
        self._show()
        return lost

    async def refresh(self) -> None:
        """Poll the source now; returns when its offer is downloaded, or the reason why not is known.

        Calls that arrive while one waits for its turn share it.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._take_turn(), name=f"repository-refresh-{self.source.name}")
            self._running.add(self._next)
            self._next.add_done_callback(self._running.discard)
        await asyncio.shield(self._next)

    async def stop(self) -> None:
        """Cancel running refreshes and stop the source. May be called twice."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self.source.stop()

    async def _take_turn(self) -> None:
        try:
            async with self._lock:
                self._next = None
                await self._refresh()
        finally:
            if self._next is asyncio.current_task():
                self._next = None

    async def _refresh(self) -> None:
        """Refresh once; if the source fails, the known versions keep serving."""
        try:
            await self._recall()
            async with asyncio.timeout(self._keeping.timeout_seconds):
                offer = await self.source.poll(self._offer.mark if self._answered or self._settled() else "")
            self._answered = self._answered or offer is not None
            self._checked_at = time.time()
            await self._take(self._offer if offer is None else await asyncio.to_thread(validate_offer, offer))
        except Exception as error:  # noqa: BLE001  one source's fault must not end the others
            self._note(why(error, self._keeping.timeout_seconds))
        else:
            self._note(self._missing())
        await self._save()

    async def _take(self, offer: Offer) -> None:
        if offer == self._offer and self._settled() and not self._holdings.waits:
            self._offer = offer
            return
        self._offer, self._complete = offer, False
        await self._catch_up()

    def _settled(self) -> bool:
        """Whether everything wanted of the last offer is downloaded, so that only a new offer makes work."""
        return self._complete and self._heeded == self._wishes

    async def _catch_up(self) -> None:
        """Fetch what is new, best rank first; then drop what is no longer offered."""
        self._heeded = self._wishes
        chosen = await asyncio.to_thread(self._select, self._offer)
        todo = self._holdings.outdated(chosen)
        known = {release: self._known(release) for _, release in todo}

        async def fetch(ranked: Ranked) -> None:
            rank, release = ranked
            try:
                await self._fetch(rank, release, known[release])
            except Exception as error:  # noqa: BLE001  one version's fault must not end the others
                self._holdings.miss(release, rank, why(error, self._keeping.timeout_seconds))
            self._show(every=SHOW_SECONDS)

        await _at_once(AT_ONCE, todo, fetch)
        self._holdings.adopt(self._offer, {key_of(release) for _, release in chosen})
        self._complete = not self._holdings.failures
        self._show()

    def _known(self, release: Release) -> str:
        """The digest that the release must have; empty when it may have any."""
        return "" if self.source.is_mutable else self._holdings.known(release.id, release.version)

    async def _fetch(self, rank: int, release: Release, known: str) -> None:
        if not self._room.admits(release.size, rank):
            self._holdings.put(full(VersionEntry(release=release, rank=rank)))
            return
        try:
            entry = await self._fetcher.fetch(release, known)
        except NotNow as error:
            self._holdings.miss(release, rank, str(error))
        except OtherContent as error:
            await self._refuse(rank, release, known, str(error))
        else:
            self._put(replace(entry, rank=rank))

    async def _refuse(self, rank: int, release: Release, known: str, problem: str) -> None:
        """Keep the known version and list the new content as a problem; without a copy of the old, take the new."""
        before = await asyncio.to_thread(self._fetcher.recall, release, known)
        if before is None:
            await self._fetch(rank, release, "")
        else:
            self._put(replace(before, rank=rank, beside=problem))

    def _put(self, entry: VersionEntry) -> None:
        self._holdings.put(entry)
        self._room.take(entry)

    async def _recall(self) -> None:
        """Once per process: load what an earlier process knew from the copies on disk, best rank first."""
        if self._recalled:
            return
        self._recalled = True
        self._answered_before = await asyncio.to_thread(self._file.answered_at)
        state = await asyncio.to_thread(self._file.read)
        kept = {key_of(each.release): each for each in state.kept}
        self._offer = validate_offer(offer_of(state))
        chosen = await asyncio.to_thread(self._select, self._offer)
        work = [(rank, kept[key_of(release)]) for rank, release in chosen if kept[key_of(release)].digest]
        for start in range(0, len(work), BATCH):
            for entry in await asyncio.to_thread(self._recall_batch, work[start : start + BATCH]):
                self._put(entry)
            self._show(every=SHOW_SECONDS)
        await self._recall_left(state)
        self._holdings.adopt(self._offer, {key_of(release) for _, release in chosen})
        self._complete = not self._holdings.outdated(chosen)
        self._saved = self._holdings.changes, self._offer.mark
        self._show()

    async def _recall_left(self, state: State) -> None:
        for left in state.left[-MAX_LEFT:]:
            release = Release(id=left.id, version=left.version, mark="", place=f"{left.id}@{left.version}")
            kept = Kept(release=release, digest=left.digest)
            for entry in await asyncio.to_thread(self._recall_batch, [(0, kept)]):
                if entry.scraper is not None:
                    self._holdings.add_left(entry.scraper)

    def _recall_batch(self, work: list[tuple[int, Kept]]) -> list[VersionEntry]:
        entries = []
        for rank, kept in work:
            try:
                entry = self._fetcher.recall(kept.release, kept.digest)
            except OSError as error:
                log.warning("repository.copy_unreadable", scraper=kept.release.id, error=error.strerror)
                continue
            if entry is not None:
                entries.append(replace(entry, rank=rank, beside=kept.beside))
        return entries

    def _select(self, offer: Offer) -> list[Ranked]:
        """Slow for a large offer; run it in a thread."""
        pointed: dict[str, set[str]] = {}
        for channels in (offer.channels, self._moved):
            for scraper_id, names in list(channels.items()):
                pointed.setdefault(scraper_id, set()).update(names.values())
        asked = {scraper_id: set(versions) for scraper_id, versions in list(self._asked.items())}
        return select(offer.releases, self._keeping.versions, pointed, asked)

    def _missing(self) -> str:
        failures = self._holdings.failures
        if not failures:
            return ""
        (scraper_id, version, _), reason = next(iter(failures.items()))
        more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
        return f"{scraper_id}@{version} could not be had: {reason}{more}"

    def _note(self, stale: str) -> None:
        if stale and stale != self._stale:
            log.warning("repository.stale", source=self.source.name, reason=stale)
        elif self._stale and not stale:
            log.info("repository.fresh", source=self.source.name)
        self._stale = stale

    def _show(self, every: float = 0.0) -> None:
        """Publish a changed stock, at most once every `every` seconds."""
        changes, shown_at = self._shown
        now = time.monotonic()
        if self._holdings.changes != changes and now - shown_at >= every:
            self._shown = self._holdings.changes, now
            self._changed_at = time.time() if self._checked_at else None
            self._changed()

    async def _save(self) -> None:
        """Save the offer if it changed, and from time to time when the source last answered."""
        now, answered_at = (self._holdings.changes, self._offer.mark), self._checked_at or self._answered_before
        is_changed = now != self._saved
        if answered_at is None or not (is_changed or answered_at - self._noted_at >= NOTE_SECONDS):
            return
        try:
            stock, offer = self.stock(), self._offer
            if is_changed or self._file.answered_at() is None:
                await asyncio.to_thread(lambda: self._file.write(state_of(offer, stock)))
            self._saved, self._noted_at = now, answered_at
            await asyncio.to_thread(self._file.note_answer, answered_at)
        except OSError as error:
            log.warning("repository.state_unwritten", source=self.source.name, error=error.strerror or str(error))


async def _at_once(limit: int, items: list[Ranked], do: Callable[[Ranked], Awaitable[None]]) -> None:
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(limit, len(items))):
            group.create_task(work())
