"""The cache: an immutable copy of every version, named by the digest of its paths and contents.

A signature signs the digest, so it is no part of it: it lies in the copy, and is replaced when the same content comes
with another one.

Children run under other user ids, so every copy is readable by all and writable by nobody. A copy is written under a
temporary name and renamed, so that a name that exists is whole.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from scrapeyard.repository.files import ChangedMeanwhile, SourceFile, list_files, read_chunks

DAY = 86_400.0
SIGNATURE = "scraper.sig"
"""The detached signature in a scraper's own folder."""
_TEMPORARY = ".new-"


class Cache:
    """Copies under one folder. Several processes may share it. Blocking; use it from a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def put(self, files: tuple[SourceFile, ...]) -> tuple[str, Path]:
        """Keep these files; returns their digest and the folder of the copy.

        Raises ChangedMeanwhile when a file changed on the way, OSError when it cannot be read or the copy not written.
        """
        digest = content_digest(files)
        kept = self.folder / digest
        if not self._is_whole(kept, digest):
            self._copy(files, kept, digest)
        _renew_signature(files, kept)
        os.utime(kept)
        return digest, kept

    def prune(self, used: Collection[str], now: float | None = None) -> int:
        """Remove copies that are not `used` and were not asked for in the last day. Returns how many."""
        removed = 0
        oldest = (time.time() if now is None else now) - DAY
        for entry in self._entries():
            with contextlib.suppress(FileNotFoundError):  # another process prunes too
                if entry.name not in used and entry.lstat().st_mtime < oldest:
                    shutil.rmtree(entry)
                    removed += 1
        return removed

    def _entries(self) -> list[Path]:
        """Only names that we give: the folder may hold other things."""
        if not self.folder.is_dir():
            return []
        return [entry for entry in self.folder.iterdir() if _is_ours(entry.name) and not entry.is_symlink()]

    def _is_whole(self, kept: Path, digest: str) -> bool:
        if not kept.is_dir():
            return False
        if _digest(list_files(kept, kept, marker="", label=digest)) == digest:
            return True
        aside = kept.with_name(f"{_TEMPORARY}{digest}-{os.getpid()}-{time.monotonic_ns()}")
        kept.rename(aside)
        shutil.rmtree(aside)
        return False

    def _copy(self, files: tuple[SourceFile, ...], kept: Path, digest: str) -> None:
        self._make_folder()
        fresh = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=self.folder))
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


def _is_ours(name: str) -> bool:
    return name.startswith(_TEMPORARY) or (len(name) == 64 and not set(name) - set("0123456789abcdef"))


def content_digest(files: tuple[SourceFile, ...]) -> str:
    """What names a scraper's content: the digest of every path and file but the signature.

    Raises ChangedMeanwhile or OSError.
    """
    return _digest(files)


def _renew_signature(files: tuple[SourceFile, ...], kept: Path) -> None:
    """The same content may be signed later, or by another key; half a signature is never seen."""
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
    """The digest of paths and contents; with `into`, the files are written there on the way."""
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
