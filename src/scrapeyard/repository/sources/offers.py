"""An offer, checked: what a source says is bounded, and every name in it is one of ours."""

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.catalogue.channels import Channels, check_channels
from scrapeyard.repository.catalogue.semver import is_version
from scrapeyard.repository.sources.port import Fault, Offer, Release

MAX_RELEASES = 200_000
MAX_TEXT = 1000
"""Characters of a mark or a place."""


def check_offer(offer: Offer) -> Offer:
    """The same offer; what cannot be used in it has become a fault. Raises SourceUnavailable when there is too much."""
    if len(offer.releases) + len(offer.faults) > MAX_RELEASES or len(offer.mark) > MAX_TEXT:
        raise SourceUnavailable(f"it offers more than {MAX_RELEASES} versions; remove old ones, or split it")
    problems = {release: problem for release in offer.releases if (problem := _problem(release))}
    faults = [*offer.faults, *(_fault(release, problem) for release, problem in problems.items())]
    channels: Channels = {}
    try:
        channels = check_channels(offer.channels, "channels")
    except ScraperInvalid as error:
        faults.append(Fault(id="channels", place="channels", problem=error.message))
    good = tuple(release for release in offer.releases if release not in problems)
    return Offer(mark=offer.mark, releases=good, faults=tuple(faults), channels=channels)


def _problem(release: Release) -> str:
    if SCRAPER_ID.fullmatch(release.id) is None:
        return "not a scraper's id; write site/task"
    if not is_version(release.version):
        return f"{release.version[:64]!r} is not a semantic version; write 1.4.2"
    if len(release.mark) > MAX_TEXT or len(release.place) > MAX_TEXT:
        return f"its place or mark is longer than {MAX_TEXT} characters"
    return ""


def _fault(release: Release, problem: str) -> Fault:
    return Fault(id=release.id[:130], place=release.place[:200], problem=problem)
