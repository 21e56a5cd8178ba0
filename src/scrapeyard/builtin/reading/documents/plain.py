"""JSON, CSV and plain text."""

import csv
import io
import json
from typing import Any

from scrapeyard.builtin.pages.page import decode
from scrapeyard.builtin.pages.port import MAX_TEXT, RawPage
from scrapeyard.builtin.pages.tables import MAX_CELLS, MAX_COLUMNS, as_table, cut_rows
from scrapeyard.builtin.reading.documents.document import Document, DocumentRefused
from scrapeyard_sdk.extract.lenient_json import MAX_DEPTH, Budget, plain

MAX_SOURCE = 5_000_000
"""Characters of a document that is parsed."""
MAX_VALUES = 50_000
_DELIMITERS = ",;\t|"


def read_text(page: RawPage) -> Document:
    """The text as it is."""
    return Document(text=decode(page.body, page.encoding))


def read_json_text(page: RawPage) -> Document:
    """`data` is the value; Markdown has it indented in a code block. Raises DocumentRefused for what is not JSON."""
    text = decode(page.body, page.encoding).removeprefix("\ufeff")
    if len(text) > MAX_SOURCE:
        raise DocumentRefused(f"it has {len(text):,} characters; at most {MAX_SOURCE:,} are read")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentRefused(f"it is not JSON: {str(error)[:200]}") from None
    if not _is_small(value):
        words = f"`data` is null: the document has more than {MAX_VALUES:,} values or {MAX_DEPTH} levels"
        return Document(text=text, markdown=_block(text), warnings=[words])
    data = plain(value, Budget(2 * MAX_VALUES))
    shown = json.dumps(data, ensure_ascii=False, indent=2)
    return Document(text=text, markdown=_block(shown if len(shown) <= MAX_TEXT else text), data=data)


def read_csv(page: RawPage) -> Document:
    """One table, whose first row is the header. Raises DocumentRefused for what is not CSV."""
    text = decode(page.body, page.encoding).removeprefix("\ufeff")
    rows, warnings = _rows(text[:MAX_SOURCE]), list[str]()
    kept = cut_rows(rows, MAX_CELLS)
    if len(kept) < len(rows) or len(text) > MAX_SOURCE:
        warnings.append(f"the table is cut after {len(kept):,} rows")
    if not kept:
        return Document(text=text)
    table = as_table(kept[0], kept[1:])
    return Document(text=text, markdown=table["markdown"], tables=[table], warnings=warnings)


def _rows(text: str) -> list[list[str]]:
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        found = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
    except csv.Error as error:
        raise DocumentRefused(f"it is not CSV: {error}") from None
    if any(len(row) > MAX_COLUMNS for row in found):
        raise DocumentRefused(f"a row has more than {MAX_COLUMNS} cells")
    return found


def _block(text: str) -> str:
    return f"```json\n{text}\n```"


def _is_small(value: Any) -> bool:
    """Whether it has at most as many values and levels as are read."""
    count, depth, level = 1, 0, [value]
    while level and depth <= MAX_DEPTH and count <= MAX_VALUES:
        level = [b for a in level if isinstance(a, (dict, list)) for b in (a.values() if isinstance(a, dict) else a)]
        count += len(level)
        depth += 1
    return depth <= MAX_DEPTH and count <= MAX_VALUES
