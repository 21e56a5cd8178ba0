"""What a parser process is sent and what it answers: a length of four bytes, then MessagePack."""

from typing import Any

import msgspec

from scrapeyard.builtin.reading.port import RawPage

HEAD = 4
MAX_FRAME = 256 * 1024 * 1024


class ReadPage(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a page, or why there are none."""

    page: dict[str, Any] | None = None
    error: str = ""


_pages = msgspec.msgpack.Decoder(RawPage)
_answers = msgspec.msgpack.Decoder(ReadPage)
_encoder = msgspec.msgpack.Encoder()


def encode(message: RawPage | ReadPage) -> bytes:
    """With its length in front. Raises ValueError for one that is too long."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME:
        raise ValueError(f"a message of {len(body)} bytes; {MAX_FRAME} are allowed")
    return len(body).to_bytes(HEAD) + body


def length(head: bytes) -> int:
    """Of the body that follows. Raises ValueError for one that is too long."""
    size = int.from_bytes(head)
    if size > MAX_FRAME:
        raise ValueError(f"a message of {size} bytes; {MAX_FRAME} are allowed")
    return size


def decode_page(body: bytes) -> RawPage:
    """Raises msgspec.DecodeError for anything else."""
    return _pages.decode(body)


def decode_answer(body: bytes) -> ReadPage:
    """Raises msgspec.DecodeError for anything else."""
    return _answers.decode(body)
