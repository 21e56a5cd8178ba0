"""Structured data: held against a library that reads it another way, and against what pages do wrong."""

import json
import time
from typing import Any

import extruct
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from scrapeyard_sdk.extract.lenient_json import MAX_DEPTH, MAX_SOURCE, read_json
from scrapeyard_sdk.extract.structured import read_microdata, read_rdfa, read_structured

URL = "https://shop.example/p/1"
MICRODATA = """
<div itemscope itemtype="https://schema.org/Product" itemref="more"><h1 itemprop="name">Blue <b>tea</b> pot</h1>
<img itemprop="image" src="/a.jpg"><img itemprop="image" src="b.jpg">
<time itemprop="releaseDate" datetime="2026-01-02">x</time>
<div itemprop="offers" itemscope itemtype="https://schema.org/Offer"><meta itemprop="price" content="12.5">
<link itemprop="availability" href="https://schema.org/InStock"></div>
<a itemprop="url" href="?x=1">here</a></div>
<p id="more"><span itemprop="sku">T-1</span></p>
<div itemscope itemtype="https://schema.org/Organization"><span itemprop="name">Shop</span></div>
"""
RDFA = """
<div vocab="https://schema.org/" typeof="Product"><h1 property="name">Blue teapot</h1>
<div property="offers" typeof="Offer"><span property="price" content="12.5">12,50</span></div>
<a property="url" href="/p/1">here</a></div>
"""


def tree(html: str) -> LexborHTMLParser:
    return LexborHTMLParser(html)


def plain(value: Any) -> Any:
    """Without contexts, and with schema.org's addresses cut short, as we give them."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key != "@context"}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


def test_microdata_is_read_as_the_library_reads_it() -> None:
    other = extruct.extract(f"<body>{MICRODATA}</body>", URL, syntaxes=["microdata"], uniform=True)["microdata"]
    ours = read_microdata(tree(MICRODATA), URL)
    for item in ours:
        item.pop("url", None)  # the library leaves it as it is written; we make it absolute
    theirs = plain(other)
    for item in theirs:
        item.pop("url", None)
    assert ours == theirs


def test_microdata_links_are_absolute() -> None:
    assert read_microdata(tree(MICRODATA), URL)[0]["url"] == "https://shop.example/p/1?x=1"


def test_rdfa_lite_is_read_as_the_library_reads_it() -> None:
    other = extruct.extract(f"<body>{RDFA}</body>", URL, syntaxes=["rdfa"])["rdfa"]
    values = json.dumps(other)
    (item,) = read_rdfa(tree(RDFA), URL)
    assert item == {
        "@type": "Product",
        "name": "Blue teapot",
        "offers": {"@type": "Offer", "price": "12.5"},
        "url": "https://shop.example/p/1",
    }
    assert all(said in values for said in ("Blue teapot", "12.5", "https://shop.example/p/1", "schema.org/Offer"))


def test_items_that_contain_one_another_by_reference_end() -> None:
    html = (
        '<div id="a" itemscope itemref="b"><p itemprop="x" itemscope id="b" itemref="a"><i itemprop="n">1</i></p></div>'
    )
    json.dumps(read_microdata(tree(html), URL))


def test_open_graph_and_all_lists_are_there_when_empty() -> None:
    assert read_structured(tree("<p>x"), URL) == {"json_ld": [], "microdata": [], "rdfa": [], "opengraph": {}}
    image = '<meta property="og:image" content="{}">'
    html = '<meta property="og:title" content="T">' + image.format("/a") + image.format("/b")
    assert read_structured(tree(html), URL)["opengraph"] == {"og:title": "T", "og:image": ["/a", "/b"]}


def test_open_graph_has_its_other_vocabularies() -> None:
    names = ("book:author", "profile:username", "music:duration", "video:actor", "fb:app_id", "al:ios:url")
    html = "".join(f'<meta property="{name}" content="x">' for name in names) + '<meta name="viewport" content="y">'
    assert read_structured(tree(html), URL)["opengraph"] == dict.fromkeys(names, "x")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}{"b": 2}', [{"a": 1}, {"b": 2}]),
        ('{"a": 1};\n{"b": 2},', [{"a": 1}, {"b": 2}]),
        ('<!-- {"a": 1} -->', [{"a": 1}]),
        ('//<![CDATA[\n{"a": 1}\n//]]>', [{"a": 1}]),
        ('\ufeff{"a": [1, 2,],}', [{"a": [1, 2]}]),
        ('{"a": "x", /* y, */ "b": "//c"} // d', [{"a": "x", "b": "//c"}]),
        ('{"a": 1, // x\n}', [{"a": 1}]),
        ('{"a": [1, /* y */ ], // z\n "b": "<!--",}', [{"a": [1], "b": "<!--"}]),
        ('<!-- by a plugin -->\n{"a": 1}', [{"a": 1}]),
        ("{&quot;a&quot;: &quot;b&quot;}", [{"a": "b"}]),
        ('{"a": "tab\there\nline"}', [{"a": "tab\there\nline"}]),
        (r'{"a": "it\'s \x", "b": 1,}', [{"a": r"it\'s \x", "b": 1}]),
        ('{"a": NaN, "b": Infinity}', [{"a": None, "b": None}]),
        ('{"a": 123456789012345678901234567890}', [{"a": "123456789012345678901234567890"}]),
        (r'{"a": "\ud800\u0000"}', [{"a": "?"}]),
        ("", []),
        ("{", []),
        ("not json", []),
        ('{"a": ' + "9" * 5000 + "}", []),
    ],
)
def test_json_as_pages_write_it(text: str, values: list[Any]) -> None:
    assert read_json(text) == values


def test_what_follows_a_good_document_does_not_spoil_it() -> None:
    assert read_json('{"a": 1} and words') == [{"a": 1}]


def depth(value: Any) -> int:
    levels = 0
    while isinstance(value, list) and value:
        value, levels = value[0], levels + 1
    return levels


@pytest.mark.parametrize("levels", [100, 100_000])
def test_deep_json_is_cut_or_dropped(levels: int) -> None:
    assert depth(read_json("[" * levels + "]" * levels)) <= MAX_DEPTH + 2


@pytest.mark.parametrize(
    "text",
    ["[" + "1," * 900_000 + "1]", '"' + '\\"' * 900_000, "{" + "/*" * 900_000, "x" * (MAX_SOURCE + 1), "{" * 1_900_000],
    ids=["long", "quotes", "comments", "too long", "open"],
)
def test_heaps_are_read_in_time(text: str) -> None:
    began = time.process_time()
    assert len(json.dumps(read_json(text))) < 600_000
    assert time.process_time() - began < 10


@settings(max_examples=200)
@given(st.text(max_size=300) | st.text(alphabet='{}[]",:/*\\ \n01ab', max_size=300))
def test_any_text_is_survived(text: str) -> None:
    json.dumps(read_json(text), allow_nan=False).encode()


NAMES = st.sampled_from(
    ["itemscope", "itemprop=a", "itemtype=t", "itemref=i", "id=i", "typeof=T", "property=p", "content=c"]
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["div", "span", "/div", "meta", "a"]), st.lists(NAMES, max_size=4)), max_size=30)
)
def test_any_markup_is_survived(tags: list[tuple[str, list[str]]]) -> None:
    html = "".join(f"<{tag} {' '.join(names)}>x" for tag, names in tags)
    json.dumps(read_structured(tree(html), URL), allow_nan=False)
