"""A list of any format, from bytes to rows."""

import re
from collections.abc import AsyncIterator, Callable

from msgspec import Struct

from scrapeyard.inputs.formats.csv_rows import CsvParser
from scrapeyard.inputs.formats.json_rows import JsonArrayParser, JsonlParser, UrlParser
from scrapeyard.inputs.formats.rows import MAX_ROW, ListUnreadable, Parser, Piece
from scrapeyard.inputs.formats.text import read_text
from scrapeyard.inputs.source import Format, Shape

MAX_LIST = 20 * 1024**3
"""Bytes of one list, unpacked."""
_ADDRESS = re.compile(r"https?://[^\s,;\"]+$", re.IGNORECASE)


class ListPiece(Struct, frozen=True):
    """Some rows, and whether their values are CSV text that must be converted."""

    piece: Piece
    text: bool


async def read_list(chunks: AsyncIterator[bytes], shape: Shape, limit: int = MAX_LIST) -> AsyncIterator[ListPiece]:
    """Yield rows of a list in the given or detected format. At most `limit` bytes unpacked. Raises ListUnreadable."""
    head, parser, is_csv = "", None, False
    async for text in read_text(chunks, limit):
        if parser is not None:
            yield ListPiece(parser.feed(text), is_csv)
            continue
        head += text
        if _tells(head):
            parser, is_csv = _chosen(head, shape)
            yield ListPiece(parser.feed(head), is_csv)
    if parser is None:
        parser, is_csv = _chosen(head, shape)
        yield ListPiece(parser.feed(head), is_csv)
    yield ListPiece(parser.finish(), is_csv)


def _tells(head: str) -> bool:
    """Whether there is enough to detect the format: the first line that is not blank."""
    return "\n" in head.lstrip() or len(head) > MAX_ROW


def _chosen(head: str, shape: Shape) -> tuple[Parser, bool]:
    found = shape.format if shape.format != "auto" else _looks(head, shape)
    makers: dict[Format, Callable[[], Parser]] = {
        "csv": lambda: CsvParser(delimiter=shape.delimiter, names=shape.names),
        "jsonl": JsonlParser,
        "json": JsonArrayParser,
        "urls": UrlParser,
    }
    return makers[found](), found == "csv"


def _looks(head: str, shape: Shape) -> Format:
    start = head.lstrip()
    if not start:
        raise ListUnreadable("the list is empty")
    if start[0] == "[":
        return "json"
    if start[0] == "{":
        return "jsonl"
    if start[0] == "<":
        raise ListUnreadable("the list is XML or HTML; give a sitemap as sitemap_url")
    first = start.partition("\n")[0].strip()
    plain = first.startswith("#") or _ADDRESS.match(first)
    return "urls" if plain and not shape.names and not shape.columns else "csv"
