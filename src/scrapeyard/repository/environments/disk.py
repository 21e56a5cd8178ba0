"""Measuring folders of installed packages and making them read-only. Blocking. Never follows a link."""

import os
import shutil
import stat
from pathlib import Path

from msgspec import Struct

_LEAST = 4096
"""Minimum bytes counted for each file and folder: a million empty files are not small."""


class Odd(Exception):
    """Something that is neither a file nor a folder."""


class Extent(Struct, frozen=True, kw_only=True):
    """What a folder holds."""

    files: int = 0
    size_bytes: int = 0
    """The sum of the files' lengths, each at least 4 KB."""


def measure(folder: Path) -> Extent:
    """Everything below a folder; what vanishes meanwhile is not counted."""
    files = size = 0
    waiting = [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:  # removed meanwhile
            continue
        for entry in entries:
            try:
                size += max(_LEAST, entry.stat(follow_symlinks=False).st_size)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    files += 1
            except OSError:  # removed meanwhile
                continue
    return Extent(files=files, size_bytes=size)


def close_off(folder: Path) -> None:
    """Make everything readable by all and writable by nobody: children run under other users.

    Raises Odd for a link or a device: nothing in an environment may lead out of it.
    """
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                path.chmod(0o755)
            elif stat.S_ISREG(mode):
                path.chmod(0o555 if mode & 0o111 else 0o444)
            else:
                raise Odd(str(path.relative_to(folder))[:200])


def remove(folder: Path) -> None:
    """Remove the folder and everything below; what cannot be removed now is left for the next time."""
    shutil.rmtree(folder, ignore_errors=True)
