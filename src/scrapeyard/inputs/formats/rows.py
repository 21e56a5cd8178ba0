"""What list parsers return: rows with line numbers, and the reason for each bad row."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from scrapeyard.errors import BadRequest

MAX_ROW = 256 * 1024
"""Maximum characters of one row in the list. The limit for an item's input, which is built from it, may be lower."""
MAX_REASON = 300


class BadRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row that cannot be used."""

    line: int
    """Counted from 1, as editors do; 0 for the whole file."""
    reason: str
    file: str = ""
    """The file, if the list has several, as sitemaps do."""

    def __str__(self) -> str:
        place = f"{self.file} line {self.line}" if self.file and self.line else self.file or f"line {self.line}"
        return f"{place}: {self.reason}"


class Piece(Struct, frozen=True):
    """Some rows of a list, in order."""

    rows: list[tuple[int, Any]]
    """Line number and value."""
    bad: list[BadRow]


class Parser(Protocol):
    """Parses a list's text, fed in pieces of any size."""

    def feed(self, text: str) -> Piece:
        """Returns the rows that are now complete. Raises ListUnreadable."""

    def finish(self) -> Piece:
        """Returns the last rows. Raises ListUnreadable if the list is truncated."""


class ListUnreadable(BadRequest):
    """The list as a whole cannot be read. The message names the line and what to change."""

    code = "bad_list"


class ListRefused(BadRequest):
    """The list has bad rows, and the job takes all or nothing. `details["rows"]` has the first of them."""

    code = "bad_rows"

    def __init__(self, bad: Sequence[BadRow], count: int) -> None:
        first = "; ".join(str(row) for row in bad[:3])
        more = f", and {count - 3} more" if count > 3 else ""
        super().__init__(
            f"{count} rows cannot be used: {first}{more}; correct them, or let them be left out with bad_rows: skip",
            count=count,
            rows=[{"line": row.line, "reason": row.reason, "file": row.file} for row in bad],
        )


def too_long(line: int) -> BadRow:
    """The bad row for one longer than MAX_ROW."""
    return BadRow(line=line, reason=f"longer than {MAX_ROW} characters; is a quote not closed?")


class LineParser(ABC):
    """A Parser of lines. A line that is too long becomes a bad row and is skipped without being held in memory."""

    def __init__(self) -> None:
        self._tail = ""
        """An incomplete line."""
        self._line = 1
        """Its number."""
        self._skipping = False
        """Whether it is too long and being skipped."""

    def feed(self, text: str) -> Piece:
        """As Parser."""
        piece = Piece([], [])
        *lines, self._tail = (self._tail + text).split("\n")
        if self._skipping and lines:
            self._skipping = False
            self._line += 1
            del lines[0]
        self._take(lines, piece)
        if self._skipping:
            self._tail = ""
        elif len(self._tail) > MAX_ROW:
            piece.bad.append(too_long(self._line))
            self._skipping, self._tail = True, ""
        return piece

    def finish(self) -> Piece:
        """As Parser."""
        piece = Piece([], [])
        self._take([self._tail], piece)
        self._tail = ""
        return piece

    @abstractmethod
    def read(self, first: int, lines: Sequence[str], piece: Piece) -> None:
        """Parse complete lines into `piece`; `first` is the line number of the first."""

    def _take(self, lines: Sequence[str], piece: Piece) -> None:
        self.read(self._line, lines, piece)
        self._line += len(lines)
