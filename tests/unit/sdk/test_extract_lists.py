"""Records of listing pages and the link to the next page, found without selectors."""

from typing import Any

import pytest
from benchmarks.list_pages import LAYOUTS, ListPage, list_pages
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from scrapeyard_sdk.extract.lists import read_next_page, read_records
from scrapeyard_sdk.extract.lists.groups import MAX_NODES, MAX_RECORDS
from scrapeyard_sdk.extract.lists.records import MAX_COLUMNS, MAX_VALUE
from scrapeyard_sdk.page import Page

URL = "https://shop.example/list"
ALL = list(list_pages())
MADE = {page.layout: page for page in reversed(ALL)}


def records(html: str, url: str = URL) -> list[dict[str, Any]]:
    found = read_records(LexborHTMLParser(html), url)
    return [] if found is None else found.records


def following(html: str, url: str = URL) -> str | None:
    return read_next_page(LexborHTMLParser(html), url)


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_records_of_every_layout(layout: str) -> None:
    page = MADE[layout]
    found = records(page.html, page.url)
    assert len(found) == len(page.records)
    for record, listed in zip(found, page.records, strict=True):
        assert any(str(value).startswith(listed.title) for value in record.values()), record
    if layout in ("cards", "with ads", "rows of cells", "definitions", "two rows each"):
        assert [(each["url"], each["price"]) for each in found] == [
            (each.url, float(each.price)) for each in page.records
        ]


@pytest.mark.parametrize("page", [page for page in ALL if page.layout in ("cards", "table")], ids=str)
def test_the_next_page_of_every_pager(page: ListPage) -> None:
    assert following(page.html, page.url) == page.next_page


def test_fields_are_named_by_what_they_are() -> None:
    rows = "".join(
        f"""<li class=book><a href=/b/{n}><img data-src=/i/{n}.png src=data:x></a><h3><a href=/b/{n}>Book {n}</a></h3>
        <p class=writer>Writer {n}</p><p>Pages: {300 + n}</p><time datetime=2024-05-0{n}>May</time>
        <del>$ {n + 5}.00</del> <ins>$ {n}.50</ins><span aria-label="Rated 4.{n} of 5"></span>
        <button>Buy</button></li>"""
        for n in range(1, 6)
    )
    assert records(f"<main><ul>{rows}</ul></main>")[0] == {
        "title": "Book 1",
        "url": "https://shop.example/b/1",
        "image": "https://shop.example/i/1.png",
        "price": 1.5,
        "currency": "USD",
        "old_price": 6.0,
        "date": "2024-05-01",
        "rating": 4.1,
        "writer": "Writer 1",
        "pages": "301",
    }


def test_the_words_above_a_table_name_its_columns() -> None:
    rows = "".join(f"<tr><td>{name}</td><td>{n}</td></tr>" for n, name in enumerate(("Kiln", "Wheel", "Oven")))
    page = f"<table><tr><th>Tool used</th><th>2024</th></tr>{rows}</table>"
    assert records(page) == [
        {"tool_used": "Kiln", "field_2024": "0"},
        {"tool_used": "Wheel", "field_2024": "1"},
        {"tool_used": "Oven", "field_2024": "2"},
    ]


def test_a_field_that_comes_a_varying_number_of_times_is_a_list() -> None:
    tags = ["".join(f"<a class=tag href=/t{t}>t{t}</a>" for t in range(n)) for n in range(5)]
    posts = "".join(f"<article><h2><a href=/{n}>Post number {n}</a></h2>{tags[n]}</article>" for n in range(1, 5))
    assert [record["tag"] for record in records(posts)] == [
        ["t0"],
        ["t0", "t1"],
        ["t0", "t1", "t2"],
        ["t0", "t1", "t2", "t3"],
    ]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<link rel=next href='?page=2'>", "https://shop.example/list?page=2"),
        ("<a rel=next href='https://other.example/?page=2'>Next</a>", None),
        ("<a href='#'>Next</a><a href='javascript:go()'>Next</a>", None),
        ("<a href='/list'>Next</a>", None),
        ("<a href='/list?p=2' aria-disabled=true>Next</a>", None),
        ("<a href='/about'>2</a><a href='/jobs'>3</a>", None),
        ("<a href='/list?p=2'><img alt='Next page'></a>", "https://shop.example/list?p=2"),
    ],
)
def test_what_is_and_is_no_next_page(html: str, expected: str | None) -> None:
    assert following(html) == expected


def test_a_script_has_both() -> None:
    page = MADE["cards"]
    script_page = Page(url=page.url, status=200, body=page.html.encode())
    assert len(script_page.records()) == len(page.records)
    assert script_page.next_page() == page.next_page
    assert (Page(url=URL, status=200).records(), Page(url=URL, status=200).next_page()) == ([], None)


def test_a_huge_page_is_read_within_bounds() -> None:
    cells = "".join(f"<td>{'x' * 3000}{n}</td>" for n in range(MAX_COLUMNS + 20))
    other = cells.replace("x", "y")
    wide = "<table>" + f"<tr>{cells}</tr>" * 3 + f"<tr>{other}</tr></table>"
    assert all(len(record) <= MAX_COLUMNS + 1 for record in records(wide))
    assert all(len(str(value)) <= MAX_VALUE for record in records(wide) for value in record.values())
    long = "<ul>" + "".join(f"<li><a href=/{n}>Thing {n}</a><b>{n}</b></li>" for n in range(MAX_NODES // 3)) + "</ul>"
    assert len(records(long)) <= MAX_RECORDS
    deep = "<div>" * 5000 + "<p><a href=/x>x</a></p>" * 10
    assert len(records(deep)) <= 10


@settings(max_examples=30)
@given(
    st.lists(
        st.sampled_from(
            ["<ul>", "<li>", "<a href=/x>", "</a>", "</li>", "text 5 €", "<tr>", "<td>", "<img src=x>", "<h3>"]
        )
    )
)
def test_no_page_makes_it_fail(pieces: list[str]) -> None:
    html = "".join(pieces) * 3
    records(html)
    following(html)
