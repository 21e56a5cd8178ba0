"""Which scraper a name means. Built whole, then only read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scrapeyard.errors import BadRequest, ScraperInvalid, ScraperNotFound, SourceUnavailable
from scrapeyard.model import SCRAPER_ID, Scraper
from scrapeyard.repository.channels import Channels, is_channel
from scrapeyard.repository.entries import Entry, Stock, listings_of
from scrapeyard.repository.port import STABLE, Listing
from scrapeyard.repository.ranges import MAX_LENGTH, parse_range
from scrapeyard.repository.versions import is_prerelease, is_version, precedence

RESERVED = "builtin/"
BETA = "beta"
MAX_REMEMBERED = 10_000
"""Names whose meaning is kept; callers choose the names, so there must be a bound."""


class Index:
    """Every listing, by id and version; the first source that has a scraper owns it."""

    def __init__(self, builtins: Mapping[str, Scraper], stocks: Sequence[Stock], moved: Channels | None = None) -> None:
        self._families = _own(builtins, stocks)
        self._keep_left(stocks)
        self._remembered: dict[str, Scraper] = {}
        for family in self._families.values():
            family.settle((moved or {}).get(family.id, {}))
        built_in = (_builtin(scraper) for scraper in builtins.values())
        found = (listing for family in self._families.values() for listing in family.listings)
        self.listings = tuple(sorted((*built_in, *found), key=_order))
        for scraper in builtins.values():
            self._families[scraper.ref.id] = _of_builtin(scraper, (moved or {}).get(scraper.ref.id, {}))

    def resolve(self, wanted: str) -> Scraper:
        """As the port says."""
        known = self._remembered.get(wanted)
        if known is not None:
            return known
        scraper_id, version = split(wanted)
        family = self._families.get(scraper_id)
        if family is None:
            raise ScraperNotFound(f"no scraper {scraper_id}; GET /api/scrapers lists what there is")
        scraper = family.resolve(version)
        if len(self._remembered) < MAX_REMEMBERED:
            self._remembered[wanted] = scraper
        return scraper

    def pointed_left(self) -> set[str]:
        """Digests of versions that no source offers any more, but a channel points to."""
        return {digest for family in self._families.values() for digest in family.pointed_left()}

    def _keep_left(self, stocks: Sequence[Stock]) -> None:
        for stock in stocks:
            for scraper in stock.left:
                family = self._families.get(scraper.ref.id)
                if family is None:
                    family = self._families[scraper.ref.id] = _Family(scraper.ref.id, {})
                family.left.setdefault(scraper.ref.version, scraper)

    def channels(self, scraper_id: str) -> Mapping[str, str]:
        """Channel → version, as now in force."""
        family = self._families.get(scraper_id)
        return family.channels if family else {}


def split(wanted: str) -> tuple[str, str]:
    """The id, and what stands after the @; empty when there is none. Raises BadRequest."""
    scraper_id, at, version = wanted[:300].partition("@")
    if SCRAPER_ID.fullmatch(scraper_id) is None:
        raise BadRequest(f"{scraper_id[:100]!r} is not a scraper's name; write site/task or site/task@1.2.3")
    if at and not 0 < len(version) <= MAX_LENGTH:
        raise BadRequest(f"{version[:MAX_LENGTH]!r} is not a version; write {scraper_id}@1.2.3 or {scraper_id}@^1.2")
    return scraper_id, version


class _Family:
    """All versions of one scraper. Filled, then settled once, then only read."""

    def __init__(self, scraper_id: str, channels: Mapping[str, str]) -> None:
        self.id = scraper_id
        self.channels = dict(channels)
        self.listings: list[Listing] = []
        self.left: dict[str, Scraper] = {}
        """Versions that have left the source: they answer to their exact name and to a channel, and are not listed."""
        self._found: list[tuple[Listing, bool]] = []
        self._by_version: dict[str, Listing] = {}
        self._waiting: dict[str, Listing] = {}
        self._newest: list[tuple[tuple[Any, ...], Listing]] = []

    @property
    def only_waits(self) -> bool:
        """Whether nothing of it is here yet."""
        return all(waits for _, waits in self._found)

    def add(self, listing: Listing, waits: bool) -> None:
        """One more listing, before `settle`."""
        self._found.append((listing, waits))

    def settle(self, moved: Mapping[str, str]) -> None:
        """Sort what was added, and take over the channels that operators moved."""
        self.channels.update(moved)
        waiting = {id(listing) for listing, waits in self._found if waits}
        self.listings = sorted(_merge(listing for listing, _ in self._found), key=_order)
        for listing in self.listings:
            (self._waiting if id(listing) in waiting else self._by_version).setdefault(listing.version, listing)
        named = [listing for version, listing in self._by_version.items() if version]
        self._newest = sorted(((precedence(listing.version), listing) for listing in named), reverse=True, key=_first)
        self._found = []

    def resolve(self, version: str) -> Scraper:
        """The scraper for what stands after the @."""
        if not version:
            return self._answer(self._pointed(STABLE), version)
        if is_version(version):
            return self._answer(self._exact(version), version)
        if is_channel(version):
            return self._answer(self._pointed(version), version)
        return self._answer(self._in_range(version), version)

    def _answer(self, listing: Listing | None, version: str) -> Scraper:
        if listing is None and not self.listings:
            raise ScraperNotFound(f"no scraper {self.id}; GET /api/scrapers lists what there is")
        if listing is None:
            raise ScraperNotFound(f"no version {version} of {self.id}; there are: {self._known()}")
        if listing.scraper is not None:
            return listing.scraper
        if self._waiting.get(listing.version) is listing:
            raise SourceUnavailable(f"{self.id}@{listing.version} is not here yet: {listing.problem}")
        raise ScraperInvalid(listing.problem)

    def _pointed(self, channel: str) -> Listing | None:
        version = self.channels.get(channel)
        if version is not None:
            return self._pinned(channel, version)
        if channel == STABLE:
            return self._default()
        if channel == BETA:
            return next((listing for _, listing in self._newest), None) or self._default()
        known = ", ".join(sorted({STABLE, BETA, *self.channels}))
        raise ScraperNotFound(f"{self.id} has no channel {channel}; there are: {known}")

    def pointed_left(self) -> set[str]:
        """Digests of what is only here because a channel points to it."""
        return {self.left[version].ref.digest for version in self.channels.values() if version in self.left}

    def _exact(self, version: str) -> Listing | None:
        if version in self._by_version:
            return self._by_version[version]
        if version in self.left:
            return Listing(id=self.id, version=version, scraper=self.left[version])
        return self._waiting.get(version)

    def _pinned(self, channel: str, version: str) -> Listing:
        listing = self._exact(version)
        if listing is None:
            raise ScraperNotFound(
                f"channel {channel} of {self.id} points to {version}, which is not here; there are: {self._known()}"
            )
        return listing

    def _default(self) -> Listing | None:
        """The newest release. It answers even when it is broken: going back to an older one must be somebody's choice.

        Without a release, the newest prerelease; without any known version, the listing that tells the problem.
        """
        release = next((listing for _, listing in self._newest if not is_prerelease(listing.version)), None)
        newest = next((listing for _, listing in self._newest), None)
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


def _own(builtins: Mapping[str, Scraper], stocks: Sequence[Stock]) -> dict[str, _Family]:
    """Each scraper of the first source that has it. One that is still to be downloaded does not displace another's."""
    families: dict[str, _Family] = {}
    for stock in stocks:
        ours: dict[str, _Family] = {}
        for entry in stock.entries:
            family = ours.get(entry.release.id)
            if family is None:
                family = ours[entry.release.id] = _Family(entry.release.id, stock.channels.get(entry.release.id, {}))
            _fill(family, entry, stock.source, builtins)
        for scraper_id, family in ours.items():
            owner = families.get(scraper_id)
            if owner is None or (owner.only_waits and not family.only_waits):
                families[scraper_id] = family
    return families


def _fill(family: _Family, entry: Entry, source: str, builtins: Mapping[str, Scraper]) -> None:
    for listing in listings_of(entry, source):
        family.add(_unreserved(listing, builtins), entry.waits)


def _merge(found: Iterable[Listing]) -> list[Listing]:
    """One listing for each version that can run; what cannot run stands beside it."""
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
    problem = f"{first.id}@{first.version} stands with different content in {places}; give one another version"
    return _broken(first, problem)


def _unreserved(listing: Listing, builtins: Mapping[str, Scraper]) -> Listing:
    if listing.id not in builtins and not listing.id.startswith(RESERVED):
        return listing
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


def _of_builtin(scraper: Scraper, moved: Mapping[str, str]) -> _Family:
    family = _Family(scraper.ref.id, {})
    family.add(_builtin(scraper), waits=False)
    family.settle(moved)
    return family


def _builtin(scraper: Scraper) -> Listing:
    return Listing(id=scraper.ref.id, version=scraper.ref.version, scraper=scraper)


def _first(pair: tuple[Any, Listing]) -> Any:
    return pair[0]


def _order(listing: Listing) -> tuple[object, ...]:
    """Of equal versions, one that can run comes first and is the one that answers."""
    return listing.id, precedence(listing.version) if listing.version else (), listing.scraper is None
