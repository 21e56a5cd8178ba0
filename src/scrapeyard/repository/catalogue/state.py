"""A source's last offer, saved on disk: a process that starts while its repository is away serves that."""

import hashlib
import os
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct, field

from scrapeyard.repository.catalogue.entries import Stock, VersionEntry, key_of
from scrapeyard.repository.manifest.channels import Channels
from scrapeyard.repository.sources.port import Fault, Offer, Release
from scrapeyard.telemetry.events import get_log

log = get_log("repository")
FORMAT = 1
MAX_BYTES = 256 * 1024 * 1024


class Kept(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release and the copy that was made of it."""

    release: Release
    digest: str = ""
    """Digest of the copy; empty if there is no copy that can run."""
    beside: str = ""


class Left(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A version that the source no longer offers."""

    id: str
    version: str
    digest: str


class State(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that is remembered of one source."""

    format: int = FORMAT
    mark: str = ""
    kept: tuple[Kept, ...] = ()
    left: tuple[Left, ...] = ()
    faults: tuple[Fault, ...] = ()
    channels: Channels = field(default_factory=dict)


def state_of(offer: Offer, stock: Stock) -> State:
    """Build the state to save from the source's last offer and the versions held of it."""
    held = {key_of(entry.release): entry for entry in stock.held()}
    left = (scraper.ref for family in stock.left.values() for scraper in family)
    return State(
        mark=offer.mark,
        kept=tuple(_kept(release, held.get(key_of(release))) for release in offer.releases),
        left=tuple(Left(id=ref.id, version=ref.version, digest=ref.digest) for ref in left),
        faults=offer.faults,
        channels=stock.channels,
    )


def offer_of(state: State) -> Offer:
    """Rebuild the offer from the saved state."""
    releases = tuple(kept.release for kept in state.kept)
    return Offer(mark=state.mark, releases=releases, faults=state.faults, channels=state.channels)


def _kept(release: Release, entry: VersionEntry | None) -> Kept:
    if entry is None:
        return Kept(release=release)
    return Kept(release=entry.release, digest=entry.digest, beside=entry.beside)


class StateFile:
    """One file for each source, replaced as a whole. Blocking; use it from a thread."""

    def __init__(self, folder: Path, kind: str, name: str) -> None:
        self._source = name
        self._path = folder / f"{hashlib.sha256(f'{kind} {name}'.encode()).hexdigest()[:24]}.json"

    def read(self) -> State:
        """The saved state; empty if there is no file, or if it cannot be used, which is logged."""
        try:
            if self._path.stat().st_size > MAX_BYTES:
                raise ValueError(f"larger than {MAX_BYTES >> 20} MB")
            state = msgspec.json.decode(self._path.read_bytes(), type=State)
            if state.format != FORMAT:
                raise ValueError(f"format {state.format}; this version reads {FORMAT}")
        except FileNotFoundError:
            return State()
        except (OSError, ValueError, RecursionError) as error:
            log.warning("repository.state_unreadable", source=self._source, error=str(error)[:200])
            return State()
        return state

    def answered_at(self) -> float | None:
        """When the source last answered whoever wrote the file; None if there is none."""
        try:
            return self._path.stat().st_mtime
        except OSError:
            return None

    def note_answer(self, answered_at: float) -> None:
        """Remember when the source answered, as the time of the file. Raises OSError, also if there is no file."""
        os.utime(self._path, (answered_at, answered_at))

    def write(self, state: State) -> None:
        """Replace the file; a reader sees the old one or the new one. Raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".new-", dir=self._path.parent)
        fresh = Path(name)
        try:
            with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
                stream.write(msgspec.json.encode(state))
            fresh.replace(self._path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
