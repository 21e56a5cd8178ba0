"""From items to a file, one block at a time.

If the columns are known beforehand, rows are written at once. The columns of records are known only at the end: their
rows are spooled to a compressed anonymous file, which vanishes with the process.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from scrapeyard import zstd
from scrapeyard.extras import missing
from scrapeyard.model.job import ExportWish
from scrapeyard.results.exports.cells import as_json, to_json
from scrapeyard.results.exports.columns import FIXED, PAGES, Column, Row
from scrapeyard.results.exports.files import CsvFile, FileWriter, JsonArray, JsonLines, Sink
from scrapeyard.results.exports.links import LinkTable
from scrapeyard.results.exports.pages import PageTable
from scrapeyard.results.exports.protocol import Line, Written, decode_rows, encode
from scrapeyard.results.exports.records import ITEM, PAGE_ROWS, Fields, Unfilled, data_of, records_of
from scrapeyard.results.exports.xlsx_file import XlsxFile

_BLOCK: Final = 1000
_PAGE_NAMES: Final = [column.name for column in PAGES]


class ExportBuilder:
    """Builds one file. Rows keep the order of the items."""

    def __init__(
        self,
        wish: ExportWish,
        send: Callable[[bytes], None],
        notes: Sequence[str] = (),
        restart: Callable[[], None] | None = None,
        *,
        live: bool = False,
    ) -> None:
        """`notes` are told with the file, before what is found out while it is written. `restart` empties what was sent
        so far; with it, CSV of records is written while rows are added, and anew when columns are added. With `live`,
        JSONL of pages is written while they are added; rows whose duplicates are not known yet lack that column."""
        self._wish = wish
        self.notes = notes
        self._sink = Sink(send)
        is_live = live and (wish.type, wish.format) == ("pages", "jsonl")
        self._way = _LivePages(self._sink) if is_live else _way(wish, self._sink, restart)

    @property
    def rows(self) -> int:
        """Rows so far."""
        return self._way.rows

    def add_lines(self, block: Sequence[Line]) -> None:
        """Add some items, in order."""
        self._way.add(block)

    def add_rows(self, block: Sequence[Row]) -> None:
        """Add some rows of `diff`, in order."""
        if not isinstance(self._way, _Direct):
            raise ValueError("records are made of items")
        self._way.add_rows(block)

    def pass_on(self) -> None:
        """Send the rows so far, as far as the format allows."""
        self._sink.pass_on()

    def finish(self) -> Iterator[tuple[int, float]]:
        """Write the rest; yields the number of rows and the share of the rest that is done, now and then."""
        notes = (*self.notes, *self._way.notes())
        for share in self._way.finish(notes):
            yield self.rows, share
        self.written = Written(rows=self.rows, digest=self._sink.finish(), bytes=self._sink.size, notes=notes)


class _Direct:
    """Rows with known columns."""

    def __init__(self, writer: FileWriter, wish: ExportWish) -> None:
        self._writer = writer
        self.rows = 0
        self._row = PAGE_ROWS.get(wish.type)
        self._unfilled = Unfilled(wish.type)

    def add(self, block: Sequence[Line]) -> None:
        assert self._row is not None  # noqa: S101 - a diff is given as rows
        make, look = self._row, self._unfilled.look
        rows: list[Row] = []
        for line in block:
            page = data_of(line)
            look(line, page)
            rows.append(make(line, page))
        self.add_rows(rows)

    def add_rows(self, rows: Sequence[Row]) -> None:
        self._writer.write(rows)
        self.rows += len(rows)

    def notes(self) -> list[str]:
        return self._unfilled.notes()

    def finish(self, notes: Sequence[str]) -> Iterator[float]:
        self._writer.close(notes)
        yield 1.0


class _Objects:
    """Records as JSON objects, not flattened."""

    def __init__(self, writer: JsonLines) -> None:
        self._writer = writer
        self.rows = 0

    def add(self, block: Sequence[Line]) -> None:
        objects = [found for line in block for found in _objects(line)]
        self._writer.write_objects(objects)
        self.rows += len(objects)

    def notes(self) -> list[str]:
        return []

    def finish(self, notes: Sequence[str]) -> Iterator[float]:
        self._writer.close(notes)
        yield 1.0


class _Spooled:
    """Records as rows: spooled until their columns are known."""

    def __init__(self, open_writer: Callable[[Sequence[Column]], FileWriter]) -> None:
        self._open = open_writer
        self._fields = Fields()
        self.rows = 0
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this does

    def add(self, block: Sequence[Line]) -> None:
        self._spool_rows(block)

    def _spool_rows(self, block: Sequence[Line]) -> list[Row]:
        rows = [row for line in block for row in self._fields.rows(line)]
        for start in range(0, len(rows), _BLOCK):
            packed = zstd.compress(encode(rows[start : start + _BLOCK]), 1)
            self._spool.write(len(packed).to_bytes(4) + packed)
        self.rows += len(rows)
        return rows

    def notes(self) -> list[str]:
        return []

    def finish(self, notes: Sequence[str]) -> Iterator[float]:
        writer = self._open(self._fields.columns)
        with self._spool:
            yield from self._write_all(writer)
        writer.close(notes)
        yield 1.0

    def _write_all(self, writer: FileWriter) -> Iterator[float]:
        done = 0
        self._spool.seek(0)
        while head := self._spool.read(4):
            rows = decode_rows(zstd.decompress(self._spool.read(int.from_bytes(head))))
            writer.write(rows)
            done += len(rows)
            yield done / self.rows


class _Growing(_Spooled):
    """Records as rows that are written at once. When columns are added, the file is written anew; not before it has
    twice as many rows as the last time, so that all this costs no more than writing it three times."""

    def __init__(self, open_writer: Callable[[Sequence[Column]], FileWriter], restart: Callable[[], None]) -> None:
        super().__init__(open_writer)
        self._restart = restart
        self._writer: FileWriter | None = None
        self._width = 0
        self._anew_at = 0

    def add(self, block: Sequence[Line]) -> None:
        before = self.rows
        rows = self._spool_rows(block)
        if len(self._fields.columns) == self._width and self._writer is not None:
            self._writer.write(rows)
        elif self.rows > before and self.rows >= self._anew_at:
            for _ in self._anew():
                pass
        else:
            self._writer = None

    def finish(self, notes: Sequence[str]) -> Iterator[float]:
        with self._spool:
            if self._writer is None:
                yield from self._anew()
        if self._writer is not None:
            self._writer.close(notes)
        yield 1.0

    def _anew(self) -> Iterator[float]:
        self._restart()
        self._width, self._anew_at = len(self._fields.columns), 2 * self.rows
        self._writer = self._open(self._fields.columns)
        yield from self._write_all(self._writer)


class _Linked:
    """Links, which are joined with their targets when all pages are known."""

    def __init__(self, writer: FileWriter) -> None:
        self._writer = writer
        self._table = LinkTable()
        self._unfilled = Unfilled("links")
        self.rows = 0

    def add(self, block: Sequence[Line]) -> None:
        pages = [(line, data_of(line)) for line in block]
        for line, page in pages:
            self._unfilled.look(line, page)
        self._table.add(pages)

    def notes(self) -> list[str]:
        return self._unfilled.notes()

    def finish(self, notes: Sequence[str]) -> Iterator[float]:
        for rows in self._table.rows():
            self._writer.write(rows)
            self.rows += len(rows)
            yield min(1.0, self.rows / max(self._table.links, 1))
        self._writer.close(notes)
        yield 1.0


class _Paged:
    """Pages: which of them is a duplicate is known only at the end."""

    def __init__(self, writer: FileWriter, *, live: bool = False) -> None:
        self._writer = writer
        self._table = PageTable(live=live)

    @property
    def rows(self) -> int:
        return self._table.pages

    def add(self, block: Sequence[Line]) -> None:
        self._table.add([(line, data_of(line)) for line in block])

    def notes(self) -> list[str]:
        return self._table.notes()

    def finish(self, notes: Sequence[str]) -> Iterator[float]:
        done = 0
        for rows in self._table.rows():
            self._writer.write(rows)
            done += len(rows)
            yield min(1.0, done / self.rows)
        self._writer.close(notes)
        yield 1.0


class _LivePages(_Paged):
    """Pages that are written at once."""

    def __init__(self, sink: Sink) -> None:
        self._lines = JsonLines(sink, PAGES)
        super().__init__(self._lines, live=True)

    def add(self, block: Sequence[Line]) -> None:
        rows = self._table.add_live([(line, data_of(line)) for line in block])
        self._lines.write_objects([to_json(dict(zip(_PAGE_NAMES, row, strict=False))) for row in rows])

    def finish(self, notes: Sequence[str]) -> Iterator[float]:
        self._writer.close(notes)
        yield 1.0


_Way = _Direct | _Objects | _Spooled | _Linked | _Paged


def _way(wish: ExportWish, sink: Sink, restart: Callable[[], None] | None) -> _Way:
    if wish.type == "links":
        return _Linked(_writer(wish, sink, FIXED[wish.type]))
    if wish.type == "pages":
        return _Paged(_writer(wish, sink, FIXED[wish.type]))
    if wish.type != "records":
        return _Direct(_writer(wish, sink, FIXED[wish.type]), wish)
    if wish.format in ("json", "jsonl"):
        return _Objects((JsonArray if wish.format == "json" else JsonLines)(sink, ()))
    if restart is None or wish.format != "csv":
        return _Spooled(lambda columns: _writer(wish, sink, columns))

    def empty() -> None:
        sink.restart()
        restart()

    return _Growing(lambda columns: _writer(wish, sink, columns), empty)


def _writer(wish: ExportWish, sink: Sink, columns: Sequence[Column]) -> FileWriter:
    if wish.format == "csv":
        return CsvFile(sink, columns, bom=wish.bom)
    if wish.format == "xlsx":
        return XlsxFile(sink, columns)
    if wish.format == "parquet":
        if words := missing("parquet"):
            raise ValueError(words)
        from scrapeyard.results.exports.parquet_file import ParquetFile  # noqa: PLC0415 - slow to load and large

        return ParquetFile(sink, columns)
    return (JsonArray if wish.format == "json" else JsonLines)(sink, columns)


def _objects(line: Line) -> Iterator[bytes]:
    """Records with their item's key in front. Most are objects and need no decoding for that."""
    if line.status == "success" and line.result[:1] == b"{" and b'"_item"' not in line.result:
        head = b'{"_item":' + as_json(line.key).encode()
        yield head + (b"," if line.result[1:].lstrip()[:1] != b"}" else b"") + line.result[1:]
        return
    for record in records_of(line):
        yield to_json(record if ITEM in record else {ITEM: line.key, **record})
