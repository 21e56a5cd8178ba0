"""Reading zip. Its directory is checked before it is read, because the library reads all of it into memory."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.archive.files import MAX_BYTES
from scrapeyard.repository.archive.members import MAX_MEMBERS, Landing, refusal

PIECE = 64 * 1024
MAX_DIRECTORY = 8 * 1024 * 1024
_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_LOCAL_HEADER = 30
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UNIX = 3
_BROKEN = (
    zipfile.BadZipFile,
    EOFError,
    IndexError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""Exceptions that the library raises for invalid archives."""


def read_zip(archive: BinaryIO, landing: Landing) -> None:
    """All members of a zip. Raises ScraperInvalid or OSError."""
    end = _check_directory(archive)
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = opened.infolist()
            _check_places(entries, end)
            for entry in entries:
                _land(opened, entry, landing)
    except _BROKEN as error:
        raise ScraperInvalid(f"is not a zip, or damaged: {str(error)[:200] or type(error).__name__}") from None


def _check_directory(archive: BinaryIO) -> int:
    """Return the offset of the central directory. Refuses data before the first member or after the end, and 64-bit
    fields, which archives this small do not need."""
    archive.seek(0, 2)
    length = archive.tell()
    at = max(0, length - _END.size - 0xFFFF)
    archive.seek(at)
    tail = archive.read()
    found = tail.rfind(_END_SIGNATURE)
    if found < 0 or len(tail) - found < _END.size:
        raise ScraperInvalid("is not a zip, or ends in the middle")
    _, disk, first_disk, here, entries, size, offset, comment = _END.unpack_from(tail, found)
    if found + _END.size + comment != len(tail):
        raise ScraperInvalid("has something after its end; pack it again")
    if disk or first_disk or here != entries or offset + size != at + found:
        raise ScraperInvalid("has a directory that is not where it says, or is split or 64-bit; pack it again")
    if entries > MAX_MEMBERS or size > MAX_DIRECTORY:
        raise ScraperInvalid(f"more than {MAX_MEMBERS} members; move what the script does not need elsewhere")
    return int(offset)


def _check_places(entries: list[zipfile.ZipInfo], end: int) -> None:
    """Refuse members that overlap: that is how a small zip unpacks to a huge one."""
    by_place = sorted(entries, key=lambda entry: entry.header_offset)
    nexts = [entry.header_offset for entry in by_place[1:]] + [end]
    for entry, limit in zip(by_place, nexts, strict=True):
        if not 0 <= entry.header_offset <= limit - _LOCAL_HEADER - entry.compress_size:
            raise refusal(entry.orig_filename, "overlaps another member")


def _land(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, landing: Landing) -> None:
    name = entry.orig_filename
    kind = stat.S_IFMT(entry.external_attr >> 16) if entry.create_system == _UNIX else 0
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise refusal(name, "is a link or a device; only files and folders are taken")
    if entry.flag_bits & _ENCRYPTED:
        raise refusal(name, "is encrypted; pack it without a password")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise refusal(name, "is compressed in a way that is not read here; use deflate")
    if entry.compress_type == zipfile.ZIP_STORED and entry.compress_size != entry.file_size:
        raise refusal(name, "is not as long as the archive says")
    if entry.file_size > MAX_BYTES:
        raise refusal(name, f"is larger than {MAX_BYTES >> 20} MB")
    if name.endswith("/") != (kind == stat.S_IFDIR if kind else name.endswith("/")):
        raise refusal(name, "is both a file and a folder")
    if name.endswith("/"):
        if entry.file_size:
            raise refusal(name, "is a folder with content")
        landing.add_folder(name)
    elif landing.add_file(name, _content(opened, entry)) != entry.file_size:
        raise refusal(name, "is not as long as the archive says")


def _content(opened: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    try:
        with opened.open(entry) as stream:
            while piece := stream.read(PIECE):
                yield piece
    except _BROKEN as error:
        raise refusal(entry.orig_filename, f"is damaged: {str(error)[:200] or type(error).__name__}") from None
