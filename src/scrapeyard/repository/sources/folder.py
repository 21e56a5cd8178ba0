"""A local folder as a source: its author edits it in place, and every poll reads its current content."""

import asyncio
import hashlib
import shutil
import time
from pathlib import Path

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.archive.files import SourceFile, find_scrapers, scraper_files
from scrapeyard.repository.manifest.channels import FILE_NAME as CHANNELS_FILE
from scrapeyard.repository.manifest.channels import MAX_BYTES as MAX_CHANNEL_BYTES
from scrapeyard.repository.manifest.channels import Channels, read_channels
from scrapeyard.repository.manifest.manifest import FILE_NAME, MAX_BYTES, read_identity, read_manifest
from scrapeyard.repository.sources.port import Fault, Offer, Release
from scrapeyard.telemetry.events import get_log

log = get_log("repository")
SETTLING_NS = 100_000_000
"""A file younger than this may change again without a new time stamp, so it is read once more."""


class Seen(Struct, frozen=True, kw_only=True):
    """What one folder held at a poll."""

    found: Release | Fault
    stamp: str
    """Equal if no file changed; empty if the folder must be read again at the next poll."""


class FolderView(Struct, frozen=True, kw_only=True):
    """The whole tree at one poll."""

    seen: dict[Path, Seen]
    channels: Channels
    faults: tuple[Fault, ...]
    cut: bool


class FolderSource:
    """Scrapers of one folder tree, as `repository.folder` finds them, and its `channels.toml`.

    An unchanged scraper costs only stat calls. Scrapers below an unreadable folder stay as they were. Messages name
    paths relative to the folder, so that no path of the machine reaches a caller.
    """

    kind = "folder"
    is_mutable = True
    needs_signatures = True

    def __init__(self, root: Path, *, name: str = "", avoid: Path | None = None) -> None:
        self.name = name or root.absolute().name or "folder"
        self._root = root
        self._avoid = avoid
        self._view = FolderView(seen={}, channels={}, faults=(), cut=False)
        self._homes: dict[tuple[str, str, str], Path] = {}

    async def poll(self, mark: str) -> Offer | None:  # noqa: ARG002  a folder has no mark
        """What stands there now. Raises SourceUnavailable when the folder itself cannot be read."""
        try:
            view = await asyncio.to_thread(self._poll, self._view)
        except OSError as error:
            raise SourceUnavailable(f"the folder cannot be read: {error.strerror or error}") from None
        if view.cut and not self._view.cut:
            log.warning("repository.too_many", folder=str(self._root), count=len(view.seen))
        self._view = view
        self._homes = {_key(seen.found): folder for folder, seen in view.seen.items()}
        found = [seen.found for seen in view.seen.values()]
        return Offer(
            mark="",
            releases=tuple(each for each in found if isinstance(each, Release)),
            faults=(*(each for each in found if isinstance(each, Fault)), *view.faults),
            channels=view.channels,
        )

    async def fetch(self, release: Release, folder: Path) -> Path:
        """The folder itself, or a copy if it links to files elsewhere in the tree."""
        home = self._homes.get(_key(release))
        if home is None:
            raise SourceUnavailable(f"{release.place}: changed since it was looked at")
        return await asyncio.to_thread(self._gather, home, folder, release.place)

    async def stop(self) -> None:
        """Nothing to release."""

    def _poll(self, known: FolderView) -> FolderView:
        root, avoid = self._bounds()
        found = find_scrapers(self._root, avoid)
        seen = {folder: self._see(folder, (root, avoid), known.seen.get(folder)) for folder in found.folders}
        for folder, before in known.seen.items():
            if any(folder.is_relative_to(lost) for lost in found.unreadable):
                seen.setdefault(folder, before)
        channels, faults = self._channels(known.channels)
        return FolderView(seen=seen, channels=channels, faults=faults, cut=found.cut)

    def _bounds(self) -> tuple[Path, Path | None]:
        """The resolved folder, and the server's own data folder if it is inside; otherwise None."""
        root = self._root.resolve()
        avoid = self._avoid.resolve() if self._avoid else None
        return root, avoid if avoid and avoid.is_relative_to(root) else None

    def _see(self, folder: Path, bounds: tuple[Path, Path | None], before: Seen | None) -> Seen:
        label = self._label(folder)
        try:
            files = scraper_files(folder, bounds[0], label, bounds[1])
            stamp = _stamp(files)
            if before is not None and stamp and before.stamp == stamp:
                return before
            return Seen(found=self._read(folder, stamp, before), stamp=stamp)
        except ScraperInvalid as error:
            return Seen(found=self._fault(folder, error.message, before), stamp="")
        except OSError as error:
            problem = f"{label}: {error.strerror}; check its permissions and the disk"
            return Seen(found=before.found if before else self._fault(folder, problem, before), stamp="")

    def _read(self, folder: Path, stamp: str, before: Seen | None) -> Release | Fault:
        text = _manifest(folder)
        scraper_id, version = read_identity(text)
        if scraper_id and version:
            mark = stamp or f"unsettled {time.time_ns()}"
            return Release(id=scraper_id, version=version, mark=mark, place=self._label(folder))
        where = f"{self._label(folder)}/{FILE_NAME}"
        try:
            read_manifest(text, where)
        except ScraperInvalid as error:
            return self._fault(folder, error.message, before)
        return self._fault(folder, f"{where}: has no id and version that can be read", before)

    def _fault(self, folder: Path, problem: str, before: Seen | None) -> Fault:
        """A fault named by the manifest, else by the folder's last known scraper, else by its path."""
        scraper_id, version = read_identity(_manifest(folder))
        if not scraper_id and before is not None:
            scraper_id, version = before.found.id, before.found.version
        if not scraper_id:
            guess = "/".join(folder.absolute().parts[-2:])
            scraper_id = guess if SCRAPER_ID.fullmatch(guess) else self._label(folder)
        return Fault(id=scraper_id, version=version, place=self._label(folder), problem=problem)

    def _channels(self, known: Channels) -> tuple[Channels, tuple[Fault, ...]]:
        """The channels in the file; if it is invalid, the last valid ones."""
        try:
            with (self._root / CHANNELS_FILE).open("rb") as stream:
                return read_channels(stream.read(MAX_CHANNEL_BYTES + 1), CHANNELS_FILE), ()
        except (FileNotFoundError, IsADirectoryError):
            return {}, ()
        except OSError as error:
            problem = f"{CHANNELS_FILE}: {error.strerror}; check its permissions and the disk"
        except ScraperInvalid as error:
            problem = error.message
        return known, (Fault(id=CHANNELS_FILE, place=CHANNELS_FILE, problem=problem),)

    def _gather(self, home: Path, folder: Path, label: str) -> Path:
        root, avoid = self._bounds()
        files = scraper_files(home, root, label, avoid)
        if all(file.path == home / file.name for file in files):
            return home
        for file in files:
            target = folder / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.path, target, follow_symlinks=False)
        return folder

    def _label(self, folder: Path) -> str:
        relative = folder.relative_to(self._root).as_posix()
        return folder.absolute().name if relative == "." else relative


def _key(found: Release | Fault) -> tuple[str, str, str]:
    return found.id, found.version, found.place


def _stamp(files: tuple[SourceFile, ...]) -> str:
    newest = max((max(file.stamp[0], file.stamp[1]) for file in files), default=0)
    if 0 <= time.time_ns() - newest < SETTLING_NS:
        return ""
    stamps = repr([(file.name, file.size, file.stamp) for file in files])
    return hashlib.blake2b(stamps.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _manifest(folder: Path) -> bytes:
    """The manifest's text, read up to one byte beyond the limit; empty if it cannot be read."""
    try:
        with (folder / FILE_NAME).open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError:
        return b""
