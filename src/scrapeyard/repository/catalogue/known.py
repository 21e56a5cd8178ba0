"""What this process holds of one source: its entries, its channels, and the versions it no longer offers."""

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from scrapeyard.model import Scraper
from scrapeyard.repository.catalogue.entries import Key, Stock, VersionEntry, faulty, key_of
from scrapeyard.repository.manifest.channels import Channels
from scrapeyard.repository.sources.port import Offer, Release

MAX_LEFT = 2000
"""Maximum versions remembered that the source no longer offers."""
Name = tuple[str, str]
"""Id and version."""
T = TypeVar("T")


class SourceVersions:
    """Drops nothing before its replacement is available. In memory only: no disk, no network, no waiting."""

    def __init__(self) -> None:
        self.changes = 0
        """Increases whenever the stock changes."""
        self.failures: dict[Key, str] = {}
        """Releases that could not be fetched the last time, and why."""
        self._families: dict[str, dict[Key, VersionEntry]] = {}
        self._channels: Channels = {}
        self._left: dict[Name, Scraper] = {}
        self._older: dict[str, frozenset[str]] = {}
        self._size = 0
        self._shown: dict[str, tuple[VersionEntry, ...]] = {}
        self._shown_left: dict[str, tuple[Scraper, ...]] = {}
        self._touched: set[str] = set()
        self._counted = (0, 0)

    def stock(self, source: str) -> Stock:
        """All of it, as the index takes it."""
        left: dict[str, list[Scraper]] = {}
        for name, scraper in self._left.items():
            left.setdefault(name[0], []).append(scraper)
        for scraper_id in self._touched:
            _show(self._shown, scraper_id, tuple(self._families.get(scraper_id, {}).values()))
            _show(self._shown_left, scraper_id, tuple(left.get(scraper_id, ())))
        self._touched.clear()
        return Stock(
            source=source,
            families=dict(self._shown),
            channels=self._channels,
            left=dict(self._shown_left),
            older=self._older,
            size=self._size,
        )

    @property
    def waits(self) -> bool:
        """Whether any release is still to be fetched."""
        return any(entry.waits for entry in self._entries())

    def count(self) -> int:
        """How many versions can run."""
        if self._counted[0] != self.changes:
            self._counted = self.changes, len(self.names())
        return self._counted[1]

    def names(self) -> set[Name]:
        """Versions that can run."""
        return {(entry.release.id, entry.release.version) for entry in self._entries() if entry.scraper}

    def known(self, scraper_id: str, version: str) -> str:
        """The digest that a version has or had; empty if it was never held."""
        left = self._left.get((scraper_id, version))
        return self._held(scraper_id, version) or (left.ref.digest if left else "")

    def outdated(self, chosen: Iterable[tuple[int, Release]]) -> list[tuple[int, Release]]:
        """The chosen releases that must be fetched; updates the rank of the others."""
        todo = []
        for rank, release in chosen:
            key = key_of(release)
            entry = self._get(key) or self._twin(release)
            if entry is None or entry.waits or _must_fetch(entry, release):
                todo.append((rank, release))
                continue
            self.failures.pop(key, None)
            if entry.rank != rank or entry.release != release:
                self._set(key, replace(entry, release=release, rank=rank))
        return todo

    def put(self, entry: VersionEntry) -> None:
        """Store an entry: a version that can run, is broken, or has no space."""
        key = key_of(entry.release)
        self.failures.pop(key, None)
        self._set(key, entry)

    def miss(self, release: Release, rank: int, reason: str) -> None:
        """Record that a version could not be fetched now; an earlier entry of that name keeps serving."""
        key = key_of(release)
        self.failures[key] = reason
        before = self._get(key)
        if before is None or before.scraper is None:
            self._set(key, VersionEntry(release=release, problem=reason, waits=True, rank=rank))

    def adopt(self, offer: Offer, chosen: Collection[Key]) -> None:
        """Everything fetchable of the offer was fetched: take over the rest of it and drop what it no longer has."""
        self.failures = {key: reason for key, reason in self.failures.items() if key in chosen}
        faults = {key_of(fault): faulty(fault) for fault in offer.faults}
        late = {key[0] for key in self.failures}
        for key in [key for family in self._families.values() for key in family if key not in chosen]:
            if key not in faults and not (key[0] in late and self._is_held(key)):
                self._drop(key)
        for key, fault in faults.items():
            if self._get(key) != fault:
                self._drop(key)
                self._set(key, fault)
        for name in [name for name in self._left if self._held(*name)]:
            self._drop_left(name)
        self._point(offer.channels)
        self._pass_over(release for release in offer.releases if key_of(release) not in chosen)

    def add_left(self, scraper: Scraper) -> None:
        """Add a version that the source no longer offers but whose copy still exists."""
        self._left[scraper.ref.id, scraper.ref.version] = scraper
        self._touch(scraper.ref.id)
        if len(self._left) > MAX_LEFT:
            self._drop_left(next(iter(self._left)))

    def forget(self, digests: Collection[str]) -> bool:
        """These copies are gone. Returns whether any of them was in use."""
        lost = [entry for entry in self._entries() if entry.scraper and entry.digest in digests]
        for entry in lost:
            self._set(key_of(entry.release), None)
        for name in [name for name, scraper in self._left.items() if scraper.ref.digest in digests]:
            self._drop_left(name)
        return bool(lost)

    def _entries(self) -> Iterator[VersionEntry]:
        return (entry for family in self._families.values() for entry in family.values())

    def _get(self, key: Key) -> VersionEntry | None:
        return self._families.get(key[0], {}).get(key)

    def _twin(self, release: Release) -> VersionEntry | None:
        """An entry with the same content and version that the source had in another place; None if there is none."""
        for entry in self._families.get(release.id, {}).values():
            if entry.scraper and (entry.release.version, entry.release.mark) == (release.version, release.mark):
                return entry
        return None

    def _is_held(self, key: Key) -> bool:
        entry = self._get(key)
        return entry is not None and entry.scraper is not None

    def _held(self, scraper_id: str, version: str) -> str:
        """The digest of a version that can run; empty when there is none."""
        family = self._families.get(scraper_id, {}).values()
        return next((entry.digest for entry in family if entry.scraper and entry.release.version == version), "")

    def _set(self, key: Key, entry: VersionEntry | None) -> None:
        before = self._get(key)
        if before == entry:
            return
        family = self._families.setdefault(key[0], {})
        if entry is None:
            del family[key]
        else:
            family[key] = entry
        if not family:
            del self._families[key[0]]
        self._size += (entry.size if entry else 0) - (before.size if before else 0)
        self._touch(key[0])

    def _drop(self, key: Key) -> None:
        before = self._get(key)
        self._set(key, None)
        if before is not None and before.scraper is not None:
            self.add_left(before.scraper)

    def _drop_left(self, name: Name) -> None:
        del self._left[name]
        self._touch(name[0])

    def _touch(self, scraper_id: str) -> None:
        self._touched.add(scraper_id)
        self.changes += 1

    def _pass_over(self, releases: Iterable[Release]) -> None:
        """Record versions that are offered but not downloaded ahead. Unchanged sets stay the same object."""
        older: dict[str, set[str]] = {}
        for release in releases:
            older.setdefault(release.id, set()).add(release.version)
        shown = {name: _same(self._older.get(name), frozenset(versions)) for name, versions in older.items()}
        if shown != self._older:
            self._older = shown
            self.changes += 1

    def _point(self, channels: Channels) -> None:
        """Move channels, except those whose new version could not be fetched yet."""
        late = {key[:2] for key in self.failures}
        pointed = {scraper_id: dict(given) for scraper_id, given in channels.items()}
        for scraper_id, version in late:
            before = self._channels.get(scraper_id, {})
            for channel, target in pointed.get(scraper_id, {}).items():
                if target == version and self._held(scraper_id, before.get(channel, "")):
                    pointed[scraper_id][channel] = before[channel]
        if pointed != self._channels:
            for scraper_id in pointed.keys() | self._channels.keys():
                self._touch(scraper_id)
            self._channels = pointed


def _must_fetch(entry: VersionEntry, release: Release) -> bool:
    """Whether the content changed, or a refused release is offered differently, e.g. with a corrected digest."""
    return entry.release.mark != release.mark or (entry.scraper is None and entry.release != release)


def _show(shown: dict[str, tuple[T, ...]], name: str, what: tuple[T, ...]) -> None:
    if what:
        shown[name] = what
    else:
        shown.pop(name, None)


def _same(before: frozenset[str] | None, now: frozenset[str]) -> frozenset[str]:
    return before if before == now and before is not None else now
