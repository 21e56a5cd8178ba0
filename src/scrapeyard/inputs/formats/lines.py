"""Lists with a row on each line."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from scrapeyard.inputs.formats.rows import MAX_ROW, Piece, too_long


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
