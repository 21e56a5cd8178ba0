"""Parquet, in row groups of some 64,000 rows or 32 MB, whichever comes first."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from scrapeyard.results.exports.cells import as_json
from scrapeyard.results.exports.columns import Cell, Column, Kind, Row
from scrapeyard.results.exports.files import Sink

_TYPES: Final[dict[Kind, Any]] = {
    "text": pa.string(),
    "number": pa.float64(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
}
GROUP_ROWS: Final = 65_536
GROUP_BYTES: Final = 32 * 1024 * 1024


class ParquetFile:
    """A FileWriter. A value that does not fit its column's type is converted if that is text, else left out."""

    def __init__(self, sink: Sink, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._schema = pa.schema([(column.name, _TYPES[column.kind]) for column in columns])
        self._writer = pq.ParquetWriter(pa.PythonFile(sink, mode="w"), self._schema, compression="zstd")
        self._batches: list[Any] = []
        self._rows = 0
        self._bytes = 0

    def write(self, rows: Sequence[Row]) -> None:
        """Some rows, in order."""
        if not rows:
            return
        batch = pa.record_batch([self._array(place, rows) for place in range(len(self._columns))], schema=self._schema)
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def close(self, notes: Sequence[str] = ()) -> None:
        """Write the last row group and the footer, which has the notes under `scrapeyard.notes`."""
        self._flush()
        if notes:
            self._writer.add_key_value_metadata({"scrapeyard.notes": as_json(list(notes))})
        self._writer.close()

    def _array(self, place: int, rows: Sequence[Row]) -> Any:
        cells = [row[place] if place < len(row) else None for row in rows]
        kind = self._columns[place].kind
        try:
            return pa.array(cells, _TYPES[kind])
        except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError):
            return pa.array([_fitting(kind, cell) for cell in cells], _TYPES[kind])

    def _flush(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches), row_group_size=GROUP_ROWS * 2)
        self._batches.clear()
        self._rows = self._bytes = 0


def _fitting(kind: Kind, cell: Cell) -> Cell:
    if cell is None:
        return None
    if kind == "text":
        text = cell if isinstance(cell, str) else as_json(cell)
        return text.encode("utf-8", "replace").decode()
    if isinstance(cell, (bool, str)):
        return cell if kind == "boolean" and isinstance(cell, bool) else None
    return float(cell) if kind == "number" else int(cell) if kind == "integer" and float(cell).is_integer() else None
