"""Files that may come from anyone."""

import os
import stat
from pathlib import Path

from scrapeyard.errors import ScraperInvalid


def read_bounded(path: Path, most: int) -> bytes:
    """A regular file of at most `most` bytes, never through a link. Raises ScraperInvalid. Blocking."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ScraperInvalid(f"{path}: cannot be read: {error.strerror}; record the case again") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ScraperInvalid(f"{path}: not a regular file; record the case again")
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(most + 1)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise ScraperInvalid(f"{path}: larger than {_shown(most)}; record a smaller input")
    return data


def _shown(size: int) -> str:
    return f"{size / (1 << 20):.3g} MB" if size >= 1 << 20 else f"{size} bytes"
