"""The source: a place that offers scrapers. It says what it has; the catalogue decides what to download and keep.

A source keeps nothing that it cannot lose: its answers are checked, its downloads land in a folder that is thrown away
unless all of it is good. Nothing that comes out of one is trusted: every answer is bounded in size and time.
"""

from pathlib import Path
from typing import Protocol

from msgspec import Struct, field


class Release(Struct, frozen=True, kw_only=True):
    """One version of one scraper as a source offers it, before anything of it is downloaded."""

    id: str
    version: str
    mark: str
    """Changes when the content does: the digest of an archive, the id of a Git tree, the stamp of a folder."""
    place: str
    """Where in the source it is, in words its author knows: a folder, a tag, a key. Understood by `fetch` alone."""
    size: int = 0
    """Bytes to download; 0 when not known before."""
    digest: str = ""
    """Of the content, which must then have it; empty when the source does not say."""


class Fault(Struct, frozen=True, kw_only=True):
    """Something that looks like a scraper but cannot be offered."""

    id: str
    """What its place suggests when it does not say."""
    version: str = ""
    """Empty when it does not say."""
    place: str
    problem: str


class Offer(Struct, frozen=True, kw_only=True):
    """Everything that a source holds now."""

    mark: str
    """What to ask with the next time: an entity tag, a commit id. Empty when the source knows nothing of the kind."""
    releases: tuple[Release, ...]
    faults: tuple[Fault, ...] = ()
    channels: dict[str, dict[str, str]] = field(default_factory=dict)
    """By scraper id: channel name → version. What an operator moves here by the API wins over these."""


class Source(Protocol):
    """Where scrapers come from. `fetch` may be called by several tasks at once; nothing else beside another call."""

    name: str
    """Shown in listings, logs and metrics; without credentials."""
    kind: str
    """`folder`, `git`, `http`, `s3` or `installed`."""
    is_mutable: bool
    """Whether the same version may come with other content, as in a folder that its author edits. Elsewhere that is a
    fault of the source, and the version that was known stays."""
    needs_signatures: bool
    """Whether its scrapers must be signed where the operator has set keys. False where the operator put them there, so
    that a signature would prove nothing."""

    async def look(self, mark: str) -> Offer | None:
        """What there is now; None when nothing changed since the offer of this mark. Raises SourceUnavailable."""

    async def fetch(self, release: Release, folder: Path) -> Path:
        """Get the files of a release; returns where they are: `folder`, which is empty and the caller's to remove, or
        a folder that the source has anyway. Bounded by the limits of `repository.files`. Raises SourceUnavailable (try
        later; nothing is wrong with the release) or ScraperInvalid (its author must mend it)."""

    async def stop(self) -> None:
        """Let go of connections and processes. May be called twice."""
