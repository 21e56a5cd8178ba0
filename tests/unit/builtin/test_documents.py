"""Documents that are not HTML: PDF, DOCX, XLSX, feeds, JSON, CSV and plain text."""

import builtins
import io
import zipfile
from collections.abc import Callable
from datetime import date
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapeyard.builtin.pages import kinds
from scrapeyard.builtin.pages.kinds import kind_of
from scrapeyard.builtin.pages.port import MAX_TEXT, PARTS, RawPage
from scrapeyard.builtin.reading.documents import office
from scrapeyard.builtin.reading.raw import read_raw
from tests.unit.builtin.made_documents import docx, pdf, xlsx

URL = "https://shop.example/dir/page"
RSS = b"""<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>
<title>News</title><link>https://n.example/</link><item><title>A &amp; b</title><link>/1</link>
<pubDate>Tue, 10 Jun 2025 09:41:01 GMT</pubDate><dc:creator>Ann</dc:creator><category>x</category>
<description><![CDATA[<p>Hi <b>you</b></p>]]></description></item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><title>A</title>
<link rel="self" href="/self"/><link href="/1"/><updated>2025-06-10T09:41:01Z</updated>
<author><name>Ann</name></author></entry></feed>"""


def read(kind: str, body: bytes, include: tuple[str, ...] = PARTS) -> dict[str, Any]:
    return read_raw(RawPage(url=URL, body=body, encoding="utf-8", kind=kind, include=include))


def test_pdf() -> None:
    found = read("pdf", pdf([["Kilns (all)", "# not a heading"], ["Second page"]]))
    assert (found["title"], found["warnings"]) == ("Annual report", [])
    assert found["text"] == "Kilns (all)\n# not a heading\n\nSecond page"
    assert found["markdown"] == "Kilns (all)\n\\# not a heading\n\nSecond page"
    assert found["metadata"]["pages"] == 2


def test_pdf_of_pictures_is_told() -> None:
    found = read("pdf", pdf([[]]))
    assert (found["text"], found["warnings"]) == ("", ["the document has no text: its pages may be pictures"])


def test_docx() -> None:
    found = read("docx", docx())
    assert found["markdown"].splitlines()[0] == "# Kilns"
    assert "**hot**" in found["markdown"]
    assert found["tables"][0]["rows"][-1] == ["Small", "12"]
    assert (found["title"], found["warnings"]) == ("Kilns", [])


def test_xlsx() -> None:
    rows = [["name", "price", "day", "ok"], ["Lamp", 12.5, date(2024, 5, 1), True], ["Pot", 3, None, False], []]
    found = read("xlsx", xlsx({"Goods": rows, "Empty": []}))
    (table,) = found["tables"]
    assert (table["name"], table["header"]) == ("Goods", ["name", "price", "day", "ok"])
    assert table["rows"] == [["Lamp", "12.5", "2024-05-01", "true"], ["Pot", "3", "", "false"]]
    assert found["markdown"].startswith("## Goods\n\n| name | price |")


def test_rss_and_atom() -> None:
    found = read("feed", RSS)
    assert (found["title"], found["links"]) == ("News", ["https://shop.example/1"])
    (entry,) = found["data"]["entries"]
    assert (entry["title"], entry["author"], entry["tags"]) == ("A & b", "Ann", ["x"])
    assert entry["published"] == "2025-06-10T09:41:01+00:00"
    assert found["markdown"].endswith("## [A & b](https://shop.example/1)\n\n2025-06-10T09:41:01+00:00\n\nHi you")
    (entry,) = read("feed", ATOM)["data"]["entries"]
    assert (entry["url"], entry["author"], entry["updated"]) == (
        "https://shop.example/1",
        "Ann",
        "2025-06-10T09:41:01+00:00",
    )


def test_json_csv_and_text() -> None:
    found = read("json", b'\xef\xbb\xbf{"a": [1, null]}')
    assert (found["data"], found["text"]) == ({"a": [1, None]}, '{"a": [1, null]}')
    assert found["markdown"].startswith('```json\n{\n  "a"')
    found = read("csv", b'name;price\r\n"a;b";1\r\n')
    assert (found["tables"][0]["header"], found["tables"][0]["rows"]) == (["name", "price"], [["a;b", "1"]])
    assert read("text", b"# hi\n")["markdown"] == "# hi\n"


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html; charset=utf-8", b"", kinds.HTML),
        ("application/pdf", b"", kinds.PDF),
        ("application/octet-stream", b"%PDF-1.4", kinds.PDF),
        ("", b"%PDF-1.4", kinds.PDF),
        ("application/octet-stream", xlsx({"a": [["b"]]}), kinds.XLSX),
        ("application/zip", docx(), kinds.DOCX),
        ("application/octet-stream", b' {"a": 1}', kinds.JSON),
        ("", b'{"a": 1}', ""),
        ("application/octet-stream", b"\x89PNG", ""),
        ("application/xml", RSS, kinds.FEED),
        ("text/xml", b"<?xml version='1.0'?><x/>", kinds.XML),
        ("application/ld+json", b"", kinds.JSON),
        ("text/markdown", b"", kinds.TEXT),
        ("image/svg+xml", b"<svg/>", kinds.XML),
        ("image/png", b"", ""),
        ("", b" <!DOCTYPE html>", kinds.HTML),
        ("", b"who knows", ""),
    ],
)
def test_kinds(content_type: str, body: bytes, kind: str) -> None:
    assert kind_of(content_type, body) == kind


def _bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("word/document.xml", b" " * (office.MAX_UNPACKED + 1))
    return file.getvalue()


def _with_entities() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("word/document.xml", b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>')
    return file.getvalue()


def _far_cells() -> bytes:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = 1, 2
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("docx", _bomb, "docx: it unpacks to 64 MB; at most 64 are read"),
        ("docx", _with_entities, "docx: its XML is not plain"),
        ("xlsx", _far_cells, "xlsx: a sheet of 16,384 columns and 1,048,576 rows is too large"),
        ("xlsx", b"PK\x03\x04", "xlsx: it is broken or encrypted"),
        ("pdf", b"%PDF-1.4 nothing", "pdf: it cannot be opened"),
        ("feed", b'<!DOCTYPE r [<!ENTITY a "a">]><rss>&a;</rss>', "feed: it declares entities"),
        ("feed", b"<rss><channel>", "feed: its XML is broken"),
        ("json", b"{", "json: it is not JSON"),
        ("json", b"[" * 100_000, "json: it is not JSON"),
        ("csv", b"a," * 300, "csv: a row has more than 200 cells"),
    ],
)
def test_what_is_refused_has_a_warning_and_no_value(kind: str, body: bytes | Callable[[], bytes], told: str) -> None:
    found = read(kind, body if isinstance(body, bytes) else body())
    assert set(found) == {"warnings"}
    assert found["warnings"][0].startswith(told)


def test_what_is_cut_is_told() -> None:
    found = read("text", b"x" * (MAX_TEXT + 1), ("text",))
    assert found["warnings"] == ["text has the first 1,000,000 characters of 1,000,001"]
    found = read("csv", b"a\n" * 6000)
    assert (len(found["tables"][0]["rows"]), found["warnings"]) == (4999, ["the table is cut after 5,000 rows"])
    found = read("json", b"[" + b"1," * 60_000 + b"1]")
    assert (found["data"], len(found["warnings"])) == (None, 1)


@pytest.mark.parametrize(("kind", "module"), [("pdf", "pypdfium2"), ("docx", "mammoth"), ("xlsx", "python_calamine")])
def test_a_library_that_is_not_installed(kind: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = builtins.__import__

    def no_such(name: str, *rest: Any) -> Any:
        if name == module:
            raise ImportError(name)
        return ours(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_such)
    found = read(kind, b"")
    assert "pip install 'scrapeyard[documents]'" in found["warnings"][0]


KINDS = st.sampled_from(["pdf", "docx", "xlsx", "feed", "xml", "json", "csv", "text"])
STARTS = st.sampled_from(
    [b"", b"%PDF-1.4\n", docx(), xlsx({"a": [["b", 1]]}), RSS, ATOM, b'{"a": [1, 2]}', b"a,b\n1,2"]
)


@settings(max_examples=150, deadline=None)
@given(kind=KINDS, start=STARTS, cut=st.integers(0, 4000), more=st.binary(max_size=200), at=st.integers(0, 4000))
def test_any_bytes_are_read_or_refused(kind: str, start: bytes, cut: int, more: bytes, at: int) -> None:
    body = start[:at] + more + start[at : at + cut]
    found = read(kind, body)
    assert isinstance(found["warnings"], list)
    assert len(str(found)) < 5 * MAX_TEXT
    assert kind_of("application/octet-stream", body) in ("", "html", "pdf", "docx", "xlsx", "feed", "xml", "json")
