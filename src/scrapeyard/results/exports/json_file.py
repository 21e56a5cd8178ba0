"""JSON and JSON Lines: one object for each row, with every column in it."""

from collections.abc import Sequence

from scrapeyard.results.exports.cells import to_json
from scrapeyard.results.exports.columns import Column, Row
from scrapeyard.results.exports.files import Sink


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
