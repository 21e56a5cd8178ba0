"""Rows of CSV: with a header, any of the usual delimiters, and line ends within quotes. Python's csv reads them.

Quotes are parsed strictly: a row with mismatched quotes is bad, and parsing continues with the line after its first.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from scrapeyard.inputs.formats.rows import MAX_ROW, BadRow, ListUnreadable, Piece, too_long

DELIMITERS = (",", ";", "\t", "|")
MAX_COLUMNS = 1000
MAX_NAME = 200
_QUOTED = re.compile(r'"[^"]*"')
_SEP = re.compile(r"sep=(.)[\r\n]*", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)


class _More(Exception):
    """The current row continues beyond the lines available."""


class CsvParser:
    """A Parser. Rows map column names to text. Blank rows are skipped, and missing cells are empty."""

    def __init__(self, *, delimiter: str = "", names: Sequence[str] = ()) -> None:
        """Without a delimiter it is detected from the first line; `names` are for a list without a header.

        Raises ListUnreadable for invalid names.
        """
        self._delimiter = delimiter
        self.names = _checked(names) if names else ()
        """The columns; empty until the header is read."""
        self._lines: list[str] = []
        """Lines of incomplete rows."""
        self._line = 1
        """Line number of the first of them."""
        self._tail = ""
        """An incomplete line."""
        self._skipping = False
        """Whether the current line is too long and being skipped."""

    def feed(self, text: str) -> Piece:
        """As Parser."""
        piece = Piece([], [])
        self._split(text, piece.bad)
        self._read(piece, final=False)
        return piece

    def finish(self) -> Piece:
        """As Parser."""
        piece = Piece([], [])
        if self._tail:
            self._lines.append(self._tail)
            self._tail = ""
        self._read(piece, final=True)
        if not self.names:
            raise ListUnreadable("the list is empty; its first line names the columns")
        return piece

    def _split(self, text: str, bad: list[BadRow]) -> None:
        """Move complete lines to `_lines`. A carriage return at the very end may be half of a line ending."""
        lines = list(io.StringIO(self._tail + text, newline=""))
        self._tail = "" if not lines or lines[-1].endswith("\n") else lines.pop()
        if self._skipping and lines:
            self._skipping = False
            self._line += 1
            del lines[0]
        self._lines += lines
        if self._skipping:
            self._tail = self._tail[-1:]
        elif len(self._tail) > MAX_ROW and not self._lines:
            bad.append(too_long(self._line))
            self._skipping, self._tail = True, self._tail[-1:]

    def _read(self, piece: Piece, *, final: bool) -> None:
        at = self._header(final=final) if self._lines and not self.names else 0
        while at < len(self._lines):
            at, more = self._rows(at, piece, final=final)
            if more and self._size(at) <= MAX_ROW:
                break
            if more:
                piece.bad.append(too_long(self._line + at))
                at += 1
        del self._lines[:at]
        self._line += at

    def _rows(self, at: int, piece: Piece, *, final: bool) -> tuple[int, bool]:
        """Parse rows from a line on. Returns where it stopped, and whether the row there needs more lines."""
        lines = self._lines[at:] if at else self._lines
        first, names, width, rows = self._line + at, self.names, len(self.names), piece.rows
        reader = self._reader(lines, final=final)
        done = 0
        try:
            for cells in reader:
                if len(cells) == width and any(cells):
                    rows.append((first + done, dict(zip(names, cells, strict=True))))
                else:
                    self._odd(first + done, cells, piece)
                done = reader.line_num
        except _More:
            return at + done, done < len(lines)
        except csv.Error as error:
            piece.bad.append(BadRow(line=first + done, reason=_reason(error)))
            return at + done + 1, False
        return at + done, False

    def _odd(self, line: int, cells: list[str], piece: Piece) -> None:
        """Handle a row with too many or too few cells, or only blank ones."""
        width = len(self.names)
        if not any(cells):
            return
        if any(cells[width:]):
            piece.bad.append(BadRow(line=line, reason=f"has {len(cells)} cells where the header has {width} names"))
            return
        padded = cells[:width] + [""] * (width - len(cells))
        piece.rows.append((line, dict(zip(self.names, padded, strict=True))))

    def _header(self, *, final: bool) -> int:
        """Parse the header; returns how many lines it took, 0 while it is incomplete."""
        at = 0
        if found := _SEP.fullmatch(self._lines[0]):
            self._delimiter, at = self._delimiter or found[1], 1
        while at < len(self._lines) and not self._lines[at].strip():
            at += 1
        if at == len(self._lines):
            return at if self._delimiter or at else 0
        self._delimiter = self._delimiter or _sniffed(self._lines[at])
        reader = self._reader(self._lines[at:], final=final)
        try:
            self.names = _checked(next(reader))
        except _More:
            if self._size(at) > MAX_ROW:
                raise ListUnreadable(f"line {self._line + at}: the header is not closed by a quote") from None
            return 0
        except csv.Error as error:
            raise ListUnreadable(f"line {self._line + at}: the header cannot be read: {_reason(error)}") from None
        return at + int(reader.line_num)

    def _reader(self, lines: Sequence[str], *, final: bool) -> Any:
        return csv.reader(lines if final else chain(lines, _End()), delimiter=self._delimiter or ",", strict=True)

    def _size(self, at: int) -> int:
        return sum(map(len, self._lines[at:])) + len(self._tail)


class _End:
    """Raises _More when the available lines are used up."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        raise _More


def _sniffed(line: str) -> str:
    """The delimiter that occurs most often in a line outside quotes; a comma on a tie."""
    bare = _QUOTED.sub("", line)
    return max(DELIMITERS[:3], key=bare.count)


def _checked(given: Sequence[str]) -> tuple[str, ...]:
    """Validated column names. Empty names at the end are dropped. Raises ListUnreadable."""
    names = [name.strip() for name in given]
    while names and not names[-1]:
        names.pop()
    if not names or len(names) > MAX_COLUMNS or any(len(name) > MAX_NAME for name in names):
        raise ListUnreadable(f"the header needs 1 to {MAX_COLUMNS} names of at most {MAX_NAME} characters")
    for name in names:
        if not name:
            raise ListUnreadable(f"column {names.index('') + 1} of the header has no name; give it one")
        if names.count(name) > 1:
            raise ListUnreadable(f"the header names {name!r} twice; rename one of the columns")
        if _ADDRESS.match(name):
            raise ListUnreadable(
                f"the first line holds {name[:100]!r}, which looks like data; put the columns' names above it, or give "
                "them as `names`"
            )
    return tuple(names)


def _reason(error: csv.Error) -> str:
    said = str(error)
    if "unexpected end" in said:
        return "a quote is opened and not closed"
    if "field larger" in said:
        return f"has a cell longer than {csv.field_size_limit()} characters; is a quote not closed?"
    if "expected after" in said:
        return "has text after a closing quote; double a quote that belongs to the text"
    return said
