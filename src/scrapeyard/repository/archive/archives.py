"""Archives of scrapers: packed deterministically, unpacked as untrusted input.

Blocking; call these from a thread.
"""

import gzip
import io
import os
import secrets
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.archive.files import MAX_BYTES, SourceFile, read_chunks
from scrapeyard.repository.archive.members import Landing, name_fault, refusal, shown
from scrapeyard.repository.archive.tar import read_tar, read_tar_gz
from scrapeyard.repository.archive.zip import read_zip

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_ARCHIVE_BYTES = 2 * MAX_BYTES
"""Maximum bytes of the compressed archive; a valid one is hardly larger than its content."""

_READERS: dict[str, Callable[[BinaryIO, Landing], None]] = {
    ".tar.gz": read_tar_gz,
    ".tgz": read_tar_gz,
    ".tar": read_tar,
    ".zip": read_zip,
}
ENDINGS = tuple(_READERS)


def pack(files: Iterable[SourceFile], into: BinaryIO) -> None:
    """Write a .tar.gz: files by name, no times, no owners, mode 644, so that equal files give equal bytes.

    The bytes are equal only with the same version of zlib; compare contents by their digest. Raises ScraperInvalid for
    a name that `unpack` would refuse, ChangedMeanwhile for a file that changed while it was read, OSError.
    """
    with (
        gzip.GzipFile(filename="", fileobj=into, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in sorted(files, key=lambda file: file.name):
            if fault := name_fault(file.name):
                raise refusal(file.name, fault)
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mode = file.size, 0o644
            chunks = read_chunks(file)
            archive.addfile(entry, io.BufferedReader(_Pieces(chunks)))
            deque(chunks, maxlen=0)  # read to the end, to detect a file that grew


def unpack(archive: BinaryIO, name: str, into: Path) -> None:
    """Extract an archive into a folder, which must be empty. The extension of `name` gives the format.

    A single top-level folder is stripped. Raises ScraperInvalid, whose message begins with the archive's name and says
    which member is wrong and why; the caller must remove what was written by then. Raises OSError if a write fails.
    Never writes outside `into` or more than the limits of `files`.
    """
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
    if ending is None:
        raise ScraperInvalid(f"{shown(name)}: not an archive that is read here; make it {' or '.join(ENDINGS)}")
    with _named(name):
        if archive.seek(0, os.SEEK_END) > MAX_ARCHIVE_BYTES:
            raise ScraperInvalid(f"larger than {MAX_ARCHIVE_BYTES >> 20} MB")
        archive.seek(0)
        _READERS[ending](archive, Landing(into))
        _unwrap(into)


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except ScraperInvalid as error:
        raise ScraperInvalid(f"{name}: {error.message}") from None


def _unwrap(folder: Path) -> None:
    """Move everything up when all of it lies in one folder."""
    with os.scandir(folder) as entries:
        found = [entry for entry, _ in zip(entries, range(2), strict=False)]
    if len(found) != 1 or not found[0].is_dir(follow_symlinks=False):
        return
    wrapper = Path(found[0].path).rename(folder / secrets.token_hex(16))
    for child in list(wrapper.iterdir()):
        child.rename(folder / child.name)
    wrapper.rmdir()


class _Pieces(io.RawIOBase):
    """A file object that lets tarfile read from `read_chunks`."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, into: "WriteableBuffer") -> int:
        self._rest = self._rest or memoryview(next(self._chunks, b""))
        target = memoryview(into)
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
