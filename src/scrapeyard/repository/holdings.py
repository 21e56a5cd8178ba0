"""What of one source is here: its entries, its channels, and the versions that have left it."""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from scrapeyard.model import Scraper
from scrapeyard.repository.channels import Channels
from scrapeyard.repository.entries import Entry, Key, Stock, faulty, key_of
from scrapeyard.repository.sources.port import Offer, Release
from scrapeyard.repository.state import Kept, Left, State

MAX_LEFT = 2000
"""Versions that have left the source and are still remembered."""
Name = tuple[str, str]
"""Id and version."""


class Holdings:
    """Nothing leaves before its replacement is there. Plain memory: no disk, no network, no waiting."""

    def __init__(self) -> None:
        self.changes = 0
        """Grows whenever the stock has become another."""
        self.failures: dict[Key, str] = {}
        """What could not be fetched the last time, and why."""
        self._entries: dict[Key, Entry] = {}
        self._channels: Channels = {}
        self._left: dict[Name, Scraper] = {}

    def stock(self, source: str) -> Stock:
        """All of it, as the index takes it."""
        return Stock(
            source=source,
            entries=tuple(self._entries.values()),
            channels=self._channels,
            left=tuple(self._left.values()),
        )

    @property
    def waits(self) -> bool:
        """Whether something is still to be fetched."""
        return any(entry.waits for entry in self._entries.values())

    def digests(self) -> set[str]:
        """Of the copies in use."""
        return {entry.digest for entry in self._entries.values() if entry.scraper}

    def names(self) -> set[Name]:
        """Versions that can run."""
        return {(entry.release.id, entry.release.version) for entry in self._entries.values() if entry.scraper}

    def known(self) -> dict[Name, str]:
        """The digest of every version that is or was here."""
        left = {name: scraper.ref.digest for name, scraper in self._left.items()}
        held = (entry for entry in self._entries.values() if entry.scraper)
        return left | {(entry.release.id, entry.release.version): entry.digest for entry in held}

    def outdated(self, chosen: Iterable[tuple[int, Release]]) -> list[tuple[int, Release]]:
        """Those of the chosen that must be fetched; the others take their new rank."""
        todo = []
        for rank, release in chosen:
            entry = self._entries.get(key_of(release))
            if entry is None or entry.waits or entry.release.mark != release.mark:
                todo.append((rank, release))
            else:
                self.failures.pop(key_of(release), None)
                self._entries[key_of(release)] = replace(entry, rank=rank)
        return todo

    def put(self, entry: Entry) -> None:
        """A version is here, or is known to be broken or without room."""
        key = key_of(entry.release)
        self.failures.pop(key, None)
        self._set(key, entry)

    def miss(self, release: Release, rank: int, reason: str) -> None:
        """A version could not be had now; what was there under its name goes on serving."""
        key = key_of(release)
        self.failures[key] = reason
        before = self._entries.get(key)
        if before is None or before.scraper is None:
            self._set(key, Entry(release=release, problem=reason, waits=True, rank=rank))

    def adopt(self, offer: Offer, chosen: Collection[Key]) -> None:
        """The offer is here as far as it could be had: take over the rest of it, let go of what is not in it."""
        self.failures = {key: reason for key, reason in self.failures.items() if key in chosen}
        faults = {key_of(fault): fault for fault in offer.faults}
        late = {key[0] for key in self.failures}
        for key in list(self._entries):
            if key not in chosen and key not in faults and not (key[0] in late and self._entries[key].scraper):
                self._drop(key)
        for key, fault in faults.items():
            if self._entries.get(key) != faulty(fault):
                self._drop(key)
                self._set(key, faulty(fault))
        for name in self.names():
            self._left.pop(name, None)
        self._point(offer.channels)

    def forget(self, digests: Collection[str]) -> bool:
        """These copies are gone. Returns whether any of them was in use."""
        lost = [key for key, entry in self._entries.items() if entry.scraper and entry.digest in digests]
        for key in lost:
            del self._entries[key]
            self.changes += 1
        for name in [name for name, scraper in self._left.items() if scraper.ref.digest in digests]:
            del self._left[name]
            self.changes += 1
        return bool(lost)

    def to_state(self, offer: Offer) -> State:
        """What to keep on disk."""
        return State(
            mark=offer.mark,
            kept=tuple(self._kept(release) for release in offer.releases),
            left=tuple(Left(id=name[0], version=name[1], digest=one.ref.digest) for name, one in self._left.items()),
            faults=offer.faults,
            channels=self._channels,
        )

    def add_left(self, scraper: Scraper) -> None:
        """A version that the source does not offer any more, but whose copy is here."""
        self._left[scraper.ref.id, scraper.ref.version] = scraper
        self.changes += 1
        if len(self._left) > MAX_LEFT:
            del self._left[next(iter(self._left))]

    def _set(self, key: Key, entry: Entry) -> None:
        if self._entries.get(key) != entry:
            self._entries[key] = entry
            self.changes += 1

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        self.changes += 1
        if entry is not None and entry.scraper is not None:
            self.add_left(entry.scraper)

    def _point(self, channels: Channels) -> None:
        """A channel moves on when the version it points to is here."""
        names = self.names()
        late = {key[:2] for key in self.failures}
        pointed: Channels = {}
        for scraper_id, given in channels.items():
            before = self._channels.get(scraper_id, {})
            pointed[scraper_id] = {
                channel: before[channel]
                if (scraper_id, version) in late and (scraper_id, before.get(channel)) in names
                else version
                for channel, version in given.items()
            }
        if pointed != self._channels:
            self._channels = pointed
            self.changes += 1

    def _kept(self, release: Release) -> Kept:
        entry = self._entries.get(key_of(release))
        if entry is None or entry.scraper is None:
            return Kept(release=release)
        return Kept(release=entry.release, digest=entry.digest, beside=entry.beside)
