"""The cache: an immutable copy of every version, named by the digest of its paths and contents.

A signature signs the digest, so the digest does not cover it. It is stored in the copy and replaced when the same
content arrives with another signature.

Children run under other user ids, so every copy is readable by all and writable by nobody. A copy is written under a
temporary name and then renamed, so a copy under its final name is always complete.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.archive.files import ChangedMeanwhile, SourceFile, list_files, read_chunks

DAY = 86_400.0
SAFE_SECONDS = 7200.0
"""A copy that was touched since then may be in use by some process."""
SIGNATURE = "scraper.sig"
"""The detached signature in a scraper's own folder."""
_TEMPORARY = ".new-"
MAX_STAMPS = 10_000
Stamp = tuple[tuple[str | int, ...], ...]


class Cache:
    """Copies under one folder. Several processes may share it. Blocking; use it from a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._sizes: dict[str, int] = {}
        self._stamps: dict[str, Stamp] = {}
        """Of copies whose content was checked, as they were then."""

    def put(self, files: tuple[SourceFile, ...]) -> tuple[str, Path]:
        """Store these files; returns their digest and the folder of the copy.

        Raises ChangedMeanwhile if a file changed while it was read, OSError if a read or a write fails.
        """
        digest = content_digest(files)
        kept = self.folder / digest
        if not self._is_whole(kept, digest):
            self._copy(files, kept, digest)
        _renew_signature(files, kept)
        os.utime(kept)
        return digest, kept

    def files(self, digest: str) -> tuple[SourceFile, ...] | None:
        """The files of a copy; None if there is none. Removes a truncated or changed copy and returns None for it.

        Raises OSError when it cannot be read.
        """
        kept = self.folder / digest
        return _listed(kept) if _is_digest(digest) and self._is_whole(kept, digest) else None

    def is_unchanged(self, digest: str) -> bool:
        """Whether no file of the copy was touched since `check`. Asks the file system, but reads no content."""
        known = self._stamps.get(digest)
        return known is not None and _stamp(self.folder / digest) == known

    def check(self, digest: str) -> bool:
        """Whether the copy has the content that its name says. Raises OSError if it cannot be read."""
        kept = self.folder / digest
        before = _stamp(kept)
        try:
            is_whole = _is_digest(digest) and bool(before) and _digest(_listed(kept)) == digest
        except (ScraperInvalid, ChangedMeanwhile, FileNotFoundError):
            is_whole = False
        self._stamps.pop(digest, None)
        if is_whole:
            self._stamps[digest] = before
            if len(self._stamps) > MAX_STAMPS:
                del self._stamps[next(iter(self._stamps))]
        return is_whole

    def make_scratch(self) -> Path:
        """An empty folder on the same disk for a download. The caller removes it; a leftover is evicted after a day.
        Raises OSError."""
        self._make_folder()
        return Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=self.folder))

    def touch(self, digests: Iterable[str]) -> set[str]:
        """Mark these copies as in use, so that no process removes them. Returns the digests that are missing."""
        missing = set()
        for digest in digests:
            try:
                os.utime(self.folder / digest)
            except FileNotFoundError:
                missing.add(digest)
        return missing

    def evict(self, used: Collection[str], limit: int, now: float | None = None) -> set[str]:
        """Remove copies that are not `used`: all untouched for a day and, while more than `limit` bytes remain, those
        untouched for two hours, oldest first. Returns their digests.

        Every process touches the copies it uses each hour, so copies used by another process stay.
        """
        now = time.time() if now is None else now
        spare = sorted((age, entry) for entry, age in self._ages(now) if entry.name not in used)
        total = sum(self._size(entry) for entry, _ in self._ages(now))
        gone: set[str] = set()
        for age, entry in reversed(spare):
            if age > DAY or (total > limit and age > SAFE_SECONDS):
                size = self._size(entry)
                if self._remove(entry, now - SAFE_SECONDS):
                    total -= size
                    gone.add(entry.name)
        return gone

    def _ages(self, now: float) -> list[tuple[Path, float]]:
        ages = []
        for entry in self._entries():
            with contextlib.suppress(FileNotFoundError):  # another process evicts too
                ages.append((entry, now - entry.lstat().st_mtime))
        return ages

    def _size(self, entry: Path) -> int:
        if entry.name not in self._sizes:
            size = _bytes_below(entry)
            if not _is_digest(entry.name):
                return size
            self._sizes[entry.name] = size
        return self._sizes[entry.name]

    def _remove(self, entry: Path, untouched_since: float) -> bool:
        """Rename it first: if another process touched it at that moment, rename it back."""
        aside = entry.with_name(f"{_TEMPORARY}{os.getpid()}-{time.monotonic_ns()}")
        try:
            entry.rename(aside)
            if aside.lstat().st_mtime > untouched_since:
                aside.rename(entry)
                return False
        except OSError:
            return False
        shutil.rmtree(aside)
        return True

    def _entries(self) -> list[Path]:
        """Only entries named as this cache names them: the folder may hold other things."""
        if not self.folder.is_dir():
            return []
        return [entry for entry in self.folder.iterdir() if _is_ours(entry.name) and not entry.is_symlink()]

    def _is_whole(self, kept: Path, digest: str) -> bool:
        if not kept.is_dir():
            return False
        with contextlib.suppress(ScraperInvalid, ChangedMeanwhile):  # it holds files that this cache did not write
            if _digest(_listed(kept)) == digest:
                return True
        aside = kept.with_name(f"{_TEMPORARY}{os.getpid()}-{time.monotonic_ns()}")
        with contextlib.suppress(FileNotFoundError):  # another process found it too
            kept.rename(aside)
            shutil.rmtree(aside)
        return False

    def _copy(self, files: tuple[SourceFile, ...], kept: Path, digest: str) -> None:
        fresh = self.make_scratch()
        try:
            if _digest(files, fresh) != digest:
                raise ChangedMeanwhile
            fresh.chmod(0o755)
            fresh.rename(kept)
        except OSError:
            if not kept.is_dir():  # otherwise another process was first, with the same content
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _make_folder(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o755)


def _stamp(folder: Path) -> Stamp:
    """Name, kind, size and times of everything in a copy; empty if it is gone. The kernel sets the change time, so an
    edit that restores the modification time is seen, too."""
    found: list[tuple[str | int, ...]] = []
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    stat = entry.stat(follow_symlinks=False)
                    times = stat.st_mtime_ns, stat.st_ctime_ns
                    found.append((entry.path, stat.st_mode, stat.st_size, stat.st_ino, *times))
        except OSError:
            return ()
    return tuple(sorted(found))


def _is_ours(name: str) -> bool:
    return name.startswith(_TEMPORARY) or _is_digest(name)


def _is_digest(name: str) -> bool:
    return len(name) == 64 and not set(name) - set("0123456789abcdef")


def _listed(kept: Path) -> tuple[SourceFile, ...]:
    return list_files(kept, kept, marker="", label=kept.name)


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.lstat().st_size
    return total


def content_digest(files: tuple[SourceFile, ...]) -> str:
    """The digest that identifies a scraper's content: every path and file except the signature.

    Raises ChangedMeanwhile or OSError.
    """
    return _digest(files)


def _renew_signature(files: tuple[SourceFile, ...], kept: Path) -> None:
    """Replace the signature atomically: the same content may be signed later, or by another key."""
    given = next((file for file in files if file.name == SIGNATURE), None)
    if given is None:
        return
    content = b"".join(read_chunks(given))
    target = kept / SIGNATURE
    if target.is_file() and target.read_bytes() == content:
        return
    fresh = kept / f".{SIGNATURE}-{os.getpid()}-{time.monotonic_ns()}"
    fresh.write_bytes(content)
    fresh.chmod(0o444)
    fresh.replace(target)


def _digest(files: tuple[SourceFile, ...], into: Path | None = None) -> str:
    """The digest of paths and contents; with `into`, also copies the files there."""
    total = hashlib.sha256(b"scrapeyard-scraper 1\n")
    for file in files:
        if file.name == SIGNATURE:
            continue
        name, content = os.fsencode(file.name), hashlib.sha256()
        for chunk in read_chunks(file) if into is None else _saved(file, into):
            content.update(chunk)
        total.update(len(name).to_bytes(4, "little") + name + content.digest())
    return total.hexdigest()


def _saved(file: SourceFile, into: Path) -> Iterator[bytes]:
    target = into / file.name
    _make_folders(target.parent, into)
    with target.open("xb") as stream:
        for chunk in read_chunks(file):
            stream.write(chunk)
            yield chunk
    target.chmod(0o444)


def _make_folders(folder: Path, top: Path) -> None:
    if folder == top or folder.is_dir():
        return
    _make_folders(folder.parent, top)
    folder.mkdir()
    folder.chmod(0o755)
