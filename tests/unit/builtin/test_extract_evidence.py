"""Evidence of extraction: each selector selects a node that has the quote, whatever told the value."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from scrapeyard.builtin.extraction.asking import candidates_in
from scrapeyard.builtin.extraction.confidence import FieldAnswer, weigh
from scrapeyard.builtin.extraction.fields import wanted_of
from scrapeyard.builtin.extraction.reading import KnownPattern, ReadTask, read
from scrapeyard.builtin.extraction.reduced import MAX_PIECES, pieces_of
from scrapeyard_sdk.extract.patterns import Example, learn
from scrapeyard_sdk.extract.patterns.template import marks
from scrapeyard_sdk.extract.patterns.tree import PageTree
from tests.services.made_shop import FIELDS, made_page

WANTED = (
    "name, price: number, brand, sku, gtin, in_stock: bool, availability, "
    "description, images: url[], currency, url: url"
)
PRODUCT: dict[str, Any] = {
    "@context": "https://schema.org",
    "@type": "Product",
    "name": "Café lamp “Nord”",
    "sku": "N-17",
    "gtin13": "4006381333931",
    "brand": {"@type": "Brand", "name": "Norholm"},
    "image": ["/i/1.jpg", "/i/2.jpg"],
    "offers": [
        {"@type": "Offer", "price": "1234.50", "priceCurrency": "EUR", "availability": "http://schema.org/InStock"}
    ],
}
CRUMBS = {"@type": "BreadcrumbList", "itemListElement": [{"@type": "ListItem", "position": 1, "name": "Home"}]}
GRAPH = {"@graph": [{"@type": "WebSite", "name": "Shop"}, PRODUCT], "odd key": [1]}


def ld(*documents: Any, kind: str = "application/ld+json") -> str:
    return "".join(f'<script type="{kind}">{json.dumps(each)}</script>' for each in documents)


MICRODATA = """<div itemscope itemtype="https://schema.org/Product"><h1 itemprop="name">Blue lamp</h1>
<meta itemprop="sku" content="B-1"><table><tr><td><span itemprop="brand">Norholm</span></td></tr></table>
<div itemprop="offers" itemscope itemtype="https://schema.org/Offer">
<span itemprop="price" content="12.50">€12,50</span>
<meta itemprop="priceCurrency" content="EUR"><link itemprop="availability" href="https://schema.org/InStock"></div>
<img itemprop="image" src="/i/1.jpg"></div>"""
RDFA = """<div vocab="https://schema.org/" typeof="Product"><p property="name">Blue lamp</p>
<div property="offers" typeof="Offer"><b property="price" content="12.5">12.50</b>
<meta property="priceCurrency" content="EUR"></div></div>"""
CARDS = """<meta property="og:type" content="product"><meta property="og:title" content="Blue lamp">
<meta property="product:price:amount" content="12.50"><meta property="product:price:currency" content="EUR">
<meta property="og:description" content="A lamp."><meta property="og:image" content="/i/9.jpg">"""
SHOWN = """<h1>Blue lamp</h1><p class="price">€ 1.234,50</p><p>Item no.: N-17</p><button>Add to cart</button>
<p>In stock</p>"""
STATE = """<h1>Blue lamp</h1><script>dataLayer.push({"productName": "Blue lamp", "price": 12.5, "sku": "N-17",
"brand": "Norholm", "currency": "EUR"});</script>"""
PAGES = {
    "json-ld": ld(CRUMBS, PRODUCT),
    "json-ld in a list": ld([CRUMBS, PRODUCT]),
    "json-ld in a graph": ld({"@type": "WebSite", "name": "x"}, GRAPH) + ld({}, kind="APPLICATION/LD+JSON"),
    "json-ld twice in one script": ld(CRUMBS).replace("</script>", f"{json.dumps(PRODUCT)}</script>"),
    "microdata": MICRODATA,
    "rdfa": RDFA,
    "opengraph": CARDS + "<link rel=canonical href='/p/1'>",
    "shown": SHOWN,
    "data of scripts": STATE,
    "all at once": f"<head>{CARDS}</head><body>{MICRODATA}{ld(CRUMBS, GRAPH)}{RDFA}{SHOWN}",
}


def check(html: str, name: str, answer: FieldAnswer) -> None:
    evidence = answer.shown()["evidence"]
    if evidence is None:
        return
    root = etree.fromstring(html.encode(), etree.HTMLParser(encoding="utf-8"))
    texts = [each if isinstance(each, str) else "".join(each.itertext()) for each in root.xpath(evidence["selector"])]
    assert texts, f"{name}: {evidence} selects nothing"
    if evidence["json_path"]:
        assert len(texts) == 1, f"{name}: {evidence} selects {len(texts)} scripts"
        assert at(json.loads(texts[0]), evidence["json_path"]) == evidence["text"], f"{name}: {evidence}"
    else:
        assert any(squeezed(evidence["text"]) in squeezed(each) for each in texts), f"{name}: {evidence} in {texts}"


def squeezed(text: str) -> str:
    return "".join(text.split()).casefold()


def at(value: Any, path: str) -> str:
    """What JSONPath finds, for the paths that are written here."""
    assert path.startswith("$")
    for key, quoted, number in re.findall(r'\.(\w+)|\[("(?:[^"\\]|\\.)*")\]|\[(\d+)\]', path[1:]):
        value = value[key or (json.loads(quoted) if quoted else int(number))]
    return str(value)


@pytest.mark.parametrize("page", PAGES)
def test_stated_values_have_a_node(page: str) -> None:
    fields = wanted_of({"fields": WANTED}).fields
    html = f"<!doctype html><html lang=en>{PAGES[page]}</html>"
    answers = read(html, "https://shop.example/p/1", ReadTask(fields=fields, sure=1.0)).answers(fields)
    for name, answer in answers.items():
        check(html, name, answer)
    told = [name for name, answer in answers.items() if answer.selector]
    assert {"price"} <= set(told)
    assert "name" in told or page == "json-ld twice in one script"
    if page == "json-ld":
        assert answers["price"].json_path == "$.offers[0].price"
        assert answers["price"].selector == "(//script[@type='application/ld+json'])[2]"
        assert answers["brand"].json_path == "$.brand.name"
        assert answers["images"].json_path == "$.image[0]"


@given(
    name=st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=40),
    brand=st.text(st.sampled_from("äß\"'\\/<&aB 0"), min_size=1, max_size=12),
    price=st.decimals(min_value="0.01", max_value="99999", places=2),
    page=st.sampled_from(["json-ld", "json-ld in a graph", "microdata", "opengraph"]),
)
def test_any_stated_value_has_its_node_or_none(name: str, brand: str, price: Any, page: str) -> None:
    product = PRODUCT | {"name": name, "brand": brand, "offers": {"@type": "Offer", "price": float(price)}}
    html = PAGES[page]
    for old, new in (("Blue lamp", name), ("Norholm", brand), ("12.50", str(price))):
        html = html.replace(old, new.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;"))
    if page.startswith("json"):
        html = ld(CRUMBS, product if page == "json-ld" else {"@graph": [product]}).replace("</script>", "\n</script>")
        html = html.replace("</", "<\\/").replace("<\\/script>", "</script>")
    fields = wanted_of({"fields": WANTED}).fields
    for field, answer in (
        read(html, "https://shop.example/p/1", ReadTask(fields=fields, sure=1.0)).answers(fields).items()
    ):
        check(html, field, answer)


def test_models_quotes_have_their_node() -> None:
    html = """<html><head><meta property="og:title" content="Blue lamp"></head><body><p>by <b>Norholm</b> &amp; Sons</p>
    <div>12<sup>50</sup> EUR</div><a href="/p/2">More</a><img src="/i/1.jpg" alt="A blue lamp">
    <table><tr><th>Weight</th><td>2 kg</td></tr></table></body></html>"""
    fields = wanted_of({"fields": "title, maker, price, more: url, image: url, alt, weight, tags: text[]"}).fields
    said: dict[str, Any] = {"title": "Blue lamp", "maker": "NORHOLM & Sons", "price": "12 50 EUR", "more": "/p/2"}
    said |= {
        "image": "/i/1.jpg",
        "alt": "A blue lamp",
        "weight": "2 kg",
        "tags": [{"quote": "2 kg"}, {"quote": "More"}],
    }
    pieces = pieces_of(PageTree(html))
    given = {name: {"quote": quote} if isinstance(quote, str) else quote for name, quote in said.items()}
    found = candidates_in(given, pieces, fields, "https://shop.example/")
    assert set(found) == set(said)
    for name, candidate in found.items():
        assert candidate.selector
        check(html, name, weigh([candidate]))


def test_patterns_quotes_have_their_node() -> None:
    pages = [made_page(number) for number in range(30)]
    examples = [Example(html=each.html, values={**each.shown, "price": each.truth["price"]}) for each in pages[:3]]
    known = KnownPattern(
        id="p", pattern=learn(examples).to_json(), marks=marks(PageTree(pages[0].html)), examples=3, absent=("weight",)
    )
    fields = wanted_of({"fields": FIELDS}).fields
    for page in pages[3:]:
        answers = read(page.html, page.url, ReadTask(fields=fields, patterns=(known,))).answers(fields)
        assert answers["price"].text == page.shown["price"] or answers["price"].text in str(page.shown["price"])
        for name, answer in answers.items():
            check(page.html, name, answer)


def test_a_page_of_very_many_pieces_is_told_to_be_cut() -> None:
    task = ReadTask(fields=wanted_of({"fields": "price: number"}).fields, sure=0.9, room=10_000_000)
    whole = "".join(f"<p>word {number}</p>" for number in range(MAX_PIECES))
    assert read(f"<body>{whole}</body>", "https://shop.example/", task).left_out == 0
    assert read(f"<body>{whole}<p>one more</p></body>", "https://shop.example/", task).left_out == 1
