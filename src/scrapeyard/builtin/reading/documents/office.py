"""Word and Excel documents. Both are zip files of XML, which are measured before they are opened."""

import re
import zipfile
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any

from scrapeyard.builtin.pages.port import RawPage
from scrapeyard.builtin.pages.tables import MAX_CELLS, MAX_COLUMNS, MAX_ROWS, as_table, cut_rows
from scrapeyard.builtin.reading.documents.document import Document, DocumentRefused, needs

MAX_MEMBERS = 5000
MAX_UNPACKED = 64 * 1024 * 1024
"""Bytes of all XML in a document, unpacked."""
MAX_SHEETS = 50
_MAX_GRID = 5_000_000
_CELL = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{1,3})(\d{1,9})["']""")


def read_docx(page: RawPage) -> Document:
    """By way of HTML: headings, paragraphs, lists, tables and links. Pictures are left out."""
    try:
        import mammoth  # noqa: PLC0415 - an extra
    except ImportError:
        raise needs("mammoth") from None
    _measure(page.body)
    made = mammoth.convert_to_html(BytesIO(page.body), convert_image=lambda _: [], external_file_access=False)
    return Document(html=f"<!doctype html><body>{made.value}</body>")


def read_xlsx(page: RawPage) -> Document:
    """Each sheet as a table, whose first row is the header."""
    try:
        import python_calamine  # noqa: PLC0415 - an extra
    except ImportError:
        raise needs("python-calamine") from None
    _measure(page.body)
    book = python_calamine.CalamineWorkbook.from_filelike(BytesIO(page.body))
    names = [sheet.name for sheet in book.sheets_metadata if sheet.typ == python_calamine.SheetTypeEnum.WorkSheet]
    tables, warnings, room = list[dict[str, Any]](), list[str](), MAX_CELLS
    for name in names[:MAX_SHEETS]:
        values = book.get_sheet_by_name(name).to_python(nrows=MAX_ROWS + 1)
        filled = [row for each in values if any(row := [_cell(value) for value in each])]
        rows = cut_rows(filled, room)
        room -= sum(map(len, rows))
        if len(rows) < len(filled) or len(values) > MAX_ROWS:
            warnings.append(f"the sheet {name[:100]!r} is cut after {len(rows):,} rows")
        if rows:
            tables.append({"name": name, **as_table(rows[0], rows[1:], caption=name)})
    if len(names) > MAX_SHEETS:
        warnings.append(f"only the first {MAX_SHEETS} of {len(names)} sheets are read")
    markdown = "\n\n".join(f"## {table['name']}\n\n{table['markdown']}" for table in tables)
    text = "\n".join("\t".join(row) for table in tables for row in (table["header"], *table["rows"]))
    return Document(text=text, markdown=markdown, tables=tables, warnings=warnings)


def _cell(value: Any) -> str:
    """As people read it: a whole number without `.0`, a time in ISO 8601."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value)[:5000] if not isinstance(value, timedelta) else str(value)


def _measure(body: bytes) -> None:
    """Raise DocumentRefused for a file that unpacks to more than it should, or whose XML declares entities."""
    try:
        with zipfile.ZipFile(BytesIO(body)) as file:
            members = file.infolist()
            if len(members) > MAX_MEMBERS:
                raise DocumentRefused(f"it has {len(members):,} parts; at most {MAX_MEMBERS:,} are read")
            texts = [member for member in members if member.filename.endswith((".xml", ".rels"))]
            size = sum(member.file_size for member in texts)
            if size > MAX_UNPACKED:
                raise DocumentRefused(f"it unpacks to {size // 2**20:,} MB; at most {MAX_UNPACKED // 2**20} are read")
            for member in texts:
                _check_xml(member.filename, file.read(member))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise DocumentRefused(f"it is broken or encrypted: {str(error)[:200]}") from None


def _check_xml(name: str, xml: bytes) -> None:
    """Raise DocumentRefused for XML that could grow: entities, or cells so far apart that all between need room."""
    if b"<!DOCTYPE" in xml[:4096] or b"<!ENTITY" in xml or b"\0" in xml[:64]:
        raise DocumentRefused("its XML is not plain: it declares entities, or is not in UTF-8")
    if name.startswith("xl/worksheets/"):
        width = max((_column(match[1]) for match in _CELL.finditer(xml)), default=0)
        height = max((int(match[2]) for match in _CELL.finditer(xml)), default=0)
        if width > MAX_COLUMNS or width * height > _MAX_GRID:
            raise DocumentRefused(f"a sheet of {width:,} columns and {height:,} rows is too large")


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number
