"""Content-Encoding undone piece by piece, never beyond a limit: a few kilobytes can hold gigabytes of zeros."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import brotli  # type: ignore[import-untyped]  # it ships no types

from scrapeyard import zstd

MAX_LAYERS = 3
MAX_MEMBERS = 256
"""Parts of one gzip or zstd body. Each costs time whether or not it holds anything."""

_BITE = 64 * 1024
"""Bytes undone at once: what a decoder could not take yet is copied, so bites must be small."""
_PIECE = 256 * 1024
_BREAKS_OFF = "the compressed data breaks off"
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}
"""A window of 8 MB: RFC 9659 allows no more on the web."""


class Corrupt(Exception):
    """The body is not what its Content-Encoding says."""


class OverLimit(Exception):
    """The body is larger than the limit once decompressed."""


def encodings_of(header: str) -> tuple[str, ...]:
    """The encodings to undo, in the order to undo them. Ones nobody knows are left as they are, as browsers do."""
    if not header:
        return ()
    named = [name.strip().lower() for name in header.split(",")]
    return tuple(name for name in reversed(named) if name in _LAYERS)


def decompress(body: bytes, encodings: tuple[str, ...], limit: int) -> bytes:
    """Undo every encoding. Raises Corrupt, or OverLimit as soon as `limit` bytes are passed."""
    unpacking = Unpacking(encodings, limit)
    pieces = list(unpacking.feed(body))
    unpacking.finish()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Unpacking:
    """Undoes encodings of a body that comes in parts. Without any, the parts pass as they are, counted."""

    def __init__(self, encodings: tuple[str, ...], limit: int) -> None:
        """Raises Corrupt when there are too many layers."""
        if len(encodings) > MAX_LAYERS:
            raise Corrupt(f"{len(encodings)} layers of encoding; at most {MAX_LAYERS} are undone")
        self._layers = [_Counted(_LAYERS[name](), limit) for name in encodings] or [_Counted(_Plain(), limit)]
        self._fed = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What has become of `data`, in pieces of some 256 KB. Raises Corrupt, or OverLimit in any layer."""
        self._fed = self._fed or bool(data)
        for start in range(0, len(data), _BITE):
            yield from _through(self._layers, data[start : start + _BITE])

    def finish(self) -> None:
        """There is no more. Raises Corrupt when a layer expected more; answers to HEAD and 304 name an encoding and
        have no body at all, which is no fault."""
        if self._fed:
            for layer in self._layers:
                layer.finish()


class _Layer(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...

    def finish(self) -> None: ...


class _Counted:
    def __init__(self, inner: _Layer, limit: int) -> None:
        self._inner = inner
        self._room = limit
        self._fed = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._fed = True
        for piece in self._inner.feed(data):
            self._room -= len(piece)
            if self._room < 0:
                raise OverLimit
            if piece:
                yield piece

    def finish(self) -> None:
        if self._fed:
            self._inner.finish()


def _through(layers: Sequence[_Counted], data: bytes) -> Iterator[bytes]:
    first, *others = layers
    for piece in first.feed(data):
        if others:
            yield from _through(others, piece)
        else:
            yield piece


class _Plain:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def finish(self) -> None: ...


class _Gzip:
    """Members one after another; padding after the last is common and left alone."""

    def __init__(self) -> None:
        self._decoder: zlib._Decompress | None = zlib.decompressobj(wbits=31)
        self._rest = b""
        self._members = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        data, self._rest = self._rest + data, b""
        while data and self._decoder is not None:
            yield from _inflate(self._decoder, data)
            if not self._decoder.eof:
                return
            data = self._decoder.unused_data
            if len(data) < 2:  # too little to tell another member from padding
                self._rest, data = data, b""
            else:
                self._next_member(data)

    def _next_member(self, data: bytes) -> None:
        if not data.startswith(b"\x1f\x8b"):
            self._decoder = None
            return
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise Corrupt(f"gzip with more than {MAX_MEMBERS} members")
        self._decoder = zlib.decompressobj(wbits=31)

    def finish(self) -> None:
        if self._decoder is not None and not self._decoder.eof:
            raise Corrupt(_BREAKS_OFF)


class _Deflate:
    """The standard says zlib; some servers send bare deflate."""

    def __init__(self) -> None:
        self._decoder: zlib._Decompress | None = None
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._decoder is None:
            data = self._rest + data
            if len(data) < 2:
                self._rest = data
                return
            bare = (data[0] & 0x0F) != 8 or int.from_bytes(data[:2], "big") % 31 != 0
            self._decoder = zlib.decompressobj(wbits=-15 if bare else 15)
        if not self._decoder.eof:
            yield from _inflate(self._decoder, data)

    def finish(self) -> None:
        if self._decoder is None or not self._decoder.eof:
            raise Corrupt(_BREAKS_OFF)


def _inflate(decoder: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """Until the data is used up or the member ends."""
    while True:
        try:
            piece = decoder.decompress(data, _PIECE)
        except zlib.error as error:
            raise Corrupt(str(error)) from None
        yield piece
        data = decoder.unconsumed_tail
        if decoder.eof or (not data and len(piece) < _PIECE):
            return


class _Brotli:
    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while not self._decoder.is_finished():
                piece: bytes = self._decoder.process(data, output_buffer_limit=_PIECE)
                yield piece
                data = b""
                if not piece and self._decoder.can_accept_more_data():
                    return
        except brotli.error as error:
            raise Corrupt(str(error)) from None

    def finish(self) -> None:
        if not self._decoder.is_finished():
            raise Corrupt(_BREAKS_OFF)


class _Zstd:
    """Frames one after another."""

    def __init__(self) -> None:
        self._frame: zstd.ZstdDecompressor | None = None
        self._left = MAX_MEMBERS

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            frame = self._frame = self._frame or self._next_frame()
            try:
                yield from _unpacked(frame, data)
            except zstd.ZstdError as error:
                raise Corrupt(str(error)) from None
            data = frame.unused_data if frame.eof else b""
            if frame.eof:
                self._frame = None

    def finish(self) -> None:
        if self._frame is not None:
            raise Corrupt(_BREAKS_OFF)

    def _next_frame(self) -> zstd.ZstdDecompressor:
        self._left -= 1
        if self._left < 0:
            raise Corrupt(f"zstd with more than {MAX_MEMBERS} frames")
        return zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)


def _unpacked(frame: zstd.ZstdDecompressor, data: bytes) -> Iterator[bytes]:
    """Until the data is used up or the frame ends."""
    yield frame.decompress(data, _PIECE)
    while not frame.eof and not frame.needs_input:
        yield frame.decompress(b"", _PIECE)


_LAYERS: dict[str, Callable[[], _Layer]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
