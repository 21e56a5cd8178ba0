"""CSV as spreadsheets read it: commas, CRLF, UTF-8 with a mark in front unless it is not wanted, no formulas."""

import csv
import io
from collections.abc import Sequence

from scrapeyard.results.exports.columns import Cell, Column, Row
from scrapeyard.results.exports.files import Sink
from scrapeyard.results.exports.formulas import neutral


class CsvFile:
    """A FileWriter. NUL is left out of texts: readers stop at it."""

    def __init__(self, sink: Sink, columns: Sequence[Column], *, bom: bool) -> None:
        self._sink = sink
        self._width = len(columns)
        self._text = io.StringIO(newline="")
        self._csv = csv.writer(self._text)
        if bom:
            sink.write(b"\xef\xbb\xbf")
        self.write([[column.name for column in columns]])

    def write(self, rows: Sequence[Row]) -> None:
        """Some rows, in order."""
        width = self._width
        self._csv.writerows(_cells(row, width) for row in rows)
        text = self._text.getvalue()
        self._sink.write((text.replace("\0", "") if "\0" in text else text).encode("utf-8", "replace"))
        self._text.seek(0)
        self._text.truncate()

    def close(self) -> None:
        """Nothing more: the file may end after any row."""


def _cells(row: Row, width: int) -> list[Cell]:
    cells = [
        neutral(cell) if type(cell) is str else ("true" if cell else "false") if type(cell) is bool else cell
        for cell in row
    ]
    return cells + [None] * (width - len(cells)) if len(cells) < width else cells
