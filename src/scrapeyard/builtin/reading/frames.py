"""The frames between a worker and its parser process: their types and bodies."""

from typing import Any, Final

import msgspec

from scrapeyard.builtin.pages.port import RawPage
from scrapeyard.framed_process import Framing

FRAMING: Final = Framing(256 * 1024 * 1024)
PAGE: Final = b"P"
"""To the parser: a RawPage. From it: the fields of that page."""
FAULT: Final = b"F"
"""From the parser: why the page has no fields."""

encode: Final = msgspec.msgpack.Encoder().encode
decode_page: Final = msgspec.msgpack.Decoder(RawPage).decode
_decode_fields: Final = msgspec.msgpack.Decoder(dict[str, Any]).decode


def decode_answer(letter: bytes, body: bytes) -> dict[str, Any] | str:
    """The fields of a page, or why there are none. Raises ValueError for anything else."""
    try:
        return body.decode() if letter == FAULT else _decode_fields(body)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
