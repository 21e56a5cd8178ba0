"""The source: a place that offers scrapers. It says what it has; the catalogue decides what to download and keep."""

from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.manifest.channels import Channels, check_channels
from scrapeyard.repository.manifest.semver import is_version


class Release(Struct, frozen=True, kw_only=True):
    """One version of one scraper as a source offers it, before anything of it is downloaded."""

    id: str
    version: str
    mark: str
    """Changes with the content: the digest of an archive, the id of a Git tree, the stamp of a folder."""
    place: str
    """Where in the source it is, in its author's terms: a folder, a tag, a key. Only `fetch` interprets it."""
    size: int = 0
    """Bytes to download; 0 when not known before."""
    digest: str = ""
    """Digest that the content must have; empty if the source does not say."""


class Fault(Struct, frozen=True, kw_only=True):
    """Something that looks like a scraper but cannot be offered."""

    id: str
    """Derived from its place if it does not say."""
    version: str = ""
    """Empty when it does not say."""
    place: str
    problem: str


class Offer(Struct, frozen=True, kw_only=True):
    """Everything that a source holds now."""

    mark: str
    """Pass it to the next `poll`: an entity tag, a commit id. Empty if the source has none."""
    releases: tuple[Release, ...]
    faults: tuple[Fault, ...] = ()
    channels: dict[str, dict[str, str]] = field(default_factory=dict)
    """By scraper id: channel name → version. What an operator moves here by the API wins over these."""


class Source(Protocol):
    """Where scrapers come from. Several tasks may call `fetch` at once; no other methods may run concurrently."""

    name: str
    """Shown in listings, logs and metrics; without credentials."""
    kind: str
    """`folder`, `git`, `http`, `s3` or `installed`."""
    is_mutable: bool
    """Whether the content of a version may change, as in a folder that its author edits. Elsewhere a change is an error
    of the source, and the known content stays."""
    needs_signatures: bool
    """Whether its scrapers must be signed if the operator has set keys. False if the operator put them there, so that a
    signature would prove nothing."""

    async def poll(self, mark: str) -> Offer | None:
        """What there is now; None when nothing changed since the offer of this mark. Raises SourceUnavailable."""

    async def fetch(self, release: Release, folder: Path) -> Path:
        """Get the files of a release and return where they are: `folder`, which is empty and removed by the caller, or
        a folder of the source itself. Bounded by the limits of `repository.files`. Raises SourceUnavailable (try later;
        nothing is wrong with the release) or ScraperInvalid (its author must fix it)."""

    async def stop(self) -> None:
        """Release connections and processes. May be called twice."""


MAX_RELEASES = 200_000
MAX_TEXT = 1000
"""Characters of a mark or a place."""


def validate_offer(offer: Offer) -> Offer:
    """The same offer with unusable parts turned into faults. Raises SourceUnavailable if there is too much."""
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
