"""Content-Encoding undone, never beyond a limit: a few kilobytes can hold gigabytes of zeros."""

import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]  # it ships no types
import zstandard

MAX_LAYERS = 3
MAX_MEMBERS = 256
"""Parts of one gzip or zstd body. Each costs time whether or not it holds anything."""

_ZSTD_WINDOW = 8 * 1024 * 1024
"""Bytes; RFC 9659 allows no more on the web."""

_ZSTD_BITE = 512
"""Bytes given to zstd at once: its decoder knows no limit, and four bytes can stand for 128 KB."""


class Corrupt(Exception):
    """The body is not what its Content-Encoding says."""


class OverLimit(Exception):
    """The body is larger than the limit once decompressed."""


def encodings_of(header: str) -> tuple[str, ...]:
    """The encodings to undo, in the order to undo them. Ones nobody knows are left as they are, as browsers do."""
    if not header:
        return ()
    named = [name.strip().lower() for name in header.split(",")]
    return tuple(name for name in reversed(named) if name in _DECODERS)


def decompress(body: bytes, encodings: tuple[str, ...], limit: int) -> bytes:
    """Undo every encoding. Raises Corrupt, or OverLimit as soon as `limit` bytes are passed."""
    if len(encodings) > MAX_LAYERS:
        raise Corrupt(f"{len(encodings)} layers of encoding; at most {MAX_LAYERS} are undone")
    for name in encodings:
        if body:  # answers to HEAD and 304 name an encoding and have no body
            body = _DECODERS[name](body, limit)
    return body


def _gzip(body: bytes, limit: int) -> bytes:
    pages: list[bytes] = []
    room = limit
    for _ in range(MAX_MEMBERS):
        decoder = zlib.decompressobj(wbits=31)
        page, body = _inflate(decoder, body, room)
        pages.append(page)
        room -= len(page)
        if not body.startswith(b"\x1f\x8b"):  # padding after the last member is common
            return b"".join(pages)
    raise Corrupt(f"gzip with more than {MAX_MEMBERS} members")


def _deflate(body: bytes, limit: int) -> bytes:
    # The standard says zlib; some servers send bare deflate.
    bare = (body[0] & 0x0F) != 8 or int.from_bytes(body[:2], "big") % 31 != 0
    return _inflate(zlib.decompressobj(wbits=-15 if bare else 15), body, limit)[0]


def _inflate(decoder: "zlib._Decompress", body: bytes, limit: int) -> tuple[bytes, bytes]:
    try:
        page = decoder.decompress(body, limit + 1)
    except zlib.error as error:
        raise Corrupt(str(error)) from None
    if len(page) > limit:
        raise OverLimit
    if not decoder.eof:
        raise Corrupt("the compressed data breaks off")
    return page, decoder.unused_data


def _brotli(body: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    pages: list[bytes] = []
    size = 0
    try:
        while not decoder.is_finished():
            page: bytes = decoder.process(body, output_buffer_limit=limit + 1 - size)
            pages.append(page)
            size += len(page)
            if size > limit:
                raise OverLimit
            if not page and not decoder.is_finished():
                raise Corrupt("the compressed data breaks off")
            body = b""
    except brotli.error as error:
        raise Corrupt(str(error)) from None
    return b"".join(pages)


def _zstd(body: bytes, limit: int) -> bytes:
    frames = _ZstdFrames()
    pages: list[bytes] = []
    size = 0
    try:
        for start in range(0, len(body), _ZSTD_BITE):
            pages.append(frames.feed(body[start : start + _ZSTD_BITE]))
            size += len(pages[-1])
            if size > limit:
                raise OverLimit
    except zstandard.ZstdError as error:
        raise Corrupt(str(error)) from None
    if frames.is_open:
        raise Corrupt("the compressed data breaks off")
    return b"".join(pages)


class _ZstdFrames:
    def __init__(self) -> None:
        self._decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._left = MAX_MEMBERS

    @property
    def is_open(self) -> bool:
        return self._frame is not None

    def feed(self, bite: bytes) -> bytes:
        pages: list[bytes] = []
        while bite:
            frame = self._frame = self._frame or self._next_frame()
            pages.append(frame.decompress(bite))
            bite = frame.unused_data if frame.eof else b""
            if frame.eof:
                self._frame = None
        return b"".join(pages)

    def _next_frame(self) -> "zstandard.ZstdDecompressionObj":
        self._left -= 1
        if self._left < 0:
            raise Corrupt(f"zstd with more than {MAX_MEMBERS} frames")
        return self._decoder.decompressobj()


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
