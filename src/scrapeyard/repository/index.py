"""Which scraper a name means. Built whole, then only read."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from scrapeyard.errors import BadRequest, ScraperInvalid, ScraperNotFound
from scrapeyard.model import SCRAPER_ID, Scraper
from scrapeyard.repository.port import Listing
from scrapeyard.repository.versions import MAX_LENGTH, is_prerelease, is_version, precedence

RESERVED = "builtin/"


class Index:
    """Every listing, by id and version."""

    def __init__(self, builtins: Mapping[str, Scraper], found: Iterable[tuple[Path, Listing]]) -> None:
        listings = [_builtin(scraper) for scraper in builtins.values()]
        listings += _merge((folder, _unreserved(listing, builtins)) for folder, listing in found)
        self.listings = tuple(sorted(listings, key=_order))
        self._by_id: dict[str, dict[str, Listing]] = {}
        for listing in self.listings:
            if listing.id in builtins and listing.scraper is None:
                continue  # it took a built-in's name: told in the listing, but the built-in answers
            self._by_id.setdefault(listing.id, {}).setdefault(listing.version, listing)

    def resolve(self, wanted: str) -> Scraper:
        """As the port says."""
        scraper_id, version = _split(wanted)
        versions = self._by_id.get(scraper_id)
        if versions is None:
            raise ScraperNotFound(f"no scraper {scraper_id}; GET /api/scrapers lists what there is")
        listing = versions.get(version) if version else _default(versions)
        if listing is None:
            known = ", ".join(sorted((name for name in versions if name), key=precedence)[-10:]) or "none"
            raise ScraperNotFound(f"no version {version} of {scraper_id}; there are: {known}")
        if listing.scraper is None:
            raise ScraperInvalid(listing.problem)
        return listing.scraper


def _split(wanted: str) -> tuple[str, str]:
    scraper_id, at, version = wanted[:300].partition("@")
    if SCRAPER_ID.fullmatch(scraper_id) is None:
        raise BadRequest(f"{scraper_id[:100]!r} is not a scraper's name; write site/task or site/task@1.2.3")
    if at and not is_version(version):
        raise BadRequest(f"{version[:MAX_LENGTH]!r} is not a version; write {scraper_id}@1.2.3")
    return scraper_id, version


def _default(versions: Mapping[str, Listing]) -> Listing:
    """The newest release. It answers even when it is broken: going back to an older one must be somebody's choice.

    Without a release, the newest prerelease; without any known version, the listing that tells the problem.
    """
    named = sorted((version for version in versions if version), key=precedence)
    releases = [version for version in named if not is_prerelease(version)]
    return versions[(releases or named or [""])[-1]]


def _merge(found: Iterable[tuple[Path, Listing]]) -> list[Listing]:
    """One listing for each id and version that can run; what cannot run stands beside it."""
    merged: list[Listing] = []
    good: dict[tuple[str, str], list[tuple[Path, Listing]]] = {}
    for folder, listing in found:
        if listing.scraper is None:
            merged.append(listing)
        else:
            good.setdefault((listing.id, listing.version), []).append((folder, listing))
    return merged + [_one(same) for same in good.values()]


def _one(same: list[tuple[Path, Listing]]) -> Listing:
    _, first = same[0]
    digests = {listing.scraper.ref.digest for _, listing in same if listing.scraper}
    if len(digests) == 1:
        return first
    folders = ", ".join(sorted(folder.as_posix() for folder, _ in same)[:5])
    problem = f"{first.id}@{first.version} stands with different content in {folders}; give one another version"
    return Listing(id=first.id, version=first.version, scraper=None, problem=problem)


def _unreserved(listing: Listing, builtins: Mapping[str, Scraper]) -> Listing:
    if listing.id not in builtins and not listing.id.startswith(RESERVED):
        return listing
    problem = f"{listing.id}: this name belongs to a built-in scraper; choose another id"
    return Listing(id=listing.id, version=listing.version, scraper=None, problem=problem)


def _builtin(scraper: Scraper) -> Listing:
    return Listing(id=scraper.ref.id, version=scraper.ref.version, scraper=scraper)


def _order(listing: Listing) -> tuple[object, ...]:
    """Of equal versions, one that can run comes first and is the one that answers."""
    return listing.id, precedence(listing.version) if listing.version else (), listing.scraper is None
