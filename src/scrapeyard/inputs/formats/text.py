"""A list's bytes as text: decompresses gzip; decodes UTF-8, or UTF-16 if there is a byte order mark."""

import asyncio
import codecs
from collections.abc import AsyncIterator, Iterator

from scrapeyard.engines.http.decompress import Corrupt, OverLimit, Unpacking
from scrapeyard.inputs.formats.rows import ListUnreadable

PIECE = 32 * 1024
"""Bytes processed before yielding to other tasks: a few milliseconds."""
_GZIP = b"\x1f\x8b"
_NOT_TEXT = {
    b"PK\x03\x04": "a zip or Excel file; save the sheet as CSV UTF-8",
    b"\xd0\xcf\x11\xe0": "an old Excel file; save the sheet as CSV UTF-8",
    b"%PDF": "a PDF; a list is CSV, JSONL, JSON or plain text",
    b"PAR1": "a Parquet file; save it as CSV or JSONL",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; only gzip is unpacked",
}
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


async def read_text(chunks: AsyncIterator[bytes], limit: int) -> AsyncIterator[str]:
    """Yield the text in pieces of some kilobytes, without a byte order mark. At most `limit` bytes after decompression.

    Raises ListUnreadable.
    """
    decoder: _Decoder | None = None
    async for piece in unpacked(chunks, limit):
        decoder = decoder or _Decoder(piece)
        yield decoder.feed(piece)
        await asyncio.sleep(0)
    if decoder is not None:
        yield decoder.finish()


async def unpacked(chunks: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Yield the bytes in pieces of PIECE, except the last; gzip is decompressed. Raises ListUnreadable."""
    unpacking: Unpacking | None = None
    held = bytearray()
    try:
        async for chunk in _with_a_head(chunks):
            unpacking = unpacking or Unpacking(("gzip",) if chunk.startswith(_GZIP) else (), limit)
            for part in unpacking.feed(chunk):
                held += part
                for piece in _pieces(held):
                    yield piece
        if unpacking is not None:
            unpacking.finish()
    except OverLimit:
        raise ListUnreadable(f"the list is larger than {limit} bytes once unpacked; make several jobs of it") from None
    except Corrupt as error:
        raise ListUnreadable(f"the list is not good gzip: {error}; pack it again") from None
    if held:
        yield bytes(held)


async def _with_a_head(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Make the first chunk at least four bytes long, if there are so many: they show the kind of file."""
    head = b""
    async for chunk in chunks:
        if len(head) >= 4:
            yield chunk
            continue
        head += chunk
        if len(head) >= 4:
            yield head
    if 0 < len(head) < 4:
        yield head


def _pieces(held: bytearray) -> Iterator[bytes]:
    while len(held) >= PIECE:
        yield bytes(held[:PIECE])
        del held[:PIECE]


class _Decoder:
    """Decodes text and counts lines, to report where an error is."""

    def __init__(self, head: bytes) -> None:
        """`head` is the first piece, which is also passed to `feed`. Raises ListUnreadable for binary data."""
        self.name = _encoding(head)
        self._decoder = codecs.getincrementaldecoder(self.name)("strict")
        self._line = 1

    def feed(self, piece: bytes, final: bool = False) -> str:
        try:
            text = self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            line = self._line + piece[: error.start].count(b"\n")
            raise ListUnreadable(
                f"line {line} is not {self.name.removesuffix('-sig').upper()}: {error.reason}; "
                "save the list as UTF-8 (in Excel: CSV UTF-8)"
            ) from None
        if "\0" in text:
            raise ListUnreadable(
                f"line {self._line + text[: text.index(chr(0))].count(chr(10))} holds a NUL character, so the list is "
                "no text, or UTF-16 without a mark at its start; save it as UTF-8"
            )
        self._line += text.count("\n")
        return text

    def finish(self) -> str:
        return self.feed(b"", final=True)


def _encoding(head: bytes) -> str:
    for start, what in _NOT_TEXT.items():
        if head.startswith(start):
            raise ListUnreadable(f"the list is {what}")
    if head.startswith(_UTF_32):
        raise ListUnreadable("the list is UTF-32; save it as UTF-8")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig"
