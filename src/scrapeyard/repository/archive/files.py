"""Scrapers in a folder tree, and the files of one: listed with stat calls only, bounded, never outside the tree."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.manifest.manifest import FILE_NAME

MAX_FILES = 2000
MAX_BYTES = 50 * 1024 * 1024
MAX_DEPTH = 16
CHUNK = 1 << 20
TESTS = "tests"
"""A folder of this name at the top of a scraper holds its recorded cases, which are not part of the scraper."""


class SourceFile(Struct, frozen=True, kw_only=True):
    """One regular file of a scraper."""

    name: str
    """Relative to the scraper's folder, with slashes."""
    path: Path
    """Where its content really is: a link is followed once, here."""
    size: int
    stamp: tuple[int, int, int]
    """Changes when the file does: modification time, change time (nanoseconds), inode."""


class ChangedMeanwhile(Exception):
    """A file changed while it was read. Try again later."""


def is_skipped(name: str) -> bool:
    """Whether a file or folder is excluded from a scraper: hidden ones, which may hold secrets, and compiled code."""
    return name.startswith(".") or name == "__pycache__" or name.endswith(".pyc")


def list_files(
    folder: Path, root: Path, *, marker: str, label: str, avoid: Path | None = None
) -> tuple[SourceFile, ...]:
    """All files of the scraper in `folder`, sorted by name; costs only stat calls.

    A subfolder with a file `marker` is another scraper and is excluded; so is a folder that holds `avoid`, the server's
    own data. A link may point to a regular file inside `root`, which must be a path without links. Raises
    ScraperInvalid, whose message begins with `label`, for anything not allowed; OSError if something is unreadable.
    """
    try:
        return tuple(
            sorted(
                _bounded(_walk(folder, "", _Rules(root=root, marker=marker, avoid=avoid))), key=lambda file: file.name
            )
        )
    except ScraperInvalid as error:
        raise ScraperInvalid(f"{label}: {error.message}") from None


def _bounded(files: Iterator[SourceFile]) -> Iterator[SourceFile]:
    total = 0
    for count, file in enumerate(files, 1):
        total += file.size
        if count > MAX_FILES:
            raise ScraperInvalid(f"more than {MAX_FILES} files; move what the script does not need elsewhere")
        if total > MAX_BYTES:
            raise ScraperInvalid(f"larger than {MAX_BYTES >> 20} MB; move what the script does not need elsewhere")
        yield file


def read_chunks(file: SourceFile) -> Iterator[bytes]:
    """The content. Raises ChangedMeanwhile if the length changed; does not read on while a file grows."""
    descriptor = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ChangedMeanwhile
        left = file.size + 1
        while left > 0 and (chunk := stream.read(min(CHUNK, left))):
            left -= len(chunk)
            yield chunk
    if left != 1:
        raise ChangedMeanwhile


class _Rules(Struct, frozen=True, kw_only=True):
    root: Path
    marker: str
    avoid: Path | None

    def enters(self, folder: Path) -> bool:
        if self.avoid is not None and self.avoid.is_relative_to(folder.resolve()):
            return False
        return not (folder / self.marker).is_file()


def _walk(folder: Path, prefix: str, rules: _Rules) -> Iterator[SourceFile]:
    if prefix.count("/") > MAX_DEPTH:
        raise ScraperInvalid(f"folders nested deeper than {MAX_DEPTH}; flatten them")
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count > 4 * MAX_FILES:
                raise ScraperInvalid(
                    f"more than {4 * MAX_FILES} entries in {prefix or 'it'}; move what is not needed elsewhere"
                )
            if is_skipped(entry.name) or (not prefix and entry.name == TESTS and entry.is_dir()):
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield _file(entry, prefix, rules.root)
            elif rules.enters(folder / entry.name):
                yield from _walk(folder / entry.name, f"{prefix}{entry.name}/", rules)


def _file(entry: os.DirEntry[str], prefix: str, root: Path) -> SourceFile:
    path, name = Path(entry.path), prefix + entry.name
    if entry.is_symlink():
        path = path.resolve()
        if not path.is_relative_to(root):
            raise ScraperInvalid(f"{name}: a link that leads out of the scrapers' folder; copy the file in")
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise ScraperInvalid(f"{name}: not a regular file; remove it, or copy what it links to")
    return SourceFile(
        name=name, path=path, size=found.st_size, stamp=(found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    )


MAX_FOLDER_DEPTH = 4
MAX_SCRAPERS = 10_000
MAX_FOLDERS = 100_000


class Found(Struct, frozen=True, kw_only=True):
    """The result of searching a folder tree."""

    folders: tuple[Path, ...]
    """Each has a manifest."""
    unreadable: tuple[Path, ...] = ()
    """Folders that could not be read; their content is unknown."""
    cut: bool = False
    """Whether the search stopped at a limit."""


def find_scrapers(root: Path, avoid: Path | None = None) -> Found:
    """Every folder with a manifest, up to four levels below `root`. Raises OSError when `root` itself cannot be read.

    Skips hidden folders, follows only links that stay inside `root`, and visits each folder once. `avoid` is the cache:
    the copies in it are not scrapers of their own.
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
        for child, its_real in below if depth < MAX_FOLDER_DEPTH else ():
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
