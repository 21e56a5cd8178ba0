"""Which of the offered versions are kept ready, and in which order they are fetched."""

from collections.abc import Collection, Mapping

from scrapeyard.repository.catalogue.semver import is_prerelease, precedence
from scrapeyard.repository.sources.port import Release

Pins = Mapping[str, Collection[str]]
"""By scraper id: versions that are kept whatever their age."""


def select(releases: Collection[Release], versions: int, pointed: Pins, asked: Pins) -> list[tuple[int, Release]]:
    """The `versions` newest of each scraper, those that channels point to and those that were asked for, each with its
    rank, the best first: the version that answers by default and those of channels, then by age."""
    by_id: dict[str, list[Release]] = {}
    for release in releases:
        by_id.setdefault(release.id, []).append(release)
    chosen: list[tuple[int, Release]] = []
    for scraper_id, family in by_id.items():
        kept = asked.get(scraper_id, ())
        ranks = _ranks({release.version for release in family}, pointed.get(scraper_id, ()))
        found = ((ranks[release.version], release) for release in family)
        chosen += [(rank, release) for rank, release in found if rank < versions or release.version in kept]
    return sorted(chosen, key=_order)


def _ranks(versions: Collection[str], pointed: Collection[str]) -> dict[str, int]:
    """The newest release is among the first, however many prereleases are newer."""
    newest = sorted(versions, key=precedence, reverse=True)
    ranks = {version: rank for rank, version in enumerate(newest)}
    default = next((version for version in newest if not is_prerelease(version)), newest[0])
    return ranks | dict.fromkeys((version for version in (default, *pointed) if version in ranks), 0)


def _order(ranked: tuple[int, Release]) -> tuple[int, str, str]:
    rank, release = ranked
    return rank, release.id, release.place
