"""A film of a page without an encoder: the pictures of its screencast, as Motion JPEG in an AVI file.

VLC, mpv, ffmpeg and most players open it; browsers do not. Where the driver has its ffmpeg, it makes WebM instead.
"""

import asyncio
import struct
from typing import TYPE_CHECKING, Final

from scrapeyard.engines.browser.inside.live import show

if TYPE_CHECKING:
    from scrapeyard.engines.browser.inside.context import HeldContext

_FRAMES_A_SECOND: Final = 5
_MAX_FRAMES: Final = 10 * 60 * _FRAMES_A_SECOND
_MAX_BYTES: Final = 32 * 1024 * 1024
_SIZES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG that tell its size."""


class Film:
    """Grows until ten minutes or 32 MB are full; the rest is left out. Pictures of another size than the first are too:
    a player would distort them."""

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        """One for each fifth of a second; empty: as the one before."""
        self._bytes = 0
        self._size = (0, 0)
        self._began = 0.0
        self._showing: asyncio.Task[None] | None = None

    def start(self, context: "HeldContext") -> None:
        """Take pictures of its newest tab from now on."""
        clock = asyncio.get_running_loop().time
        self._showing = asyncio.create_task(
            show(context, lambda picture: self.add(picture, clock())), name="browser-film"
        )

    def stop(self) -> None:
        """Take no more. May be called twice."""
        if self._showing is not None:
            self._showing.cancel()

    def add(self, picture: bytes, at: float) -> None:
        """A JPEG that is seen from a moment on, in seconds."""
        size = _size(picture)
        if not self._frames:
            self._began, self._size = at, size
        place = min(int((at - self._began) * _FRAMES_A_SECOND), _MAX_FRAMES)
        if size != self._size or place >= _MAX_FRAMES or self._bytes + len(picture) > _MAX_BYTES:
            return
        self._frames += [b""] * (place - len(self._frames))
        self._frames.append(picture)
        self._bytes += len(picture)

    def data(self) -> bytes:
        """The file; empty if nothing was seen."""
        if not self._frames:
            return b""
        movie, index, at = bytearray(b"movi"), bytearray(), 4
        for frame in self._frames:
            chunk = _chunk(b"00dc", frame)
            index += struct.pack("<4sIII", b"00dc", 0x10 if frame else 0, at, len(frame))
            movie += chunk
            at += len(chunk)
        parts = _chunk(b"LIST", self._head()) + _chunk(b"LIST", bytes(movie)) + _chunk(b"idx1", bytes(index))
        return _chunk(b"RIFF", b"AVI " + parts)

    def _head(self) -> bytes:
        (width, height), count = self._size, len(self._frames)
        largest = max(map(len, self._frames))
        main = (1_000_000 // _FRAMES_A_SECOND, largest * _FRAMES_A_SECOND, 0, 0x10, count, 0, 1, largest, width, height)
        head = _chunk(b"avih", struct.pack("<14I", *main, 0, 0, 0, 0))
        stream = struct.pack(
            "<4s4s10I4h",
            *(b"vids", b"MJPG", 0, 0, 0, 1, _FRAMES_A_SECOND, 0, count, largest, 0xFFFFFFFF, 0),
            *(0, 0, width, height),
        )
        form = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, b"MJPG", width * height * 3, 0, 0, 0, 0)
        return b"hdrl" + head + _chunk(b"LIST", b"strl" + _chunk(b"strh", stream) + _chunk(b"strf", form))


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def _size(picture: bytes) -> tuple[int, int]:
    """Width and height of a JPEG; zeros if it is none."""
    at = 2
    while at + 9 <= len(picture) and picture[at] == 0xFF:
        marker, length = picture[at + 1], int.from_bytes(picture[at + 2 : at + 4])
        if marker in _SIZES:
            return int.from_bytes(picture[at + 7 : at + 9]), int.from_bytes(picture[at + 5 : at + 7])
        at += 2 + length
    return 0, 0
