"""What an archive may contain: regular files and folders with plain names, limited in number, size and depth."""

from collections.abc import Iterable
from pathlib import Path

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.archive.files import MAX_BYTES, MAX_DEPTH, MAX_FILES

MAX_NAME_BYTES = 1024
MAX_PART_BYTES = 255
MAX_MEMBERS = 4 * MAX_FILES
"""Maximum members, files and folders together; repeated names count again."""


class Landing:
    """Writes members below `folder`, which must be empty and private. Counts bytes while it writes and ignores the
    sizes that an archive states. Raises ScraperInvalid naming the member; OSError if a write fails."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._members = 0
        self._bytes = 0

    def add_folder(self, name: str) -> None:
        """Create a folder; the same name may come twice."""
        path = self._admit(name)
        if path in self._files:
            raise refusal(name, "is both a file and a folder")
        self._make_folders(name, f"{path}/")

    def add_file(self, name: str, chunks: Iterable[bytes]) -> int:
        """Write a file with this content, reading no further than the limits; returns its length."""
        path = self._admit(name)
        if path in self._files:
            raise refusal(name, "is there twice")
        if path in self._folders:
            raise refusal(name, "is both a file and a folder")
        if len(self._files) >= MAX_FILES:
            raise ScraperInvalid(f"more than {MAX_FILES} files; move what the script does not need elsewhere")
        self._make_folders(name, path)
        self._files.add(path)
        with (self._folder / path).open("xb") as stream:
            return sum(stream.write(self._counted(chunk)) for chunk in chunks)

    def _admit(self, name: str) -> str:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise ScraperInvalid(f"more than {MAX_MEMBERS} members; move what the script does not need elsewhere")
        path = name.removesuffix("/")
        if fault := name_fault(path):
            raise refusal(name, fault)
        return path

    def _make_folders(self, name: str, path: str) -> None:
        for end in (at for at, letter in enumerate(path) if letter == "/"):
            parent = path[:end]
            if parent in self._files:
                raise refusal(name, f"lies in {shown(parent)}, which is a file")
            if parent not in self._folders:
                (self._folder / parent).mkdir()
                self._folders.add(parent)

    def _counted(self, chunk: bytes) -> bytes:
        self._bytes += len(chunk)
        if self._bytes > MAX_BYTES:
            raise ScraperInvalid(f"unpacks to more than {MAX_BYTES >> 20} MB; move what the script does not need away")
        return chunk


def name_fault(name: str) -> str:
    """What is wrong with the name of a file in a scraper; empty if it is valid. Allows one folder level more than a
    scraper may have, because archives may wrap everything in one folder."""
    if not name.isprintable():
        return "has a name with characters that cannot be printed"
    parts = name.split("/")
    if not name or "" in parts or "." in parts or ".." in parts:
        return "has a name that is not a plain path below the archive's top"
    if "\\" in name or (len(parts[0]) > 1 and parts[0][1] == ":"):
        return "has a name as Windows writes paths; use plain names and slashes"
    if len(name.encode()) > MAX_NAME_BYTES or any(len(part.encode()) > MAX_PART_BYTES for part in parts):
        return f"has a name longer than {MAX_NAME_BYTES} bytes, or {MAX_PART_BYTES} in one part"
    if len(parts) > MAX_DEPTH + 2:
        return f"lies deeper than {MAX_DEPTH} folders"
    return ""


def refusal(name: str, fault: str) -> ScraperInvalid:
    """The error for one member."""
    return ScraperInvalid(f"{shown(name)} {fault}")


def shown(name: str) -> str:
    """A name made safe to show in a message."""
    return ascii(name[:100])
