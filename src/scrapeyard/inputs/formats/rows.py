"""What readers of lists give: rows with line numbers, and what is wrong with those that cannot be used."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from scrapeyard.errors import BadRequest

MAX_ROW = 256 * 1024
"""Characters of one row as it stands in the list. An item's input, which is made of it, may have fewer."""
MAX_REASON = 300


class BadRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row that cannot be used."""

    line: int
    """Counted from 1, as an editor shows it; 0: the whole file."""
    reason: str
    file: str = ""
    """Where a list has several files, as sitemaps do: which one."""

    def __str__(self) -> str:
        place = f"{self.file} line {self.line}" if self.file and self.line else self.file or f"line {self.line}"
        return f"{place}: {self.reason}"


class Piece(Struct, frozen=True):
    """Some rows of a list, in order."""

    rows: list[tuple[int, Any]]
    """Line number and value."""
    bad: list[BadRow]


class Parser(Protocol):
    """Takes a list's text in pieces of any size."""

    def feed(self, text: str) -> Piece:
        """The rows that are complete now. Raises ListUnreadable."""

    def finish(self) -> Piece:
        """There is no more: the last rows. Raises ListUnreadable when the list breaks off."""


class ListUnreadable(BadRequest):
    """The list as a whole cannot be read. The message names the line and what to change."""

    code = "bad_list"


class ListRefused(BadRequest):
    """Rows of the list cannot be used, and the job wants all or nothing. `details["rows"]` has the first of them."""

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
    """A row that passes MAX_ROW."""
    return BadRow(line=line, reason=f"longer than {MAX_ROW} characters; is a quote not closed?")


class LineParser(ABC):
    """As Parser. A line that is too long is a bad row and passed over without being held."""

    def __init__(self) -> None:
        self._tail = ""
        """A line that is not complete."""
        self._line = 1
        """Its number."""
        self._skipping = False
        """Whether it is too long and passed over."""

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
        """Put what the lines hold into `piece`; `first` is the number of the first."""

    def _take(self, lines: Sequence[str], piece: Piece) -> None:
        self.read(self._line, lines, piece)
        self._line += len(lines)
