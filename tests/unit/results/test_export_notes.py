"""What a file tells its readers beside its rows."""

import io
import json
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest

from scrapeyard.model.job import ExportWish
from scrapeyard.results.exports.builder import ExportBuilder
from scrapeyard.results.exports.protocol import Line, Written

PAGE = {"status": 200, "url": "http://a/", "final_url": "http://a/", "title": "t", "h1": "h", "text_hash": "x"}


def line(include: list[str] | None = None, **more: Any) -> Line:
    asked = {"url": "http://a/"} if include is None else {"url": "http://a/", "include": include}
    return Line("k", "success", 1.0, None, json.dumps(asked).encode(), json.dumps({**PAGE, **more}).encode())


def made(kind: Any, form: Any, *lines: Line, notes: tuple[str, ...] = ()) -> tuple[bytes, Written]:
    pieces: list[bytes] = []
    builder = ExportBuilder(ExportWish(type=kind, format=form), pieces.append, notes)
    builder.add_lines(lines)
    list(builder.finish())
    return b"".join(pieces), builder.written


def test_columns_that_were_never_extracted_are_told() -> None:
    (told,) = [note for note in made("full", "csv", line(product=None, images=None))[1].notes if "price" in note]
    assert told.startswith("price, currency, availability, sku, brand, category, breadcrumbs, attrs_json: empty")
    assert '"include": ["product"]' in told


@pytest.mark.parametrize(
    "lines",
    [
        [line(["product", "images"], product=None, images=[])],
        [line(product={"price": 1}, images=[])],
        [line(product=None, images=None), line(["product", "images"], product=None, images=None)],
        [Line("k", "success", 1.0, None, b"{}", b'{"price": 5}')],
        [Line("k", "error", 1.0, 500, b"{}", b"")],
        [],
    ],
)
def test_a_page_without_a_product_is_no_gap(lines: list[Line]) -> None:
    assert made("full", "csv", *lines)[1].notes == ()


def test_what_a_scraper_never_gives_is_told() -> None:
    notes = made("seo", "csv", line(images=[]))[1].notes
    assert any(note.startswith("og_title, og_description, og_image: empty") for note in notes)
    assert not any("title:" in note.split(",")[0] for note in notes)


def test_a_workbook_has_a_sheet_of_notes_behind_its_rows() -> None:
    data, written = made("full", "xlsx", line(product=None, images=None), notes=("a part was not read",))
    book = openpyxl.load_workbook(io.BytesIO(data))
    assert book.sheetnames == ["Sheet1", "Notes"]
    assert [row[0].value for row in book["Notes"].iter_rows()] == ["note", *written.notes]
    assert written.notes[0] == "a part was not read"
    assert book["Sheet1"].max_row == 2


def test_a_workbook_without_notes_has_its_rows_only() -> None:
    data, _ = made("full", "xlsx", line(product={}, images=[]))
    assert openpyxl.load_workbook(io.BytesIO(data)).sheetnames == ["Sheet1"]


def test_parquet_has_notes_in_its_metadata() -> None:
    data, written = made("full", "parquet", line(product=None, images=None))
    found = pq.read_metadata(io.BytesIO(data)).metadata[b"scrapeyard.notes"]
    assert json.loads(found) == list(written.notes)


@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
def test_other_files_hold_rows_only(form: str) -> None:
    assert b"part was not read" not in made("full", form, line(), notes=("a part was not read",))[0]
