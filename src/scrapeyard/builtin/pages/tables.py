"""Tables as the fields of a page show them: as data and as Markdown."""

from typing import Any

from selectolax.lexbor import LexborHTMLParser

from scrapeyard_sdk.extract.tables import read_tables

MAX_ROWS = 5000
"""Rows of one table."""
MAX_COLUMNS = 200
MAX_CELLS = 100_000
"""Cells of all tables of a page."""

Rows = list[list[str]]


def tables_of(tree: LexborHTMLParser, warnings: list[str]) -> list[dict[str, Any]]:
    """Every table of a page. Warns of rows that were left out."""
    found: list[dict[str, Any]] = []
    room = MAX_CELLS
    for number, table in enumerate(read_tables(tree), 1):
        kept = cut_rows(table.rows, room)
        room -= sum(map(len, kept))
        if len(kept) < len(table.rows):
            warnings.append(f"table {number} has the first {len(kept):,} of {len(table.rows):,} rows")
        found.append(as_table(table.headers, kept, caption=table.caption))
    return found


def cut_rows(rows: Rows, room: int) -> Rows:
    """The first rows, as many as may be kept and have together at most `room` cells."""
    kept: Rows = []
    for row in rows[:MAX_ROWS]:
        room -= len(row)
        if room < 0:
            break
        kept.append(row)
    return kept


def as_table(header: list[str], rows: Rows, *, caption: str | None = None) -> dict[str, Any]:
    """A table as the page's field `tables` has it. The header is empty if the table has none."""
    return {"caption": caption or None, "header": header, "rows": rows, "markdown": _to_markdown(header, rows)}


def _to_markdown(header: list[str], rows: Rows) -> str:
    width = max((len(row) for row in (header, *rows)), default=0)
    if not width:
        return ""
    lines = (header, ["---"] * width, *rows)
    return "\n".join(_line(row, width) for row in lines)


def _line(row: list[str], width: int) -> str:
    cells = [" ".join(cell.split()).replace("\\", "\\\\").replace("|", "\\|") for cell in row]
    return "| " + " | ".join(cells + [""] * (width - len(cells))) + " |"
