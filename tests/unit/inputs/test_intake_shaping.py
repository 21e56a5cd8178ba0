"""Rows as inputs: the places and types that the scraper wants, keys, and what is said of rows that do not fit."""

import re
import time
from contextlib import closing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.builtin import PAGE
from scrapeyard.errors import BadRequest
from scrapeyard.inputs.formats.rows import BadRow, ListRefused, ListUnreadable, Piece
from scrapeyard.inputs.mapper import Shaped, Shaper, check_source
from scrapeyard.inputs.patterns import Chooser
from scrapeyard.inputs.source import (
    FollowSource,
    ListSource,
    Shape,
    SitemapSource,
    Source,
    UrlChoice,
    UrlSource,
    as_table,
    source_of,
)
from scrapeyard.inputs.spool import KEPT, ListSummary, RowCount, read_spool, write_spool
from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.model.job import MAX_ITEM_INPUT, Job, JobStatus, NewItem
from scrapeyard.repository.manifest.items import canonical, is_key, is_same, key_of
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.store.ports.jobs import ITEM_BLOCK
from tests.page_builtins import BUILTINS

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string"},
        "count": {"type": "integer"},
        "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "fresh": {"type": ["boolean", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "any": {},
    },
    "required": ["url"],
    "additionalProperties": False,
}


def scraper(schema: dict[str, Any] = SCHEMA) -> Scraper:
    return Scraper(ref=ScraperRef(id="shop/product", version="1.0.0"), folder=None, input_schema=schema)


WRITTEN = ["http://a.test/stra\u00dfe/1", " http://a.test/2 ", "HTTP://a.test/3", "http://b\u00fccher.test/4"]
SPELLED = ["http://a.test/stra%C3%9Fe/1", "http://a.test/2", "http://a.test/3", "http://xn--bcher-kva.test/4"]


@pytest.mark.parametrize("field", ["url", "link"])
def test_urls_are_taken_as_a_browser_takes_them(field: str) -> None:
    schema = {"type": "object", "properties": {field: {"type": "string", "format": "uri"}}}
    objects = shaped([{field: url} for url in WRITTEN], schema=schema)
    cells = shaped([{field: url} for url in WRITTEN], schema=schema, text=True)
    assert [msgspec.json.decode(item.input)[field] for item in (*objects.items, *cells.items)] == SPELLED * 2


def test_urls_by_themselves_fit_the_built_in_scrapers() -> None:
    found = Shaper(BUILTINS[PAGE].scraper, InputChecker(), Shape()).shape(Piece(list(enumerate(WRITTEN)), []))
    assert [msgspec.json.decode(item.input)["url"] for item in found.items] == SPELLED
    assert found.bad == []


def shaped(
    rows: list[Any], shape: Shape | None = None, *, text: bool = False, schema: dict[str, Any] = SCHEMA
) -> Shaped:
    with closing(Shaper(scraper(schema), InputChecker(), shape or Shape())) as shaper:
        return shaper.shape(Piece(list(enumerate(rows, 2)), []), text=text)


def inputs(found: Shaped) -> list[Any]:
    assert not found.bad, found.bad
    return [msgspec.json.decode(item.input) for item in found.items]


def only_reason(found: Shaped) -> str:
    assert not found.items
    (bad,) = found.bad
    assert bad.line == 2
    return bad.reason


def test_cells_become_what_the_schema_wants() -> None:
    row = {"url": "u", "count": " 12", "price": "1.5", "fresh": "Yes", "tags": '["a"]', "any": "007"}
    expected = {"url": "u", "count": 12, "price": 1.5, "fresh": True, "tags": ["a"], "any": "007"}
    assert inputs(shaped([row], text=True)) == [expected]


def test_empty_cells_are_left_out() -> None:
    assert inputs(shaped([{"url": "u", "count": "", "price": ""}], text=True)) == [{"url": "u"}]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"count": "1.5"}, "count: '1.5' is not a whole number"),
        ({"count": "9" * 30}, "whole number"),
        ({"price": "1,50"}, "price: '1,50' is not a number such as 12.5"),
        ({"price": "NaN"}, "is not a number"),
        ({"fresh": "maybe"}, "true or false"),
        ({"tags": "a, b"}, "JSON"),
        ({"tags": "[NaN]"}, "JSON"),
        ({"tags": "[1]"}, "tags/0"),
        ({"item_id": "a/b"}, "cannot be an item_id"),
    ],
)
def test_a_cell_that_does_not_fit_says_which_and_why(cells: dict[str, str], words: str) -> None:
    assert words in only_reason(shaped([{"url": "u", **cells}], text=True))


def test_columns_are_mapped_and_others_left_out() -> None:
    shape = Shape(columns={"Link": "url", "Menge": "count"}, input={"fresh": True, "count": 1})
    rows = [{"Link": "a", "Menge": "", "x": "1"}, {"Link": "b", "Menge": "2", "x": "1"}]
    expected = [{"url": "a", "fresh": True, "count": 1}, {"url": "b", "fresh": True, "count": 2}]
    assert inputs(shaped(rows, shape, text=True)) == expected


def test_columns_that_do_not_fit_refuse_the_list_at_once() -> None:
    with pytest.raises(ListUnreadable, match=r"colour is no input of shop/product@1.0.0, which takes url, count"):
        shaped([{"url": "u", "colour": "red"}], text=True)
    with pytest.raises(ListUnreadable, match="which the list has not; it has url"):
        shaped([{"url": "u"}], Shape(columns={"Link": "url"}), text=True)


def test_values_of_json_come_in_three_spellings() -> None:
    rows = [
        "u",
        {"url": "u"},
        {"input": {"url": "u"}},
        {"item_id": "k", "input": {"url": "u"}},
        {"item_id": 7, "url": "u"},
    ]
    found = shaped(rows)
    assert inputs(found) == [{"url": "u"}] * 5
    same = key_of(canonical({"url": "u"}))
    assert [item.key for item in found.items] == [same, same, same, "k", "7"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (7, "neither an object nor an address"),
        (None, "neither"),
        ({}, "required"),
        ({"item_id": True, "url": "u"}, "item_id"),
        ({"item_id": "", "url": "u"}, "empty"),
        ({"item_id": "k", "input": 1}, "not an object"),
        ({"url": "u", "count": "1"}, "count"),
        ({"url": "x" * MAX_ITEM_INPUT}, "bytes of input"),
        ({"url": "\ud800"}, "cannot be"),
    ],
)
def test_a_value_that_does_not_fit_says_why(row: Any, words: str) -> None:
    assert words in only_reason(shaped([row]))


def test_a_column_may_be_spelled_in_another_case() -> None:
    assert inputs(shaped([{" URL": "u", "Count": "3"}], text=True)) == [{"url": "u", "count": 3}]
    with pytest.raises(ListUnreadable, match="Url"):
        shaped([{"URL": "u", "Url": "v"}], text=True)
    with pytest.raises(ListUnreadable, match="URL is no input"):
        shaped([{"url": "u", "URL": "v"}], text=True)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("http://shop.example/straße/1", "http://shop.example/stra%C3%9Fe/1"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("  http://shop.example/a \t", "http://shop.example/a"),
        ("HTTP://Shop.example/A", "http://shop.example/A"),
        ("http://shop.example/a b?q=ü|[x]", "http://shop.example/a%20b?q=%C3%BC%7C%5Bx%5D"),
        ("http://shop.example/100%", "http://shop.example/100%25"),
        ("http://shop.example/a#top", "http://shop.example/a#top"),
        ("http://shop.example/%C3%9F", "http://shop.example/%C3%9F"),
    ],
)
@pytest.mark.parametrize("kind", ["value", "object", "cell"])
def test_addresses_are_taken_as_browsers_take_them(given: str, taken: str, kind: str) -> None:
    rows: list[Any] = [given] if kind == "value" else [{"url": given}]
    found = shaped(rows, text=kind == "cell", schema=BUILTINS[PAGE].scraper.input_schema)
    assert not found.bad
    assert inputs(found) == [{"url": taken}]


@pytest.mark.parametrize("given", ["", " ", "straße", "ftp://ü.example/", "mailto:ü@x", "http://exa mple/"])
def test_what_is_no_address_stays_refused(given: str) -> None:
    assert shaped([given], schema=BUILTINS[PAGE].scraper.input_schema).bad


@pytest.mark.parametrize("text", [False, True])
def test_one_id_with_two_inputs_is_a_bad_row(text: bool) -> None:
    rows = [{"item_id": "a", "url": "u"}, {"item_id": "a", "url": "u"}, {"item_id": "a", "url": "v"}]
    found = shaped(rows, text=text)
    assert [item.key for item in found.items] == ["a", "a"]
    (bad,) = found.bad
    assert (bad.line, bad.reason) == (4, "same item_id as line 2 with another input: a")


def test_fields_keep_their_order_which_makes_no_other_input() -> None:
    one: dict[str, Any] = {"url": "u", "options": {"z": 1, "a": {"y": 2, "b": 3}}}
    other = {"options": {"a": {"b": 3, "y": 2}, "z": 1}, "url": "u"}
    found = shaped([one, other], schema={"type": "object"})
    assert [bytes(item.input) for item in found.items] == [msgspec.json.encode(each) for each in (one, other)]
    assert found.items[0].key == found.items[1].key
    named = shaped([{"item_id": "a", **each} for each in (one, other)], schema={"type": "object"})
    assert [item.key for item in named.items] == ["a", "a"]
    assert is_same(named.items[0].input, named.items[1].input)


def test_a_field_that_the_scraper_calls_item_id_stays_a_field() -> None:
    schema = {"type": "object", "properties": {"item_id": {"type": "string"}}, "required": ["item_id"]}
    found = shaped([{"item_id": "a/b"}], schema=schema)
    assert inputs(found) == [{"item_id": "a/b"}]
    assert inputs(shaped([{"item_id": "a/b"}], text=True, schema=schema)) == [{"item_id": "a/b"}]


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 9) | st.text(max_size=5), max_size=5))
def test_the_same_input_has_the_same_key(value: dict[str, Any]) -> None:
    key = key_of(canonical(value))
    assert key == key_of(canonical(dict(reversed(value.items()))))
    assert is_key(key)


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("https://shop.example/p/*", "https://shop.example/p/1", True),
        ("https://shop.example/p/*", "https://shop.example/p/1/2", False),
        ("https://shop.example/p/**", "https://shop.example/p/1/2?x=1", True),
        ("/p/*", "https://shop.example/p/1", True),
        ("/p/*", "https://shop.example/x/p/1", False),
        ("/p?id=*", "https://shop.example/p?id=7", True),
        ("**.pdf", "https://shop.example/a/b.pdf", True),
        ("**.pdf", "https://shop.example/a/bxpdf", False),
        (r"re:/p/\d+$", "https://shop.example/p/77", True),
        (r"re:/p/\d+$", "https://shop.example/p/7a", False),
        (r"path:^/p/\d+$", "https://shop.example/p/77?x=1", True),
        ("path:^/p/", "https://shop.example/x/p/77", False),
        ("path:^/a/|^/b/", "https://shop.example/b/1", True),
        ("path:shop", "https://shop.example/p/77", False),
        ("path:^/p/", "https://[shop/p/77", True),
    ],
)
def test_globs_and_expressions(pattern: str, url: str, fits: bool) -> None:
    assert Chooser(UrlChoice(include=(pattern,))).takes(url) is fits
    assert Chooser(UrlChoice(exclude=(pattern,))).takes(url) is not fits


def test_one_pattern_of_several_is_enough_and_exclusion_wins() -> None:
    chooser = Chooser(UrlChoice(include=("/a/**", "/b/**"), exclude=("**.pdf",)))
    wanted = [chooser.takes(f"http://x{path}") for path in ("/a/1", "/b/1", "/c/1", "/b/1.pdf")]
    assert wanted == [True, True, False, False]
    mixed = Chooser(UrlChoice(include=("/a/*", "path:^/b"), exclude=("path:[.]pdf$",)))
    wanted = [mixed.takes(f"http://x{path}") for path in ("/a/1", "/b/1", "/c/1", "/b/1.pdf")]
    assert wanted == [True, True, False, False]


@pytest.mark.parametrize("url", ["//[", "", "http://x?/a", "mailto:a@x"])
def test_an_address_that_is_none_has_no_path(url: str) -> None:
    assert not Chooser(UrlChoice(include=("path:a",))).takes(url)
    assert Chooser(UrlChoice(exclude=("path:a",))).takes(url)


@pytest.mark.parametrize(
    "patterns",
    [("",), ("x" * 501,), ("re:(",), ("path:(",), (r"re:(a)\1",), ("re:(?=a)",), ("x",) * 51, ("re:(a{999}){999}",)],
)
def test_a_pattern_that_cannot_be_used_is_refused(patterns: tuple[str, ...]) -> None:
    with pytest.raises(BadRequest, match="exclude"):
        Chooser(UrlChoice(exclude=patterns))


@pytest.mark.security
@pytest.mark.parametrize(
    "pattern", ["re:(a+)+$", "re:^https://shop.example/(a|aa)*$", "re:(.*)(.*)(.*)(.*)x$", "**" * 100 + "x"]
)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    chooser, began = Chooser(UrlChoice(include=(pattern,))), time.process_time()
    assert not chooser.takes("https://shop.example/" + "a" * 8000 + "!")
    assert time.process_time() - began < 5


SOURCES: list[Source] = [
    SitemapSource(
        url="https://x/", choice=UrlChoice(include=("/a",)), modified_since=5.0, shape=Shape(bad_rows="skip")
    ),
    FollowSource(start=("https://x/",), depth=3),
]


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_survives_the_jobs_row(source: Source) -> None:
    job = Job(id="job_1", status=JobStatus.CREATING, scraper="a/b", pinned="a/b@1.0.0", created_at=0.0)
    table = msgspec.json.decode(msgspec.json.encode(as_table(source)))
    assert source_of(msgspec.structs.replace(job, source=table)) == source
    with pytest.raises(BadRequest, match="source"):
        source_of(msgspec.structs.replace(job, source={"kind": "x"}))


ITEMS = st.builds(
    NewItem,
    key=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,20}", fullmatch=True),
    input=st.dictionaries(st.text(max_size=3), st.text(max_size=9), max_size=2).map(
        lambda v: msgspec.Raw(canonical(v))
    ),
)


@given(st.lists(st.lists(ITEMS, max_size=4), max_size=4), st.integers(1, 60))
async def test_a_spooled_list_is_read_as_it_was_written(pieces: list[list[NewItem]], size: int) -> None:
    async def some() -> Any:
        for items in pieces:
            yield Shaped(items, [BadRow(line=1, reason="x\ny")])

    async def cut(data: bytes) -> Any:
        for at in range(0, len(data), size):
            yield data[at : at + size]

    flat = [item for items in pieces for item in items]
    tally = RowCount(reject=False, may_be_empty=True)
    if not flat and pieces:
        with pytest.raises(ListUnreadable, match="none of its"):
            _ = [piece async for piece in write_spool(some(), tally)]
        return
    data = b"".join([piece async for piece in write_spool(some(), tally)])
    *blocks, summary = [found async for found in read_spool(cut(data))]
    assert [(item.key, bytes(item.input)) for block in blocks for item in block] == [
        (item.key, bytes(item.input)) for item in flat
    ]
    assert summary == ListSummary(rows=len(flat), bad=len(pieces), first=(BadRow(line=1, reason="x\ny"),) * len(pieces))


async def test_blocks_are_full_but_for_the_last() -> None:
    items = [NewItem(key=f"k{number}", input=msgspec.Raw(b"{}")) for number in range(2 * ITEM_BLOCK + 1)]

    async def once() -> Any:
        yield Shaped(items, [])

    found = [found async for found in read_spool(write_spool(once(), RowCount(reject=True)))]
    assert [len(block) for block in found[:-1] if isinstance(block, list)] == [ITEM_BLOCK, ITEM_BLOCK, 1]


def test_a_list_that_is_wanted_whole_is_refused_with_its_first_bad_rows() -> None:
    tally = RowCount(reject=True)
    item = NewItem(key="k", input=msgspec.Raw(b"{}"))
    tally.take(Shaped([item], [BadRow(line=number, reason="bad") for number in range(5)]))
    assert tally.refused
    with pytest.raises(ListRefused, match=r"5 rows cannot be used: line 0: bad; .* and 2 more; .*skip") as refused:
        tally.end()
    assert len(refused.value.details["rows"]) == 5
    with pytest.raises(ListRefused):
        tally.take(Shaped([], [BadRow(line=9, reason="bad")] * KEPT))


CHECKED: list[tuple[Source, str]] = [
    (UrlSource(url="shop.example/list"), "items_url: the URL"),
    (SitemapSource(url="ftp://x/"), "sitemap_url: the URL"),
    (SitemapSource(url="https://x/", choice=UrlChoice(include=("re:(",))), "include"),
    (SitemapSource(url="https://x/", limit=-1), "limit: -1"),
    (SitemapSource(url="https://x/", shape=Shape(input={"colour": "red"})), "does not take such inputs"),
    (FollowSource(start=()), "start: 0"),
    (FollowSource(start=("https://x/", "x")), "start: the URL 'x'"),
    (FollowSource(start=("https://x/",), depth=101), "depth: 101"),
    (FollowSource(start=("https://x/", "https://y/"), limit=1), "limit: 1"),
]


@pytest.mark.parametrize(("source", "words"), CHECKED)
def test_a_source_that_cannot_be_read_is_refused_at_the_door(source: Source, words: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(words)):
        check_source(source, BUILTINS[PAGE].scraper, InputChecker())


@pytest.mark.parametrize("source", [*SOURCES[1:], UrlSource(url="https://x/list"), ListSource()])
def test_a_good_source_passes_the_door(source: Source) -> None:
    check_source(source, BUILTINS[PAGE].scraper, InputChecker())
