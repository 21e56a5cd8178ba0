"""A kept page as bytes, for the shared tier. What cannot be read again is told from what can by a checksum."""

import zlib

import msgspec

from scrapeyard import zstd
from scrapeyard.engines.cache.port import CachedPage

FORMAT = b"sp1"
"""Begins every kept page; change it when the layout changes, and old pages become misses."""
_CHECK_BYTES = 4
_WORTH_BYTES = 512
_WORTH_SHARE = 0.9

_encoder = msgspec.msgpack.Encoder()


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    page: CachedPage
    """Without its body."""
    packed: bool
    body_bytes: int
    body: bytes


_decoder = msgspec.msgpack.Decoder(_Stored)


class UnreadablePage(ValueError):
    """These bytes are not a kept page, or not one that was written whole."""


def encode(page: CachedPage) -> bytes:
    """The body is compressed where that saves a tenth or more."""
    body = page.body
    packed = zstd.compress(body) if len(body) > _WORTH_BYTES else body
    pays = len(packed) < len(body) * _WORTH_SHARE
    bare = msgspec.structs.replace(page, body=b"")
    data = _encoder.encode(_Stored(bare, pays, len(body), packed if pays else body))
    return FORMAT + zlib.crc32(data).to_bytes(_CHECK_BYTES, "big") + data


def decode(data: bytes, max_bytes: int) -> CachedPage:
    """The reverse. Raises Unreadable; a body that says it is larger than `max_bytes` is not even unpacked."""
    start = len(FORMAT) + _CHECK_BYTES
    payload = memoryview(data)[start:]
    if data[: len(FORMAT)] != FORMAT or zlib.crc32(payload) != int.from_bytes(data[len(FORMAT) : start], "big"):
        raise UnreadablePage("not a kept page, or cut short")
    try:
        stored = _decoder.decode(payload)
        return msgspec.structs.replace(stored.page, body=_unpack(stored, max_bytes))
    except (msgspec.MsgspecError, zstd.ZstdError) as error:
        raise UnreadablePage(str(error)) from None


def _unpack(stored: _Stored, max_bytes: int) -> bytes:
    if not 0 <= stored.body_bytes <= max_bytes:
        raise UnreadablePage(f"a body of {stored.body_bytes} bytes")
    if not stored.packed:
        return stored.body
    body = zstd.ZstdDecompressor().decompress(stored.body, max_length=stored.body_bytes)
    if len(body) != stored.body_bytes:
        raise UnreadablePage("a body of another length than was kept")
    return body
