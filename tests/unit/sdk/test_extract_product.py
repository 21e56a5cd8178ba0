"""Products from pages in many vocabularies and languages."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from scrapeyard.builtin.scrapers import PRODUCT
from scrapeyard_sdk.extract.product.product import read_product
from scrapeyard_sdk.extract.product.values import availability_of, gtin_of, in_or_out, likeness
from tests.unit.sdk.product_pages import CASES, OFFER, TEAPOT, Case, ld, page

URL = "https://shop.example/p/teapot"


def product(html: str, url: str = URL) -> dict[str, Any]:
    found = read_product(LexborHTMLParser(html), url)
    assert found is not None
    jsonschema_rs.validate(PRODUCT, found)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pages(case: Case) -> None:
    found = product(case.html, case.url)
    assert {name: found[name] for name in case.wants} == case.wants
    assert {name: found["sources"][name] for name in case.sources} == case.sources


@pytest.mark.parametrize(
    "html",
    ["", "<h1>An essay</h1><p>Words, and no thing to buy.</p>", "<title>x</title><a href=/p/123456>123456</a>"],
)
def test_pages_without_a_product(html: str) -> None:
    assert read_product(LexborHTMLParser(html), "https://news.example/2026/123456") is None


STORY = "<h1>Oil falls again</h1><p>A barrel was at $1.1075 on Monday.</p>"


@pytest.mark.parametrize(
    "html",
    [
        page(STORY, '<meta property="og:type" content="article">', title="Oil falls again"),
        page("<h1>Oil falls again</h1><p>A barrel: $1.10</p>", title="Oil falls again"),
        page(
            STORY,
            ld(
                {
                    "@type": "NewsArticle",
                    "headline": "Oil falls again",
                    "isPartOf": {"@type": ["CreativeWork", "Product"], "name": "The Daily", "productID": "daily:basic"},
                }
            ),
            title="Oil falls again - The Daily",
        ),
        page(STORY, ld({"@type": "Article"}, {"@type": "Book", "name": "Oil"}), title="Oil falls again"),
    ],
)
def test_news_with_a_number_is_no_product(html: str) -> None:
    assert read_product(LexborHTMLParser(html), "https://news.example/oil-falls") is None


def test_confidence_follows_the_evidence() -> None:
    published = product(page("<h1>Blue Teapot</h1>", ld({**TEAPOT, "offers": OFFER})))["confidence"]
    shown = product(page('<h1>Blue Teapot</h1><p class="price">24,90 €</p>'))["confidence"]
    assert 0.5 <= shown < 0.9 < published <= 1


MICRODATA = """<div itemscope itemtype="https://schema.org/Product"><h1 itemprop=name>Blue Teapot</h1>
<div itemprop=offers itemscope itemtype="https://schema.org/Offer"><meta itemprop=priceCurrency content=EUR>
<{old} class=price-old itemprop=price>{listed}</{old}> <span class="price-new">{shown}</span></div></div>"""


def test_a_published_price_that_is_struck_out_is_the_list_price() -> None:
    found = product(page(MICRODATA.format(old="del", listed="30,00 €", shown="24,90 €")))
    assert (found["price"], found["list_price"], found["sources"]["price"]) == (24.9, 30.0, "page")


@pytest.mark.parametrize(("listed", "shown"), [("24,90 €", "30,00 €"), ("24,90 €", "1,00 €"), ("24,90 €", "Sale!")])
def test_a_published_price_stays_where_the_other_is_doubtful(listed: str, shown: str) -> None:
    found = product(page(MICRODATA.format(old="del", listed=listed, shown=shown)))
    assert (found["price"], found["list_price"]) == (24.9, None)


@pytest.mark.parametrize(
    ("text", "sku"),
    [
        ("Réf : X-10 Housse", "X-10"),
        ("SKU: CA304103-0000 Watch for men", "CA304103-0000"),
        ("SKU: AB 123 45", "AB 123 45"),
        ("SKU: 4711 Blue", "4711"),
    ],
)
def test_a_number_ends_where_the_next_word_begins(text: str, sku: str) -> None:
    assert product(page(f"<h1>Blue Teapot</h1><p class=price>24,90 €</p><p>{text}</p>"))["sku"] == sku


def test_the_brand_that_the_name_begins_with() -> None:
    body = '<h1>Kiln &amp; Co Blue Teapot</h1><p class="price">24,90 €</p><a href="/brands/x">{}</a>'
    assert product(page(body.format("Kiln &amp; Co"), title="Kiln & Co Blue Teapot"))["brand"] == "Kiln & Co"
    assert product(page(body.format("Other"), title="Kiln & Co Blue Teapot"))["brand"] is None
    assert product(page(body.format("Kil"), title="Kiln & Co Blue Teapot"))["brand"] is None


def test_an_amount_in_two_pieces() -> None:
    body = "<h1>Blue Teapot</h1><p><span>12</span><span>,50 €</span></p><button>Add to cart</button>"
    assert product(page(body))["price"] == 12.5


def test_what_stands_on_the_page_decides_between_two_numbers() -> None:
    published = ld({**TEAPOT, "sku": "INT-100", "offers": OFFER})
    assert product(page("<h1>Blue Teapot</h1><p>SKU: BT-2041</p>", published))["sku"] == "BT-2041"
    both = "<h1>Blue Teapot</h1><p>SKU: BT-2041</p><p>Product code: INT-100</p>"
    assert product(page(both, published))["sku"] == "INT-100"


def test_a_reference_in_circles_ends() -> None:
    knot = {
        "@graph": [
            {**TEAPOT, "@id": "#a", "offers": {"@id": "#a"}, "brand": {"@id": "#a"}, "hasVariant": {"@id": "#a"}}
        ]
    }
    assert product(page("<h1>Blue Teapot</h1>", ld(knot)))["name"] == "Blue Teapot"


def test_variants_are_listed() -> None:
    group = {
        "@type": "ProductGroup",
        "name": "Cup",
        "hasVariant": [{"@type": "Product", "name": "S", "sku": "C-S", "offers": OFFER}],
    }
    assert product(page("<h1>Cup</h1>", ld(group)))["variants"] == [
        {"name": "S", "sku": "C-S", "price": 24.9, "availability": "InStock"}
    ]


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("https://schema.org/InStock", "InStock"),
        ("http://schema.org/OutOfStock/", "OutOfStock"),
        ("in stock", "InStock"),
        ("SOLD_OUT", "SoldOut"),
        ("pre-order", "PreOrder"),
        (True, "InStock"),
        (False, "OutOfStock"),
        ("perhaps", None),
        (None, None),
    ],
)
def test_words_for_availability(said: Any, word: str | None) -> None:
    assert availability_of(said) == word


def test_on_order_is_available_and_discontinued_is_not() -> None:
    assert [in_or_out(word) for word in ("PreOrder", "BackOrder", "Discontinued", "SoldOut")] == [
        *("InStock", "InStock"),
        *("OutOfStock", "OutOfStock"),
    ]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("4006381333931", "4006381333931"),
        ("978-0-552-17374-2", "9780552173742"),
        ("96385074", "96385074"),
        ("036000291452", "036000291452"),
        (4006381333931, "4006381333931"),
        ("4006381333930", None),
        ("0000000000000", None),
        ("12345", None),
        (None, None),
    ],
)
def test_gtins(said: Any, code: str | None) -> None:
    assert gtin_of(said) == code


def test_likeness() -> None:
    assert likeness("Blue Teapot", "Blue Teapot, buy now") == 1.0
    assert likeness("藍色茶壺", "藍色茶壺 - 商店") == 1.0
    assert likeness("Red cup", "Blue Teapot") == 0.0
    assert likeness("", "Blue Teapot") == 0.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["@type", "@id", "name", "offers", "price", "brand", "sku", "image", "hasVariant", "availability"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_whatever_is_published_the_result_fits_its_schema(document: Any) -> None:
    source = json.dumps({"@type": "Product", "name": "x", "@graph": document}).replace("<", "\\u003c")
    html = f'<h1>x</h1><script type="application/ld+json">{source}</script>'
    json.dumps(product(html), allow_nan=False).encode("utf-8")


PIECES = st.sampled_from(
    [
        *(
            '<div itemscope itemtype="https://schema.org/Product">',
            '<b itemprop="price">',
            "</div>",
            "</b>",
            "<h1>",
            "</h1>",
        ),
        *("$12.50", "1.299,00 €", "SKU: A-1", "<table><tr><td>", "<th>Brand</th>", "<dt>", "<dd>", "<del>", "Sold out"),
        *('<p class="price">', '<meta itemprop="sku" content="', '">', "<script>dataLayer.push({price:", "})</script>"),
        *(
            '<script type="application/ld+json">',
            '{"@type":"Product","offers":[',
            "]}",
            "</script>",
            "<li>",
            "\0",
            "\ud800",
        ),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES | st.text(max_size=10), max_size=40).map("".join), st.text(max_size=30))
def test_whatever_the_page_is_it_is_read(html: str, url: str) -> None:
    found = read_product(LexborHTMLParser(html.encode("utf-8", "replace").decode()), "https://x.example/" + url)
    if found is not None:
        jsonschema_rs.validate(PRODUCT, json.loads(json.dumps(found, allow_nan=False)))
