"""The tables of a page as rows of text, with cells that span several rows or columns repeated in each."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapeyard_sdk.text import lines

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_TABLES = 200
MAX_ROWS = 20_000
MAX_COLUMNS = 500


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table. `headers` is empty if its first row has no header cells; otherwise each row has as many cells."""

    caption: str | None = None
    headers: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    @property
    def records(self) -> list[dict[str, str]]:
        """Each row by its headers: a name that comes again gets a number, an empty one is `column_1` and so on."""
        names = _unique(self.headers)
        return [dict(zip(names, row, strict=True)) for row in self.rows] if names else []


def read_tables(root: "LexborHTMLParser | LexborNode") -> list[Table]:
    """Every table that has cells, in order. The rows of a table inside another belong to the inner one alone."""
    found = (_table(node) for node in root.css("table")[:MAX_TABLES])
    return [table for table in found if table.rows or table.headers]


def _table(node: "LexborNode") -> Table:
    rows = list(_own_rows(node))
    grid = _grid(rows)
    width = max(map(len, grid), default=0)
    grid = [row + [""] * (width - len(row)) for row in grid]
    heads = _header_rows(rows)
    caption = next((each for each in node.iter() if each.tag == "caption"), None)
    return Table(
        caption=(" ".join(lines(caption)) or None) if caption is not None else None,
        headers=_merged(grid[:heads]),
        rows=[row for row in grid[heads:] if any(row)],
    )


def _own_rows(table: "LexborNode") -> "Iterator[LexborNode]":
    """The rows of the head, the bodies and the foot, without those of tables inside."""
    count = 0
    for part in table.iter():
        for row in (part,) if part.tag == "tr" else part.iter() if part.tag in ("thead", "tbody", "tfoot") else ():
            if row.tag == "tr" and count < MAX_ROWS:
                count += 1
                yield row


def _cells(row: "LexborNode") -> "list[LexborNode]":
    return [cell for cell in row.iter() if cell.tag in ("td", "th")][:MAX_COLUMNS]


def _header_rows(rows: "list[LexborNode]") -> int:
    """How many rows at the top are headers: those of `<thead>`, or a first row of header cells alone."""
    heads = sum(row.parent is not None and row.parent.tag == "thead" for row in rows)
    if heads or not rows:
        return heads
    cells = _cells(rows[0])
    return int(bool(cells) and len(rows) > 1 and all(cell.tag == "th" for cell in cells))


def _grid(rows: "list[LexborNode]") -> list[list[str]]:
    grid: list[list[str]] = []
    spans: dict[int, tuple[int, str]] = {}
    """By column: how many rows below a cell still fills, and its text."""
    for row in rows:
        line: list[str] = []
        for cell in _cells(row):
            _fill(line, spans)
            text = " ".join(lines(cell))
            deep = _span(cell, "rowspan", MAX_ROWS)
            for _ in range(min(_span(cell, "colspan", MAX_COLUMNS), MAX_COLUMNS - len(line))):
                if deep > 1:
                    spans[len(line)] = (deep, text)
                line.append(text)
        _fill(line, spans)
        spans = {column: (left - 1, text) for column, (left, text) in spans.items() if left > 1}
        grid.append(line)
    return grid


def _fill(line: list[str], spans: dict[int, tuple[int, str]]) -> None:
    """Add the cells that reach down from rows above; those of this row do not count."""
    while len(line) in spans and len(line) < MAX_COLUMNS:
        line.append(spans[len(line)][1])


def _span(cell: "LexborNode", name: str, most: int) -> int:
    said = (cell.attributes.get(name) or "").strip()
    return max(1, min(int(said), most)) if said.isascii() and said.isdigit() and len(said) < 7 else 1


def _merged(rows: list[list[str]]) -> list[str]:
    """One header for each column; of several rows of headers, the different words one after another."""
    return [" ".join(dict.fromkeys(word for word in column if word)) for column in zip(*rows, strict=True)]


def _unique(headers: list[str]) -> list[str]:
    names: list[str] = []
    seen: set[str] = set()
    for number, header in enumerate(headers, 1):
        name = base = header or f"column_{number}"
        again = 2
        while name in seen:
            name, again = f"{base}_{again}", again + 1
        seen.add(name)
        names.append(name)
    return names
