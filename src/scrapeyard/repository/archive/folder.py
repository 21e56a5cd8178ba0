"""Finding scrapers in a folder tree."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from scrapeyard.repository.archive.files import SourceFile, is_skipped, list_files
from scrapeyard.repository.manifest.manifest import FILE_NAME

MAX_DEPTH = 4
MAX_SCRAPERS = 10_000
MAX_FOLDERS = 100_000


class Found(Struct, frozen=True, kw_only=True):
    """A look at a folder tree."""

    folders: tuple[Path, ...]
    """Each has a manifest."""
    unreadable: tuple[Path, ...] = ()
    """What lies below these is not known."""
    cut: bool = False
    """Whether there was more than we look at."""


def find_scrapers(root: Path, avoid: Path | None = None) -> Found:
    """Every folder with a manifest, up to four levels below `root`. Raises OSError when `root` itself cannot be read.

    Hidden folders are passed over; a link is followed only where it stays inside, and each folder is seen once.
    `avoid` is the cache: the copies in it are not scrapers of their own.
    """
    search = _Search(root.resolve(), avoid)
    for _ in search.look(root, search.root, 0):
        if len(search.folders) >= MAX_SCRAPERS or len(search.seen) >= MAX_FOLDERS:
            search.cut = True
            break
    return Found(folders=tuple(search.folders), unreadable=tuple(search.unreadable), cut=search.cut)


class _Search:
    def __init__(self, root: Path, avoid: Path | None) -> None:
        self.root = root
        self._avoid = avoid
        self.seen: set[Path] = set()
        self.folders: list[Path] = []
        self.unreadable: list[Path] = []
        self.cut = False

    def look(self, folder: Path, real: Path, depth: int) -> Iterator[None]:
        """Yields after each folder, so that the caller may end the search. `real` is the folder without links."""
        try:
            below = self._enter(folder, real)
        except OSError:
            if depth == 0:
                raise
            self.unreadable.append(folder)
            return
        yield
        for child, its_real in below if depth < MAX_DEPTH else ():
            yield from self.look(child, its_real, depth + 1)

    def _enter(self, folder: Path, real: Path) -> list[tuple[Path, Path]]:
        if real in self.seen or real == self._avoid or not real.is_relative_to(self.root):
            return []
        self.seen.add(real)
        below: list[tuple[Path, Path]] = []
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name == FILE_NAME and not entry.is_dir():
                    self.folders.append(folder)
                elif entry.is_dir() and not is_skipped(entry.name):
                    child = folder / entry.name
                    below.append((child, child.resolve() if entry.is_symlink() else real / entry.name))
        return below


def scraper_files(folder: Path, root: Path, label: str, avoid: Path | None = None) -> tuple[SourceFile, ...]:
    """The files of the scraper in `folder`. Raises ScraperInvalid, which names it by `label`, or OSError."""
    return list_files(folder, root, marker=FILE_NAME, label=label, avoid=avoid)
