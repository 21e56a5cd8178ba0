"""A local folder as the source of scrapers: finding them, and reading one from its immutable copy."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import Limits, Scraper, ScraperRef
from scrapeyard.repository.cache import Cache
from scrapeyard.repository.files import ChangedMeanwhile, SourceFile, is_skipped, list_files
from scrapeyard.repository.manifest import FILE_NAME, Manifest, read_manifest
from scrapeyard.repository.signature import MAX_BYTES, read_signature

MAX_DEPTH = 4
MAX_SCRAPERS = 10_000
MAX_FOLDERS = 100_000


class Terms(Struct, frozen=True, kw_only=True):
    """What the operator allows every scraper."""

    ceiling: Limits
    direct_network: Collection[str] = ()


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


def load_folder(path: Path, cache: Path, ceiling: Limits, *, direct_network: Collection[str] = ()) -> Scraper:
    """Read one scraper from its own folder, and copy it to the cache. Raises ScraperInvalid. Blocking."""
    if not (path / FILE_NAME).is_file():
        raise ScraperInvalid(f"{path}: no {FILE_NAME} here; `scrapeyard new` makes one")
    try:
        files = scraper_files(path, path.resolve(), str(path), cache.resolve())
        return load_files(files, Cache(cache), Terms(ceiling=ceiling, direct_network=direct_network), str(path))
    except OSError as error:
        raise ScraperInvalid(f"{error.filename or path}: cannot be read: {error.strerror}") from None
    except ChangedMeanwhile:
        raise ScraperInvalid(f"{path}: changed while it was read; try again") from None


def load_files(files: tuple[SourceFile, ...], cache: Cache, terms: Terms, where: str) -> Scraper:
    """Copy to the cache, then read the copy: what was checked is what will run. `where` stands in error messages.

    Raises ScraperInvalid, ChangedMeanwhile or OSError.
    """
    digest, copy = cache.put(files)
    text = _read(copy / FILE_NAME, f"{where}/{FILE_NAME}")
    manifest = read_manifest(text, f"{where}/{FILE_NAME}", lambda name: (copy / name).read_bytes())
    if manifest.network == "direct" and manifest.id not in terms.direct_network:
        raise ScraperInvalid(
            f'{where}/{FILE_NAME}: network: "direct" is not granted here; use ctx.fetch, or ask the operator'
        )
    if manifest.requirements:
        raise ScraperInvalid(
            f"{where}/{FILE_NAME}: requirements: packages of a scraper's own are not installed yet; a script has the "
            "standard library, the SDK and selectolax"
        )
    source = _read(copy / manifest.entry_file, f"{where}/{manifest.entry_file}")
    signature = read_signature(source, manifest.entry_function, f"{where}/{manifest.entry_file}")
    return _scraper(
        manifest, signature, ScraperRef(id=manifest.id, version=manifest.version, digest=digest), copy, terms
    )


def _read(path: Path, where: str) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise ScraperInvalid(f"{where}: no such file; `entry` in {FILE_NAME} names it") from None


def _scraper(manifest: Manifest, signature: dict[str, object], ref: ScraperRef, copy: Path, terms: Terms) -> Scraper:
    return Scraper(
        ref=ref,
        folder=copy,
        entry=manifest.entry,
        name=manifest.name,
        description=manifest.description,
        input_schema=signature if manifest.input_schema is None else manifest.input_schema,
        output_schema=manifest.output_schema,
        limits=manifest.limits.within(terms.ceiling),
        allowed_hosts=manifest.allowed_hosts,
        network=manifest.network,
        lane=manifest.lane,
        config=manifest.config,
        requirements=manifest.requirements,
        capabilities=manifest.capabilities,
    )
