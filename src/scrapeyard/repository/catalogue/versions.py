"""All versions of one scraper, and which of them answers to a name. Built once, then only read."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from msgspec import Struct, field

from scrapeyard.errors import ScraperInvalid, ScraperNotFound, SourceUnavailable
from scrapeyard.model import Scraper
from scrapeyard.repository.catalogue.entries import VersionEntry, listings_of
from scrapeyard.repository.manifest.channels import is_channel
from scrapeyard.repository.manifest.semver import is_prerelease, is_version, parse_range, precedence
from scrapeyard.repository.port import STABLE, Listing

BETA = "beta"


class VersionSet(Struct, frozen=True, kw_only=True):
    """What a family is made of."""

    source: str = ""
    entries: tuple[VersionEntry, ...] = ()
    channels: Mapping[str, str] = field(default_factory=dict)
    left: tuple[Scraper, ...] = ()
    """Versions that no source offers any more: resolved by exact version or channel only, and not listed."""
    older: frozenset[str] = frozenset()
    """Versions that are offered but not downloaded ahead; `obtain` fetches them."""
    reserved: bool = False
    """Whether the name is reserved for a built-in scraper, so that none of these may run."""

    def same(self, other: "VersionSet") -> bool:
        """Whether the other set would resolve equally; compares entries by identity, which is fast."""
        return (
            self.entries is other.entries
            and self.left is other.left
            and self.older is other.older
            and (self.source, self.reserved) == (other.source, other.reserved)
            and self.channels == other.channels
        )


class ScraperVersions:
    """Resolves the part after the @ in a name."""

    def __init__(self, scraper_id: str, members: VersionSet, builtin: Scraper | None = None) -> None:
        self.id = scraper_id
        self.members = members
        self.channels = members.channels
        self.listings = _listings(members)
        """Oldest first; among equal versions, one that can run comes first."""
        self._left = {scraper.ref.version: scraper for scraper in members.left}
        self._waiting: dict[str, Listing] = {}
        self._by_version: dict[str, Listing] = {}
        if builtin is not None:
            self.listings = (Listing(id=scraper_id, version=builtin.ref.version, scraper=builtin), *self.listings)
            self._by_version[builtin.ref.version] = self.listings[0]
        else:
            self._divide()
        named = ((precedence(version), listing) for version, listing in self._by_version.items() if version)
        self._newest: list[tuple[tuple[Any, ...], Listing]] = sorted(named, key=itemgetter(0), reverse=True)

    def resolve(self, version: str) -> Scraper:
        """The scraper; `version` is empty when none was asked for. Raises as the catalogue's port says."""
        if not version:
            return self._answer(self._pointed(STABLE), "")
        if is_version(version):
            return self._answer(self._exact(version), version)
        if is_channel(version) and not self._is_short_version(version):
            return self._answer(self._pointed(version), version)
        return self._answer(self._in_range(version), version)

    def _is_short_version(self, text: str) -> bool:
        """Whether `v1` means a range here: there is no channel of that name."""
        return text not in self.channels and text[:1] == "v" and text[1:].isdecimal()

    def pointed_left(self) -> set[str]:
        """Digests of copies that must stay only because a channel points to them."""
        return {self._left[version].ref.digest for version in self.channels.values() if version in self._left}

    def _divide(self) -> None:
        waiting = {(entry.release.version, entry.release.place) for entry in self.members.entries if entry.waits}
        for listing in self.listings:
            waits = listing.scraper is None and (listing.version, listing.place) in waiting
            (self._waiting if waits else self._by_version).setdefault(listing.version, listing)

    def _answer(self, listing: Listing | None, version: str) -> Scraper:
        if listing is None and version in self.members.older:
            raise SourceUnavailable(f"{self.id}@{version} is not kept ready here; try again", obtainable=True)
        if listing is None and not self.listings:
            raise ScraperNotFound(f"no scraper {self.id}")
        if listing is None:
            raise ScraperNotFound(f"no version {version} of {self.id}; there are: {self._known()}")
        if listing.scraper is not None:
            return listing.scraper
        if self._waiting.get(listing.version) is listing:
            raise SourceUnavailable(f"{self.id}@{listing.version} is not here yet: {listing.problem}")
        raise ScraperInvalid(listing.problem)

    def _exact(self, version: str) -> Listing | None:
        if version in self._by_version:
            return self._by_version[version]
        if version in self._left:
            return Listing(id=self.id, version=version, scraper=self._left[version])
        return self._waiting.get(version)

    def _pointed(self, channel: str) -> Listing | None:
        version = self.channels.get(channel)
        if version is not None:
            return self._target(channel, version)
        if channel == STABLE:
            return self._default()
        if channel == BETA:
            return self._newest[0][1] if self._newest else self._default()
        if not self.listings:
            return None
        known = ", ".join(sorted({STABLE, BETA, *self.channels}))
        raise ScraperNotFound(f"{self.id} has no channel {channel}; there are: {known}")

    def _target(self, channel: str, version: str) -> Listing | None:
        listing = self._exact(version)
        if listing is None and version not in self.members.older:
            raise ScraperNotFound(
                f"channel {channel} of {self.id} points to {version}, which is not here; there are: {self._known()}"
            )
        return listing

    def _default(self) -> Listing | None:
        """The newest release, even if it is broken: falling back to an older one must be an explicit choice.

        Without a release, the newest prerelease; without any known version, the listing that states the problem.
        """
        release = next((listing for _, listing in self._newest if not is_prerelease(listing.version)), None)
        newest = self._newest[0][1] if self._newest else None
        waiting = next(reversed(self._waiting.values()), None)
        return release or newest or self._by_version.get("") or waiting

    def _in_range(self, text: str) -> Listing | None:
        wanted = parse_range(text)
        for key, listing in self._newest:
            if wanted.holds(key):
                return listing
        waiting = [listing for version, listing in self._waiting.items() if version]
        return next((listing for listing in reversed(waiting) if wanted.holds(precedence(listing.version))), None)

    def _known(self) -> str:
        return ", ".join(listing.version for _, listing in reversed(self._newest[:10])) or "none"


def _listings(members: VersionSet) -> tuple[Listing, ...]:
    found = (listing for entry in members.entries for listing in listings_of(entry, members.source))
    if members.reserved:
        found = (_taken(listing) for listing in found)
    return tuple(sorted(_merge(found), key=_order))


def _merge(found: Iterable[Listing]) -> list[Listing]:
    """One listing for each version that can run; those that cannot run stay separate."""
    merged: list[Listing] = []
    good: dict[str, list[Listing]] = {}
    for listing in found:
        if listing.scraper is None:
            merged.append(listing)
        else:
            good.setdefault(listing.version, []).append(listing)
    return merged + [same[0] if len(same) == 1 else _one(same) for same in good.values()]


def _one(same: list[Listing]) -> Listing:
    first = same[0]
    if len({listing.scraper.ref.digest for listing in same if listing.scraper}) == 1:
        return first
    places = ", ".join(sorted(listing.place for listing in same)[:5])
    return _broken(
        first, f"{first.id}@{first.version} stands with different content in {places}; give one another version"
    )


def _taken(listing: Listing) -> Listing:
    return _broken(listing, f"{listing.id}: this name belongs to a built-in scraper; choose another id")


def _broken(listing: Listing, problem: str) -> Listing:
    return Listing(
        id=listing.id,
        version=listing.version,
        scraper=None,
        problem=problem,
        source=listing.source,
        place=listing.place,
    )


def _order(listing: Listing) -> tuple[Any, ...]:
    return precedence(listing.version) if listing.version else (), listing.scraper is None
