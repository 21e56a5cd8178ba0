"""One look at the folder: what is there, what changed, what is wrong. Blocking; runs in a thread."""

import time
import tomllib
from pathlib import Path
from typing import Any

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.cache import Cache
from scrapeyard.repository.files import ChangedMeanwhile, SourceFile
from scrapeyard.repository.folder import find_scrapers, scraper_files
from scrapeyard.repository.loading import Terms, load_files
from scrapeyard.repository.manifest import FILE_NAME, MAX_BYTES
from scrapeyard.repository.port import Listing
from scrapeyard.repository.versions import is_version

SETTLING_NS = 100_000_000
"""A file younger than this may change again without a new time stamp, so it is read once more."""


class Entry(Struct, frozen=True, kw_only=True):
    """What one folder holds."""

    listing: Listing
    stamp: int | None
    """Equal when no file changed; None when the folder must be read again at the next look."""


Entries = dict[Path, Entry]


class Look(Struct, frozen=True, kw_only=True):
    """The outcome of one look."""

    entries: Entries
    cut: bool


class Scanner:
    """Looks at one folder of scrapers, remembering nothing: what was known is passed in."""

    def __init__(self, *, root: Path, cache: Cache, terms: Terms) -> None:
        self._root = root
        self._cache = cache
        self._terms = terms

    def look(self, known: Entries) -> Look:
        """Everything that is there now. Raises OSError when the folder itself cannot be read.

        An unchanged scraper costs only stat calls. What lies below an unreadable folder stays as it was known.
        """
        real, avoid = self._root.resolve(), self._cache.folder.resolve()
        inside = avoid if avoid.is_relative_to(real) else None
        found = find_scrapers(self._root, inside)
        entries = {folder: self._entry(folder, (real, inside), known.get(folder)) for folder in found.folders}
        for folder, entry in known.items():
            if any(folder.is_relative_to(lost) for lost in found.unreadable):
                entries.setdefault(folder, entry)
        return Look(entries=entries, cut=found.cut)

    def _entry(self, folder: Path, bounds: tuple[Path, Path | None], before: Entry | None) -> Entry:
        try:
            root, avoid = bounds
            files = scraper_files(folder, root, self._label(folder), avoid)
            stamp = _stamp(files)
            if before is not None and stamp is not None and before.stamp == stamp:
                return before
            return self._load(folder, files, stamp, before)
        except ScraperInvalid as error:
            return self._invalid(folder, error.message, before, None)
        except ChangedMeanwhile:
            return _again(before) or self._invalid(
                folder, f"{self._label(folder)}: changing at this moment", None, None
            )
        except OSError as error:
            problem = f"{self._label(folder)}: {error.strerror}; check its permissions and the disk"
            return _again(before) or self._invalid(folder, problem, None, None)

    def _load(self, folder: Path, files: tuple[SourceFile, ...], stamp: int | None, before: Entry | None) -> Entry:
        try:
            scraper = load_files(files, self._cache, self._terms, self._label(folder))
        except ScraperInvalid as error:
            return self._invalid(folder, error.message, before, stamp)
        listing = Listing(id=scraper.ref.id, version=scraper.ref.version, scraper=scraper)
        return Entry(listing=listing, stamp=stamp)

    def _invalid(self, folder: Path, problem: str, before: Entry | None, stamp: int | None) -> Entry:
        scraper_id, version = self._identity(folder, before)
        return Entry(listing=Listing(id=scraper_id, version=version, scraper=None, problem=problem), stamp=stamp)

    def _identity(self, folder: Path, before: Entry | None) -> tuple[str, str]:
        """What the manifest says, else what the folder last was, else what its path suggests."""
        table = _table(folder / FILE_NAME)
        named = table.get("id")
        if isinstance(named, str) and SCRAPER_ID.fullmatch(named):
            version = table.get("version")
            return named, version if isinstance(version, str) and is_version(version) else ""
        if before is not None:
            return before.listing.id, before.listing.version
        guess = "/".join(folder.absolute().parts[-2:])
        return (guess if SCRAPER_ID.fullmatch(guess) else self._label(folder)), ""

    def _label(self, folder: Path) -> str:
        """The folder as its author knows it: relative, so that no path of the machine reaches a caller."""
        relative = folder.relative_to(self._root).as_posix()
        return folder.name if relative == "." else relative


def _stamp(files: tuple[SourceFile, ...]) -> int | None:
    newest = max((max(file.stamp[0], file.stamp[1]) for file in files), default=0)
    if 0 <= time.time_ns() - newest < SETTLING_NS:
        return None
    return hash(tuple((file.name, file.size, file.stamp) for file in files))


def _again(before: Entry | None) -> Entry | None:
    return None if before is None else Entry(listing=before.listing, stamp=None)


def _table(path: Path) -> dict[str, Any]:
    """The manifest as far as it can be read; empty when it cannot."""
    try:
        with path.open("rb") as stream:
            return tomllib.loads(stream.read(MAX_BYTES).decode())
    except (OSError, ValueError, RecursionError):
        return {}
