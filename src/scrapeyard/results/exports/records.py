"""What scrapers return, as rows with columns of their own: nested fields as `a.b`, columns in the order in which they
first appear.

A dot within a name is written `\\.`, and a field called like one of our own columns (`_item`, `_more`) gets one more
`_` in front, so that no two fields share a column. Columns beyond MAX_COLUMNS go together, as JSON, into the last one.
"""

from collections.abc import Iterator
from typing import Any, Final

from scrapeyard.results.exports.cells import as_json, decode, plain
from scrapeyard.results.exports.columns import Cell, Column, Kind, Row
from scrapeyard.results.exports.protocol import Line

ITEM: Final = "_item"
MORE: Final = "_more"
_OURS: Final = frozenset(name.lstrip("_") for name in (ITEM, MORE))
MAX_COLUMNS: Final = 2000
MAX_DEPTH: Final = 8
"""What is nested deeper is JSON in one cell."""


def records_of(line: Line) -> Iterator[dict[str, Any]]:
    """One for each record: a list of tables gives several, a bare value is a table with the field `value`."""
    if line.status != "success" or not line.result:
        return
    data = decode(line.result)
    for record in data if isinstance(data, list) else (data,):
        if isinstance(record, dict):
            yield record
        elif record is not None:
            yield {"value": record}


def flatten(record: dict[str, Any]) -> dict[str, Cell]:
    """Fields by their paths."""
    flat: dict[str, Cell] = {}
    for name, value in record.items():
        path = _escaped(name)
        if path.startswith("_") and path.lstrip("_") in _OURS:
            path = "_" + path
        _put(flat, path, value, 1)
    return flat


def _put(flat: dict[str, Cell], path: str, value: Any, depth: int) -> None:
    if type(value) is dict and value and depth < MAX_DEPTH:
        for name, below in value.items():
            _put(flat, f"{path}.{_escaped(name)}", below, depth + 1)
    else:
        flat[path] = plain(value)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(".", "\\.") if "." in name or "\\" in name else name


class Fields:
    """Columns, growing as records are seen. A row stays right when more columns come: it is only shorter."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {ITEM: 0}
        self._kinds: list[Kind | None] = ["text"]
        self._overflows = False

    def rows(self, line: Line) -> Iterator[Row]:
        """The records of an item as rows."""
        for record in records_of(line):
            yield self.row(line.key, flatten(record))

    def row(self, key: str, flat: dict[str, Cell]) -> Row:
        """A record as a row; the columns it has first are added."""
        row: Row = [None] * len(self._places)
        row[0] = key
        more: dict[str, Cell] = {}
        for path, value in flat.items():
            place = self._place(path)
            if place is None:
                more[path] = value
                continue
            if place == len(row):
                row.append(None)
            row[place] = value
            self._note(place, value)
        return self._with_more(row, more) if more else row

    @property
    def columns(self) -> tuple[Column, ...]:
        """All that were seen."""
        return tuple(Column(name, self._kinds[place] or "text") for name, place in self._places.items())

    def _place(self, path: str) -> int | None:
        place = self._places.get(path)
        if place is None and len(self._places) < MAX_COLUMNS - 1:
            place = self._places[path] = len(self._places)
            self._kinds.append(None)
        return place

    def _with_more(self, row: Row, more: dict[str, Cell]) -> Row:
        if not self._overflows:
            self._overflows = True
            self._places[MORE] = MAX_COLUMNS - 1
            self._kinds.append("text")
        row += [None] * (MAX_COLUMNS - len(row))
        row[-1] = as_json(more)
        return row

    def _note(self, place: int, value: Cell) -> None:
        kind = self._kinds[place]
        if kind == "text" or value is None:
            return
        seen = _kind(value)
        if kind is not seen:
            self._kinds[place] = seen if kind is None else _both(kind, seen)


def _kind(value: Cell) -> Kind:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number"


def _both(one: Kind, other: Kind) -> Kind:
    return "number" if {one, other} == {"integer", "number"} else "text"
