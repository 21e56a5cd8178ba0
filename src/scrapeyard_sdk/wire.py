"""The wire between a child and its worker: framed, versioned, bounded.

A frame is `u32 total · u32 head · head bytes of JSON · the rest, raw bytes`, all lengths little-endian, `total` not
counting itself. The JSON head is an object with a string `t`, the frame's type; the raw part carries page bodies,
artifacts and results as they are. Never pickle: neither side trusts the other.

    worker → child     run, page, page_error, browser, extracted, kept, kept_error, state, enqueued, refused
    child → worker     ready, log, progress, fetch, browser, extract, artifact, state, enqueue, record, result, error
"""

import json
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Head = TypeVar("Head")

VERSION = 1
MAX_FRAME = 256 * 1024 * 1024
"""No frame is larger, whatever the limits say. The worker's own limit for each type is lower."""

MAX_HEAD = 1024 * 1024
"""Maximum bytes of a head; long values go into the raw part, which is not parsed."""

_LENGTHS = struct.Struct("<II")
_TOTAL = struct.Struct("<I")
_decoder = json.JSONDecoder()
"""Without the search for an encoding, which takes longer than a head."""
_encode_head = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class WireError(Exception):
    """The other side sent an invalid frame."""


def encode(head: dict[str, Any], raw: bytes = b"") -> bytes:
    """One frame as bytes. Raises ValueError when `head` is not JSON or the frame is too large."""
    return prefix(head, len(raw)) + raw


def prefix(head: dict[str, Any], raw_length: int) -> bytes:
    """A frame up to its raw part, which has this length. Raises ValueError as `encode`."""
    return prefix_of(_encode_head(head).encode(), raw_length)


def prefix_of(packed: bytes, raw_length: int) -> bytes:
    """The same with a head that is JSON already."""
    if len(packed) > MAX_HEAD:
        raise ValueError(f"a frame whose head has {len(packed)} bytes is over the limit of {MAX_HEAD}")
    total = 4 + len(packed) + raw_length
    if total > MAX_FRAME:
        raise ValueError(f"a frame of {total} bytes is over the limit of {MAX_FRAME}")
    return _LENGTHS.pack(total, len(packed)) + packed


class Decoder(Generic[Head]):
    """Cuts a stream of bytes into frames. `parse` turns a head's bytes into whatever the receiver wants of it."""

    def __init__(self, parse: Callable[[bytes], Head], max_frame: int = MAX_FRAME, max_head: int = MAX_HEAD) -> None:
        self._buffer = bytearray()
        self._parse = parse
        self._max_frame = max_frame
        self._max_head = max_head

    def feed(self, data: bytes | memoryview) -> list[tuple[Head, bytes]]:
        """The frames that are complete now. Raises WireError on the first that is not one.

        Frames before an invalid one are dropped with it, because nothing from that sender can be trusted.
        """
        if self._buffer:
            self._buffer += data
            frames, end = self._cut(self._buffer)
            del self._buffer[:end]
        else:  # most reads bring whole frames, which need not be copied together first
            frames, end = self._cut(data)
            if end < len(data):
                self._buffer += data[end:]
        return frames

    def _cut(self, data: bytes | bytearray | memoryview) -> tuple[list[tuple[Head, bytes]], int]:
        """The whole frames, and where they end."""
        frames: list[tuple[Head, bytes]] = []
        at, size = 0, len(data)
        with memoryview(data) as view:
            while size - at >= 8:
                total, head_length = _LENGTHS.unpack_from(view, at)
                self._check_total(total)
                if head_length > total - 4 or head_length > self._max_head:
                    raise WireError(f"a frame whose head has {head_length} bytes; that is more than it may have")
                end = at + 4 + total
                if size < end:
                    return frames, at
                head_end = at + 8 + head_length
                frames.append((self._parse(bytes(view[at + 8 : head_end])), bytes(view[head_end:end])))
                at = end
        if size - at >= 4:
            self._check_total(*_TOTAL.unpack_from(data, at))
        return frames, at

    def _check_total(self, total: int) -> None:
        if not 4 <= total <= self._max_frame:
            raise WireError(f"a frame of {total} bytes; at most {self._max_frame} are allowed")


def parse_head(packed: bytes) -> dict[str, Any]:
    """A head as a plain object. Raises WireError when it is not one with a type."""
    try:
        text = packed.decode()
        head, end = _decoder.raw_decode(text)
        if end != len(text):
            raise ValueError("something follows it")
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame whose head is not JSON: {error}") from None
    if not isinstance(head, dict) or not isinstance(head.get("t"), str):
        raise WireError("a frame without a type")
    return head


def from_json(packed: bytes) -> Any:
    """A value from JSON in UTF-8. Raises ValueError."""
    return _decoder.decode(packed.decode())
