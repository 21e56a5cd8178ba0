"""XLSX, written straight into its zip: only the current row is held in memory.

Texts stand in their cells (`inlineStr`), so they are never formulas and no table of strings grows with the file. A
sheet is full at Excel's row limit, or when its XML nears what a zip without 64-bit extensions holds: Excel offers to
repair files with those. Then the next sheet begins with the same headings.
"""

import re
import zipfile
from collections.abc import Sequence
from typing import IO, Any, Final, cast

from scrapeyard.results.exports.columns import Cell, Column, Row
from scrapeyard.results.exports.files import Sink

MAX_ROWS: Final = 1_048_576
MAX_CELL: Final = 32_767
"""Maximum characters; longer text is cut, with `…` at its end."""
_MAX_SHEET_BYTES: Final = 1_900_000_000
_EXACT: Final = 10**15
"""Integers from here on would lose digits; they are stored as text."""
_ESCAPES: Final = re.compile("[&<>]|_(?=x[0-9A-Fa-f]{4}_)|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAMED: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "_": "_x005F_"}
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SHEET_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
_TYPES: Final = (
    f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Default Extension="xml" ContentType="{_SHEET_TYPE}"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
)
"""Worksheets are the default type, so that this part can come first, before their number is known."""
_ROOT: Final = (
    f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
)
_SHEET_BEGIN: Final = (
    f'{_XML}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0">'
    '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>'
)
_SHEET_END: Final = "</sheetData></worksheet>"


class XlsxFile:
    """A FileWriter."""

    def __init__(self, sink: Sink, columns: Sequence[Column], *, max_rows: int = MAX_ROWS) -> None:
        # Python's zip files go through a stream that cannot seek, but its types do not say so.
        self._zip = zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._names: Row = [column.name for column in columns]
        self._max_rows = max_rows
        self._sheets = 0
        self._rows = 0
        self._bytes = 0
        self._sheet: Any = None
        self._put("[Content_Types].xml", _TYPES)
        self._put("_rels/.rels", _ROOT)
        self._begin_sheet()

    def write(self, rows: Sequence[Row]) -> None:
        """Some rows, in order."""
        while rows:
            if self._rows >= self._max_rows or self._bytes >= _MAX_SHEET_BYTES:
                self._end_sheet()
                self._begin_sheet()
            now, rows = rows[: self._max_rows - self._rows], rows[self._max_rows - self._rows :]
            self._rows += len(now)
            self._write("".join([_row(row) for row in now]))

    def close(self, notes: Sequence[str] = ()) -> None:
        """Write the last sheet, a sheet `Notes` if there are any, and the parts that list all sheets."""
        self._end_sheet()
        names = [f"Sheet{n}" for n in range(1, self._sheets + 1)]
        if notes:
            self._names = ["note"]
            self._begin_sheet()
            self._write("".join(_row([note]) for note in notes))
            self._end_sheet()
            names.append("Notes")
        numbers = range(1, self._sheets + 1)
        sheets = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(names, 1))
        links = "".join(
            f'<Relationship Id="rId{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in numbers
        )
        workbook = f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{sheets}</sheets></workbook>'
        self._put("xl/workbook.xml", _XML + workbook)
        relations = f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'
        self._put("xl/_rels/workbook.xml.rels", _XML + relations)
        self._zip.close()

    def _begin_sheet(self) -> None:
        self._sheets += 1
        self._sheet = self._zip.open(_entry(f"xl/worksheets/sheet{self._sheets}.xml"), "w")
        self._rows, self._bytes = 1, 0
        self._write(_SHEET_BEGIN + _row(self._names))

    def _end_sheet(self) -> None:
        self._write(_SHEET_END)
        self._sheet.close()

    def _write(self, text: str) -> None:
        data = text.encode()
        self._bytes += len(data)
        self._sheet.write(data)

    def _put(self, name: str, text: str) -> None:
        self._zip.writestr(_entry(name), text)


def _entry(name: str) -> zipfile.ZipInfo:
    """A zip entry with a fixed time, so that equal rows give equal bytes."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _row(row: Row) -> str:
    return f"<row>{''.join([_cell(cell) for cell in row])}</row>"


def _cell(cell: Cell) -> str:
    if cell is None or cell == "":
        return "<c/>"
    if type(cell) is str:
        return _text(cell)
    if type(cell) is bool:
        return f'<c t="b"><v>{int(cell)}</v></c>'
    if type(cell) is int and not -_EXACT < cell < _EXACT:
        return _text(str(cell))
    return f"<c><v>{cell}</v></c>"


def _text(text: str) -> str:
    if len(text) > MAX_CELL:
        text = text[: MAX_CELL - 1] + "…"
    keep = ' xml:space="preserve"' if text[0].isspace() or text[-1].isspace() else ""
    if _ESCAPES.search(text):
        text = _ESCAPES.sub(_escape, text)
    return f'<c t="inlineStr"><is><t{keep}>{text}</t></is></c>'


def _escape(found: re.Match[str]) -> str:
    return _NAMED.get(found[0], "")
