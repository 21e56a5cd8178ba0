"""CSV as spreadsheets read it, JSON and JSON Lines."""

import csv
import io
from collections.abc import Sequence

from scrapeyard.results.exports.cells import neutral, to_json
from scrapeyard.results.exports.columns import Cell, Column, Row
from scrapeyard.results.exports.files import Sink


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


class JsonLines:
    """A FileWriter, and the writer of ready objects."""

    _between = b"\n"
    _open = b""
    _shut = b"\n"
    _empty = b""

    def __init__(self, sink: Sink, columns: Sequence[Column]) -> None:
        self._sink = sink
        self._names = [column.name for column in columns]
        self._began = False

    def write(self, rows: Sequence[Row]) -> None:
        """Some rows, in order."""
        names = self._names
        self.write_objects([to_json(dict(zip(names, row, strict=True))) for row in rows])

    def write_objects(self, objects: Sequence[bytes]) -> None:
        """Objects that are JSON already."""
        if objects:
            self._sink.write(self._between if self._began else self._open)
            self._sink.write(self._between.join(objects))
            self._began = True

    def close(self) -> None:
        """What stands at the end."""
        self._sink.write(self._shut if self._began else self._empty)


class JsonArray(JsonLines):
    """The same as one array, one object a line."""

    _between = b",\n"
    _open = b"[\n"
    _shut = b"\n]\n"
    _empty = b"[]\n"
