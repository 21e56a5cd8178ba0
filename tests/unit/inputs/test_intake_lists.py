"""Lists of every format, cut into pieces anywhere: the same rows, with the lines on which an editor shows them."""

import codecs
import csv
import gzip
import io
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.inputs.formats.csv_rows import CsvParser
from scrapeyard.inputs.formats.json_rows import JsonArrayParser, JsonlParser, UrlParser
from scrapeyard.inputs.formats.rows import MAX_ROW, BadRow, ListUnreadable, Parser, Piece
from scrapeyard.inputs.lists import MAX_LIST, read_list
from scrapeyard.inputs.source import Format, Shape


async def chunks(data: bytes, size: int = 7) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def gathered(chunks: AsyncIterator[bytes], form: Format, limit: int = MAX_LIST) -> Piece:
    whole = Piece([], [])
    async for some in read_list(chunks, Shape(format=form), limit):
        whole.rows.extend(some.piece.rows)
        whole.bad.extend(some.piece.bad)
    return whole


def parsed(parser: Parser, text: str, sizes: list[int] | None = None) -> Piece:
    """All rows of a text that is fed in parts of these sizes, then whole."""
    pieces, at = [], 0
    for size in sizes or []:
        pieces.append(parser.feed(text[at : at + size]))
        at += size
    pieces += [parser.feed(text[at:]), parser.finish()]
    return Piece([row for piece in pieces for row in piece.rows], [bad for piece in pieces for bad in piece.bad])


def lines_of(piece: Piece) -> list[int]:
    return [bad.line for bad in piece.bad]


CELLS = st.text(st.characters(exclude_characters="\0\r", exclude_categories=("Cs",)), max_size=12)
SIZES = st.lists(st.integers(0, 9), max_size=30)


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3).filter(any), max_size=8), SIZES, st.sampled_from(",;\t|"))
def test_csv_is_read_as_it_was_written_wherever_it_is_cut(rows: list[list[str]], sizes: list[int], sign: str) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=sign).writerows([["a", "b", "c"], *rows])
    piece = parsed(CsvParser(delimiter=sign), out.getvalue(), sizes)
    assert [list(row.values()) for _, row in piece.rows] == rows
    assert not piece.bad


@given(st.text(alphabet='ab",;\n\r \t', max_size=80), SIZES)
def test_where_csv_is_cut_never_matters(text: str, sizes: list[int]) -> None:
    def told(sizes: list[int]) -> Any:
        try:
            return parsed(CsvParser(names=("x", "y"), delimiter=","), text, sizes)
        except ListUnreadable as error:
            return error.message

    assert told(sizes) == told([])


@given(st.text(alphabet='ab",;\n\r \t', max_size=60))
def test_every_line_of_csv_is_a_row_or_a_bad_row_or_blank(text: str) -> None:
    piece = parsed(CsvParser(names=("x",), delimiter="|"), text)
    for line, row in piece.rows:
        assert 1 <= line <= 1 + text.count("\n") + text.count("\r")
        assert row["x"]
    assert len(piece.rows) + len(piece.bad) <= len(io.StringIO(text, newline="").readlines())


@given(st.lists(st.dictionaries(CELLS, st.none() | st.integers(-5, 5) | CELLS | st.lists(CELLS, max_size=2))), SIZES)
def test_json_of_both_kinds_is_read_wherever_it_is_cut(values: list[Any], sizes: list[int]) -> None:
    array = parsed(JsonArrayParser(), json.dumps(values, indent=1), sizes)
    assert [value for _, value in array.rows] == values
    lines = parsed(JsonlParser(), "\n".join(json.dumps(value) for value in values), sizes)
    assert [value for _, value in lines.rows] == values
    assert [line for line, _ in lines.rows] == list(range(1, len(values) + 1))


@given(st.text(alphabet='[]{},:"a1 \n\\', max_size=40), SIZES)
def test_an_array_is_read_as_the_library_reads_it_or_refused(text: str, sizes: list[int]) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
    try:
        found = [value for _, value in parsed(JsonArrayParser(), text, sizes).rows]
    except ListUnreadable:
        assert not isinstance(expected, list)
    else:
        assert found == expected


def test_csv_has_the_lines_that_an_editor_shows() -> None:
    text = 'url,note\nhttps://a/,"two\nlines"\n\nhttps://b/,x\r\nhttps://c/,"open\nhttps://d/,y\nhttps://e/,a,b\n'
    piece = parsed(CsvParser(), text)
    assert [(line, row["url"]) for line, row in piece.rows] == [(2, "https://a/"), (5, "https://b/"), (7, "https://d/")]
    assert piece.bad == [
        BadRow(line=6, reason="a quote is opened and not closed"),
        BadRow(line=8, reason="has 3 cells where the header has 2 names"),
    ]


def test_old_line_ends_and_a_line_that_names_the_delimiter() -> None:
    assert parsed(CsvParser(), "a,b\r1,2\r3,4", [4, 1, 1]).rows == [
        (2, {"a": "1", "b": "2"}),
        (3, {"a": "3", "b": "4"}),
    ]
    assert parsed(CsvParser(), "sep=;\r\na;b\r\n1,5;2\r\n").rows == [(3, {"a": "1,5", "b": "2"})]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("a,b;c", ["a", "b;c"]),
        ("a;b", ["a", "b"]),
        ("a\tb,c\td", ["a", "b,c", "d"]),
        ('"x,y";b', ["x,y", "b"]),
        ("a", ["a"]),
    ],
)
def test_the_delimiter_is_told_from_the_header(header: str, names: list[str]) -> None:
    parser = CsvParser()
    parsed(parser, header + "\n")
    assert list(parser.names) == names


def test_missing_cells_are_empty_and_empty_ones_at_the_end_do_not_matter() -> None:
    piece = parsed(CsvParser(), "a,b,\n1\n2,3,,\n,,\n")
    assert piece.rows == [(2, {"a": "1", "b": ""}), (3, {"a": "2", "b": "3"})]
    assert not piece.bad


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("a,a\n1,2\n", "twice"),
        ("a,,b\n1,2,3\n", "column 2"),
        ("https://shop.example/1,2\n", "looks like data"),
        ('"a\n', "header cannot be read"),
    ],
)
def test_a_header_that_cannot_be_used_says_why(text: str, words: str) -> None:
    with pytest.raises(ListUnreadable, match=words):
        parsed(CsvParser(), text)


@pytest.mark.parametrize("make", [lambda: CsvParser(names=("x",)), JsonlParser, UrlParser])
def test_a_line_without_end_is_one_bad_row_and_is_not_held(make: Callable[[], Any]) -> None:
    parser = make()
    bad = []
    for _ in range(3 * MAX_ROW // 1000):
        bad += parser.feed("x" * 1000).bad
        assert len(parser._tail) <= MAX_ROW + 1000
    last = parser.feed('\n"https://shop.example/"\n'), parser.finish()
    assert [row.line for row in bad] == [1]
    rows = [row for piece in last for row in piece.rows]
    assert [line for line, _ in rows] == ([] if isinstance(parser, UrlParser) else [2])


def test_a_quote_that_is_never_closed_costs_one_row() -> None:
    rows = "".join(f"https://shop.example/{number},x\n" for number in range(20_000))
    piece = parsed(CsvParser(), 'url,note\nhttps://a/,"open\n' + rows, [1000] * 900)
    assert lines_of(piece) == [2]
    assert len(piece.rows) == 20_000
    assert piece.rows[0][0] == 3


def test_what_is_not_json_is_a_bad_line_or_ends_an_array() -> None:
    piece = parsed(JsonlParser(), '{"a":1}\n{"a":\n\n  \nNaN\n[1]\n' + "[" * 100_000 + "\n7")
    assert piece.rows == [(1, {"a": 1}), (6, [1]), (8, 7)]
    assert lines_of(piece) == [2, 5, 7]
    for text, line in (
        ('[{"a":1},\n{"a" 2}]', 2),
        ("[1,\n2", 2),
        ("[1]\n2", 2),
        ("[" * 100_000, 1),
        ("[1,\nNaN]", 2),
        ("{}", 1),
    ):
        with pytest.raises(ListUnreadable, match=f"line {line}:"):
            parsed(JsonArrayParser(), text)


def test_an_element_without_end_is_not_held() -> None:
    parser = JsonArrayParser()
    parser.feed('["')
    for _ in range(MAX_ROW // 1024 - 1):
        assert parser.feed("x" * 1024) == Piece([], [])
    with pytest.raises(ListUnreadable, match="too long"):
        parser.feed("x" * 2048)


def test_addresses_stand_one_on_a_line() -> None:
    piece = parsed(
        UrlParser(), "# mine\r\nhttps://shop.example/a b\r\n\r\nshop.example/2\nftp://shop.example/\nhttp://x/"
    )
    assert piece.rows == [(2, "https://shop.example/a b"), (6, "http://x/")]
    assert lines_of(piece) == [4, 5]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
async def test_marks_at_the_start_and_gzip_are_seen(encoding: str, packed: bool) -> None:
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, b"")
    data = mark + "name,größe\n차,1\n".encode(encoding)
    piece = await gathered(chunks(gzip.compress(data) if packed else data, 1), "csv")
    assert piece.rows == [(2, {"name": "차", "größe": "1"})]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("a,b\nä,1\n".encode("latin-1"), "line 2 is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16-le"), "UTF-16 without a mark"),
        ("a\n1\n".encode("utf-32"), "UTF-32"),
        (b"PK\x03\x04" + b"x" * 30, "Excel"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 30, "zstd"),
        (gzip.compress(b"a\n1\n", mtime=0)[:-5], "gzip"),
        ("a\nä".encode()[:-1], "line 2 is not UTF-8"),
    ],
)
async def test_what_is_no_text_says_what_to_do(data: bytes, words: str) -> None:
    with pytest.raises(ListUnreadable, match=words):
        await gathered(chunks(data, 3), "csv")


async def test_a_list_that_grows_beyond_its_limit_ends_there() -> None:
    with pytest.raises(ListUnreadable, match="larger than 100000 bytes"):
        await gathered(chunks(gzip.compress(b"1\n" * 1_000_000), 100), "jsonl", limit=100_000)


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b'\n [{"a": 1}]', [(2, {"a": 1})]),
        (b'{"a": 1}\n{"a": 2}', [(1, {"a": 1}), (2, {"a": 2})]),
        (b"https://a/\nhttps://b/", [(1, "https://a/"), (2, "https://b/")]),
        (b"# my list\nhttps://a/", [(2, "https://a/")]),
        (b"url\nhttps://a/", [(2, {"url": "https://a/"})]),
    ],
)
async def test_the_format_is_told_from_the_first_line(data: bytes, rows: list[Any]) -> None:
    found = [piece.piece async for piece in read_list(chunks(data, 2), Shape())]
    assert [row for piece in found for row in piece.rows] == rows


async def test_what_is_no_list_is_said_so() -> None:
    for data, words in ((b"", "empty"), (b" \n", "empty"), (b"<html>\n", "sitemap")):
        with pytest.raises(ListUnreadable, match=words):
            _ = [piece async for piece in read_list(chunks(data), Shape())]


async def test_every_reader_takes_bytes() -> None:
    assert (await gathered(chunks(b'"x"\n'), "jsonl")).rows == [(1, "x")]
    assert (await gathered(chunks(b'["x"]\n'), "json")).rows == [(1, "x")]
    assert (await gathered(chunks(b"http://x/"), "urls")).rows == [(1, "http://x/")]
