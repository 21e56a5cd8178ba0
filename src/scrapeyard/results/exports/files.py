"""File formats: the writer port, and the writers of CSV, JSON and JSON Lines."""

import csv
import hashlib
import io
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from scrapeyard.results.exports.cells import neutral, to_json
from scrapeyard.results.exports.columns import Cell, Column, Row

_PIECE: Final = 256 * 1024


class FileWriter(Protocol):
    """Writes one file sequentially, never seeking back. Equal rows give equal bytes."""

    def write(self, rows: Sequence[Row]) -> None:
        """Write some rows, in order."""

    def close(self, notes: Sequence[str] = ()) -> None:
        """Write the end of the file; with notes for its readers, if the format has a place for them."""


class Sink:
    """Passes bytes on in chunks, and counts and hashes them. Not seekable, on purpose."""

    closed = False

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._waiting: list[bytes] = []
        self._waits = 0
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> int:
        """As files do."""
        piece = bytes(data)
        self._waiting.append(piece)
        self._waits += len(piece)
        self.size += len(piece)
        if self._waits >= _PIECE:
            self._hand_on()
        return len(piece)

    def flush(self) -> None:
        """Does nothing: format writers flush at will, but chunks are passed on when they are large enough."""

    def tell(self) -> int:
        """Bytes so far."""
        return self.size

    def pass_on(self) -> None:
        """Pass on what waits, however little it is."""
        if self._waiting:
            self._hand_on()

    def restart(self) -> None:
        """Forget everything: the file is written anew from its first byte."""
        self._waiting.clear()
        self._waits = self.size = 0
        self._digest = hashlib.sha256()

    def finish(self) -> str:
        """Pass on the rest; returns the SHA-256 of everything, in hex."""
        self.pass_on()
        return self._digest.hexdigest()

    def _hand_on(self) -> None:
        piece = b"".join(self._waiting)
        self._waiting.clear()
        self._waits = 0
        self._digest.update(piece)
        self._send(piece)


class CsvFile:
    """A FileWriter. NUL is removed from texts, since readers stop at it."""

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

    def close(self, notes: Sequence[str] = ()) -> None:
        """Nothing to write: the file may end after any row."""


def _cells(row: Row, width: int) -> list[Cell]:
    cells = [
        neutral(cell) if type(cell) is str else ("true" if cell else "false") if type(cell) is bool else cell
        for cell in row
    ]
    return cells + [None] * (width - len(cells)) if len(cells) < width else cells


class JsonLines:
    """A FileWriter that also writes encoded objects. Who reads along sees whole lines."""

    _open = b""
    _more = b""
    """Before each block of objects but the first."""
    _between = b"\n"
    _after = b"\n"
    """After each block of objects."""
    _shut = b""
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
        """Write objects that are already JSON."""
        if objects:
            self._sink.write(self._more if self._began else self._open)
            self._sink.write(self._between.join(objects) + self._after)
            self._began = True

    def close(self, notes: Sequence[str] = ()) -> None:  # noqa: ARG002  every line is a row
        """Write the end of the file."""
        self._sink.write(self._shut if self._began else self._empty)


class JsonArray(JsonLines):
    """The same as one array, one object per line."""

    _open = b"[\n"
    _more = _between = b",\n"
    _after = b""
    _shut = b"\n]\n"
    _empty = b"[]\n"
