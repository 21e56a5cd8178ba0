"""What the process that writes a file is told of each item: the letters and bodies of its frames."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from scrapeyard.framed_process import Framing
from scrapeyard.model.job import ExportWish, Item

FRAMING: Final = Framing(512 * 1024 * 1024)
BEGIN: Final = b"B"
LINES: Final = b"L"
ROWS: Final = b"R"
END: Final = b"E"
DATA: Final = b"D"
TOLD: Final = b"T"
FAULT: Final = b"F"


class Line(Struct, frozen=True, array_like=True, gc=False):
    """An item as far as exports show it."""

    key: str
    status: str
    finished_at: float | None
    site_status: int | None
    input: bytes
    result: bytes
    exit_reason: str = ""
    error: str = ""
    """Message of the error; empty if it has none."""
    attempts: int = 0
    depth: int | None = None
    """Links from a start; None if it was not found by following links."""
    referrer: str = ""
    strategy: str = ""
    proxy: str = ""


class ExportProgress(Struct, frozen=True, kw_only=True):
    """How far the writing is."""

    rows: int = 0
    share: float = 0.0
    """Of what is done after the last item was read; 0 where there is nothing to do then."""


class Task(Struct, frozen=True, kw_only=True):
    """The file to write."""

    wish: ExportWish
    notes: tuple[str, ...] = ()
    """What is known to be worth telling before the first item is read."""


class Written(Struct, frozen=True, kw_only=True):
    """A whole file."""

    rows: int
    bytes: int
    digest: str
    notes: tuple[str, ...] = ()


def line_of(item: Item, result: bytes | None = None) -> Line:
    """`result` where it was kept as an object. What a failed item left is no data."""
    if result is None:
        result = b"" if item.result is None else bytes(item.result)
    if item.partial:
        result = b""
    error = item.error
    return Line(
        item.key,
        item.status.value,
        item.finished_at,
        None if error is None else error.site_status,
        bytes(item.input),
        result,
        "" if item.exit_reason is None else item.exit_reason.value,
        "" if error is None else error.message,
        item.attempt,
        item.depth,
        item.referrer,
        item.strategy,
        item.proxy,
    )


frame: Final = FRAMING.pack
encode: Final = msgspec.msgpack.Encoder().encode
decode_lines: Final = msgspec.msgpack.Decoder(list[Line]).decode
decode_rows: Final = msgspec.msgpack.Decoder(list[list[Any]]).decode
decode_task: Final = msgspec.msgpack.Decoder(Task).decode
decode_told: Final = msgspec.msgpack.Decoder(ExportProgress).decode
decode_written: Final = msgspec.msgpack.Decoder(Written).decode
