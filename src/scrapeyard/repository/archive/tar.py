"""Reading tar, block by block, plain or in gzip. Features that a scraper does not need are refused."""

import tarfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.archive.files import MAX_BYTES
from scrapeyard.repository.archive.members import MAX_MEMBERS, MAX_NAME_BYTES, Landing, refusal

BLOCK = 512
PIECE = 64 * 1024
MAX_EXTENSION = 16 * 1024
"""One header that extends another: a long name, times, attributes."""
MAX_STREAM = MAX_BYTES + MAX_MEMBERS * 2048
"""Maximum bytes of the unpacked stream with headers and padding; stops decompression bombs."""
_TRUNCATED = "ends in the middle; it was not written or transferred whole"
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE)
_KINDS = {
    tarfile.SYMTYPE: "is a symbolic link",
    tarfile.LNKTYPE: "is a hard link",
    tarfile.CHRTYPE: "is a device",
    tarfile.BLKTYPE: "is a device",
    tarfile.FIFOTYPE: "is a named pipe",
    tarfile.GNUTYPE_SPARSE: "is a sparse file",
}


def read_tar(archive: BinaryIO, landing: Landing) -> None:
    """All members of a tar. Raises ScraperInvalid or OSError."""
    _read(iter(lambda: archive.read(PIECE), b""), landing)


def read_tar_gz(archive: BinaryIO, landing: Landing) -> None:
    """All members of a tar in gzip. Raises ScraperInvalid or OSError."""
    _read(_gunzip(archive), landing)


def _gunzip(archive: BinaryIO) -> Iterator[bytes]:
    """The content in bounded pieces; exactly one gzip stream, with nothing after it."""
    stream = zlib.decompressobj(wbits=31)
    while not stream.eof:
        data = stream.unconsumed_tail or archive.read(PIECE)
        if not data:
            raise ScraperInvalid(_TRUNCATED)
        try:
            piece = stream.decompress(data, PIECE)
        except zlib.error as error:
            raise ScraperInvalid(f"is not gzip, or damaged: {error}") from None
        if piece:
            yield piece
    if stream.unused_data or archive.read(1):
        raise ScraperInvalid("has something after its end; pack it again")


class _Extension(Struct, frozen=True, kw_only=True):
    """What extension headers say about the member that follows."""

    path: str | None = None
    """None if they do not say; the member's own header then decides."""


def _read(pieces: Iterator[bytes], landing: Landing) -> None:
    stream, extension = _Stream(pieces), _Extension()
    for _ in range(3 * MAX_MEMBERS):
        block = stream.take(BLOCK)
        if not any(block):
            _check_end(stream)
            return
        entry = _header(block)
        if entry.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME):
            extension = _extended(entry, stream, extension)
            continue
        name = (extension.path or entry.name).removeprefix("./")
        if name not in ("", ".") or not entry.isdir():  # `tar c .` begins with the folder itself
            _land(entry, name, stream, landing)
        extension = _Extension()
    raise ScraperInvalid(f"more than {3 * MAX_MEMBERS} headers; move what the script does not need elsewhere")


def _check_end(stream: "_Stream") -> None:
    """A tar ends with two blocks of zeros, and zeros up to a round number of blocks."""
    if any(stream.take(BLOCK)) or any(any(piece) for piece in stream.rest()):
        raise ScraperInvalid("has something after its end; pack it again")


def _header(block: bytes) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError, OverflowError):
        raise ScraperInvalid("is not a tar, or damaged: a header cannot be read") from None


def _land(entry: tarfile.TarInfo, name: str, stream: "_Stream", landing: Landing) -> None:
    if entry.type == tarfile.DIRTYPE:
        if entry.size:
            raise refusal(name, "is a folder with content")
        landing.add_folder(name)
        return
    if entry.type not in _REGULAR:
        raise refusal(name, f"{_KINDS.get(entry.type, 'is of a kind unknown here')}; only files and folders are taken")
    if not 0 <= entry.size <= MAX_BYTES:
        raise refusal(name, f"is larger than {MAX_BYTES >> 20} MB")
    landing.add_file(name, stream.chunks(entry.size))
    stream.take(-entry.size % BLOCK)


def _extended(entry: tarfile.TarInfo, stream: "_Stream", known: _Extension) -> _Extension:
    if not 0 < entry.size <= MAX_EXTENSION:
        raise refusal(entry.name, f"is a header of {entry.size} bytes; at most {MAX_EXTENSION} are read")
    content = b"".join(stream.chunks(entry.size))
    stream.take(-entry.size % BLOCK)
    if entry.type == tarfile.GNUTYPE_LONGNAME:
        return _Extension(path=content.partition(b"\0")[0].decode("utf-8", "surrogateescape"))
    records = dict(_records(content))
    if entry.type == tarfile.XGLTYPE:
        if "path" in records:
            raise refusal(entry.name, "is a header that names every member alike")
        return known
    return _Extension(path=records.get("path", known.path))


def _records(content: bytes) -> Iterator[tuple[str, str]]:
    """The records of an extended header, `length key=value` each. Refuses records that change size or type."""
    while content:
        digits, _, rest = content[:8].partition(b" ")
        length = int(digits) if digits.isdigit() and rest else 0
        key, found, value = content[len(digits) + 1 : length - 1].partition(b"=")
        if length > len(content) or not found or content[length - 1 : length] != b"\n":
            raise ScraperInvalid("is not a tar, or damaged: an extended header cannot be read")
        content = content[length:]
        name = key.decode("utf-8", "backslashreplace")
        if name == "size" or name.startswith("GNU.sparse"):
            raise ScraperInvalid(f"has an extended header {name!r}, for large or sparse files; pack it plainly")
        if name == "path":
            if len(value) > MAX_NAME_BYTES:
                raise ScraperInvalid(f"has a name longer than {MAX_NAME_BYTES} bytes")
            yield name, value.decode("utf-8", "surrogateescape")


class _Stream:
    """Bytes in the amounts asked for. Raises ScraperInvalid at an early end and beyond MAX_STREAM."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")
        self._seen = 0

    def take(self, size: int) -> bytes:
        """Exactly `size` bytes; for small amounts."""
        return b"".join(self.chunks(size))

    def chunks(self, size: int) -> Iterator[bytes]:
        """Exactly `size` bytes, in chunks."""
        while size > 0:
            if not self._rest and not self._more():
                raise ScraperInvalid(_TRUNCATED)
            chunk, self._rest = self._rest[:size], self._rest[size:]
            size -= len(chunk)
            yield bytes(chunk)

    def rest(self) -> Iterator[bytes]:
        """The remaining bytes, in chunks."""
        while self._rest or self._more():
            chunk, self._rest = self._rest, memoryview(b"")
            yield bytes(chunk)

    def _more(self) -> bool:
        piece = next(self._pieces, b"")
        self._seen += len(piece)
        if self._seen > MAX_STREAM:
            raise ScraperInvalid(f"unpacks to more than {MAX_BYTES >> 20} MB; move what the script does not need away")
        self._rest = memoryview(piece)
        return bool(piece)
