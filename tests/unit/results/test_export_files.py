"""Cells, columns and files of exports, away from any store."""

import csv
import io
import json
from typing import Any

import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapeyard.framed_process import HEAD
from scrapeyard.model.job import ExportWish
from scrapeyard.results.exports import protocol, records
from scrapeyard.results.exports.builder import ExportBuilder
from scrapeyard.results.exports.cells import as_number, as_text, as_time, decode, joined, neutral
from scrapeyard.results.exports.columns import Column
from scrapeyard.results.exports.files import CsvFile, JsonArray, JsonLines, Sink
from scrapeyard.results.exports.parquet_file import GROUP_ROWS, ParquetFile
from scrapeyard.results.exports.protocol import Line
from scrapeyard.results.exports.records import MAX_COLUMNS, Fields, flatten
from scrapeyard.results.exports.xlsx_file import MAX_CELL, XlsxFile

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
LEAF = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
VALUE = st.recursive(
    LEAF, lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3), max_leaves=12
)
COLUMNS = (Column("a"), Column("n", "number"), Column("i", "integer"), Column("b", "boolean"))


def line(result: Any, key: str = "item-1", status: str = "success") -> Line:
    return Line(key, status, 1.7e9, None, b'{"url":"http://a/"}', json.dumps(result).encode())


class Out:
    """Where a file goes."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.sink = Sink(self.pieces.append)

    @property
    def data(self) -> bytes:
        self.sink.finish()
        return b"".join(self.pieces)


def made(wish: ExportWish, *blocks: list[Line]) -> bytes:
    pieces: list[bytes] = []
    maker = ExportBuilder(wish, pieces.append)
    for block in blocks:
        maker.add_lines(block)
    for _ in maker.finish():
        pass
    data = b"".join(pieces)
    assert maker.written.bytes == len(data)
    return data


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1-555-0100",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1+1",
        "\u3000=1",
        "\uff1d1+1",
        "\uff0b1",
        "\uff0d1",
        "\uff20a",
        "\0=1",
        "-",
        "=",
        '=HYPERLINK("http://x","y")',
        "-5 °C",
    ],
)
def test_what_would_run_is_neutral(text: str) -> None:
    assert neutral(text) == "'" + text


@pytest.mark.parametrize(
    "cell", ["", "a=1", "-5", "+5.25", "-1e5", "-.5", "1+1", "'=1", "é", "한", 5, -5, -5.5, None, True, "http://a/?b=c"]
)
def test_what_is_harmless_stays(cell: Any) -> None:
    assert neutral(cell) == cell


@given(TEXT)
def test_no_text_begins_as_a_formula_afterwards(text: str) -> None:
    shown = neutral(text)
    assert isinstance(shown, str)
    assert shown in {text, "'" + text}
    if shown == text and text.strip(" \t\r\n\0")[:1] in tuple("=+-@"):
        float(text)


@given(st.lists(st.lists(LEAF, max_size=4), max_size=6))
def test_csv_is_read_as_it_was_written(rows: list[list[Any]]) -> None:
    out = Out()
    writer = CsvFile(out.sink, COLUMNS, bom=True)
    writer.write(rows)
    writer.close()
    assert out.data.startswith(b"\xef\xbb\xbf")
    found = list(csv.reader(io.StringIO(out.data.decode("utf-8-sig"), newline="")))
    assert found[0] == ["a", "n", "i", "b"]
    for row, cells in zip(rows, found[1:], strict=True):
        assert cells == [_shown(cell) for cell in row + [None] * (4 - len(row))]


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return str(neutral(cell)).replace("\0", "")
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


@given(
    st.dictionaries(
        TEXT, st.recursive(LEAF, lambda below: st.dictionaries(TEXT, below, min_size=1, max_size=3)), max_size=5
    )
)
def test_no_two_fields_share_a_column(record: dict[str, Any]) -> None:
    flat = flatten(record)
    assert len(flat) == _leaves(record, 1)
    assert not {records.ITEM, records.MORE} & set(flat)


def _leaves(value: Any, depth: int) -> int:
    if not isinstance(value, dict) or (depth > 1 and not value) or depth > records.MAX_DEPTH:
        return 1
    return sum(_leaves(below, depth + 1) for below in value.values())


def test_flattening() -> None:
    record = {
        "a": {"b": {"c": 1}, "d.e": 2},
        "list": [1, "x", None],
        "bars": ["a|b"],
        "tables": [{"x": 1}],
        "empty": {},
        "none": None,
        "_item": 3,
        "__item": 4,
        "_more": 5,
    }
    assert flatten(record) == {
        "a.b.c": 1,
        "a.d\\.e": 2,
        "list": "1|x|",
        "bars": '["a|b"]',
        "tables": '[{"x":1}]',
        "empty": "{}",
        "none": None,
        "__item": 3,
        "___item": 4,
        "__more": 5,
    }


def test_deep_nesting_ends_in_json() -> None:
    value: Any = 1
    for _ in range(200):
        value = {"a": value}
    (path,) = flatten(value)
    assert path == ".".join("a" * records.MAX_DEPTH)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.dictionaries(TEXT, VALUE, max_size=4), max_size=6), st.sampled_from(["csv", "xlsx", "parquet"]))
def test_any_records_can_be_written(data: list[dict[str, Any]], format_: Any) -> None:
    written = made(ExportWish(type="records", format=format_), [line(data, "k")], [line(record) for record in data])
    if format_ == "parquet":
        assert pq.read_table(io.BytesIO(written)).num_rows == 2 * len(data)
    elif format_ == "xlsx":
        sheet = openpyxl.load_workbook(io.BytesIO(written)).active
        assert sheet is not None
        assert sheet.max_row == 2 * len(data) + 1
    else:
        assert len(list(csv.reader(io.StringIO(written.decode("utf-8-sig"), newline="")))) == 2 * len(data) + 1


@given(st.lists(st.dictionaries(TEXT, VALUE, max_size=4), max_size=5))
def test_records_in_json_are_as_they_were(data: list[dict[str, Any]]) -> None:
    found = json.loads(made(ExportWish(type="records", format="json"), [line(record) for record in data]))
    assert [{name: value for name, value in record.items() if name != "_item"} for record in found] == [
        {name: value for name, value in record.items() if name != "_item"} for record in data
    ]
    assert all("_item" in record for record in found)


def test_columns_grow_without_spoiling_earlier_rows() -> None:
    fields = Fields()
    rows = [*fields.rows(line({"a": 1})), *fields.rows(line({"b": 2, "a": 3})), *fields.rows(line({"c": 4}))]
    assert [column.name for column in fields.columns] == ["_item", "a", "b", "c"]
    assert rows == [["item-1", 1], ["item-1", 3, 2], ["item-1", None, None, 4]]


def test_too_many_columns_go_together() -> None:
    fields = Fields()
    (first,) = fields.rows(line({f"f{number}": number for number in range(MAX_COLUMNS + 5)}))
    (second,) = fields.rows(line({"other": 1, "f0": 2}))
    assert len(fields.columns) == len(first) == MAX_COLUMNS
    assert fields.columns[-1].name == "_more"
    assert json.loads(str(first[-1])) == {f"f{n}": n for n in range(MAX_COLUMNS - 2, MAX_COLUMNS + 5)}
    assert (second[1], second[-1]) == (2, '{"other":1}')


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "integer"),
        ([1, 2.5], "number"),
        ([True, False], "boolean"),
        ([True, 1], "text"),
        ([1, "a"], "text"),
        ([2**70], "text"),
        ([None, 1], "integer"),
        ([None], "text"),
    ],
)
def test_kinds_of_columns(values: list[Any], kind: str) -> None:
    fields = Fields()
    for value in values:
        list(fields.rows(line({"a": value})))
    assert fields.columns[1].kind == kind
    data = made(ExportWish(type="records", format="parquet"), [line({"a": value}) for value in values])
    found = pq.read_table(io.BytesIO(data)).column("a").to_pylist()
    if kind != "text":
        assert found == values


def test_a_workbook_goes_on_in_the_next_sheet() -> None:
    out = Out()
    writer = XlsxFile(out.sink, (Column("a"), Column("n", "number")), max_rows=4)
    for start in range(0, 10, 5):
        writer.write([[f"row {number}", number] for number in range(start, start + 5)])
    writer.close()
    book = openpyxl.load_workbook(io.BytesIO(out.data))
    sheets = [[[cell.value for cell in row] for row in sheet.rows] for sheet in book.worksheets]
    assert [len(sheet) for sheet in sheets] == [4, 4, 4, 2]
    assert all(sheet[0] == ["a", "n"] for sheet in sheets)
    assert [row for sheet in sheets for row in sheet[1:]] == [[f"row {number}", number] for number in range(10)]


@given(st.lists(LEAF, min_size=1, max_size=8))
def test_a_workbook_is_read_as_it_was_written(row: list[Any]) -> None:
    out = Out()
    writer = XlsxFile(out.sink, [Column(str(number)) for number in range(len(row))])
    writer.write([row])
    writer.close()
    sheet = openpyxl.load_workbook(io.BytesIO(out.data)).active
    assert sheet is not None
    for place, cell in enumerate(row, 1):
        found = sheet.cell(2, place).value
        if isinstance(cell, str):
            assert _clean(found or "") == _clean(cell)
        elif isinstance(cell, int) and not isinstance(cell, bool) and abs(cell) >= 10**15:
            assert found == str(cell)
        else:
            assert found == cell


def _clean(text: str) -> str:
    kept = "".join(one for one in text if one in "\t\n\r" or (one >= " " and one not in "\ufffe\uffff"))
    return kept.replace("\r\n", "\n").replace("\r", "\n").strip()


def test_a_cell_holds_what_excel_allows() -> None:
    out = Out()
    writer = XlsxFile(out.sink, (Column("a"),))
    writer.write([["x" * 40_000], ["_x0041_"], ["  kept  "], ["a\x00b\x07c"]])
    writer.close()
    found = pd.read_excel(io.BytesIO(out.data), engine="openpyxl")["a"]
    assert len(found[0]) == MAX_CELL
    assert found[0].endswith("…")
    assert found[2] == "  kept  "
    assert found[3] == "abc"


def test_parquet_in_groups() -> None:
    out = Out()
    writer = ParquetFile(out.sink, COLUMNS)
    for start in range(0, GROUP_ROWS + 5000, 1000):
        writer.write([[f"{number}", number / 2, number, number % 2 == 0] for number in range(start, start + 1000)])
    writer.close()
    file = pq.ParquetFile(io.BytesIO(out.data))
    assert file.num_row_groups == 2
    assert file.metadata.num_rows == GROUP_ROWS + 5000 - (GROUP_ROWS + 5000) % 1000 + 1000
    assert file.read().column("i").to_pylist()[:3] == [0, 1, 2]


@pytest.mark.parametrize(("kind", "begin", "end"), [(JsonLines, b"", b"\n"), (JsonArray, b"[\n", b"\n]\n")])
def test_json_in_blocks(kind: type[JsonLines], begin: bytes, end: bytes) -> None:
    out = Out()
    writer = kind(out.sink, (Column("a"), Column("b")))
    writer.write([["x", 1], [None, True]])
    writer.write([])
    writer.write([["é", 2.5]])
    writer.close()
    objects = ['{"a":"x","b":1}', '{"a":null,"b":true}', '{"a":"é","b":2.5}']
    assert out.data == begin + (b",\n" if begin else b"\n").join(one.encode() for one in objects) + end


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0),
        ("2.5", 2.5),
        ("1.299,00 €", 1299.0),
        ("no price", None),
        (True, None),
        (None, None),
        ("nan", None),
        ("inf", None),
        (10**400, None),
        ([1], None),
    ],
)
def test_numbers(value: Any, number: float | None) -> None:
    assert as_number(value) == number


def test_cells() -> None:
    assert as_time(1_700_000_000.0006) == "2023-11-14T22:13:20.001Z"
    assert as_time(None) is None
    assert [as_text(value) for value in ("", None, "a", 1, True, [], {}, ["a", "b"], {"a": 1})] == [
        *(None, None, "a", "1", "true", None, None, "a|b", '{"a":1}'),
    ]
    assert joined([1, None, "a"]) == "1||a"
    assert decode(b'{"a": "\\ud800"}') == {"a": "?"}
    assert decode(b"nonsense") is None
    assert decode(b"[" * 100_000) is None


def test_frames_have_bounds() -> None:
    with pytest.raises(ValueError, match="allowed"):
        protocol.FRAMING.parse_head((protocol.FRAMING.max_bytes + 1).to_bytes(4) + b"D")
    assert protocol.FRAMING.parse_head(protocol.frame(b"D", b"abc")[:HEAD]) == (3, b"D")
