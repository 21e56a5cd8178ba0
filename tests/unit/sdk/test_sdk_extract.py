"""The readings that a script's page has."""

import subprocess
import sys

import pytest

from scrapeyard_sdk.page import Page
from tests.unit.sdk.product_pages import OFFER, TEAPOT, ld, page

WORDS = "The kiln was lit at dawn and the pots were glazed by noon, as they had been for years. " * 3


def made(html: str) -> Page:
    headers = [("X-Robots-Tag", "noindex"), ("x-robots-tag", "nofollow")]
    return Page(url="https://shop.example/p/1", status=200, headers=headers, body=html.encode())


def test_a_page_tells_its_product_and_what_it_publishes() -> None:
    shown = made(page("<h1>Blue Teapot</h1>", ld({**TEAPOT, "offers": OFFER})))
    product = shown.product()
    assert product is not None
    assert (product["price"], product["currency"]) == (24.9, "EUR")
    assert [item["@type"] for item in shown.structured()["json_ld"]] == ["Product"]
    assert shown.meta()["title"] == "Blue Teapot | Shop"
    robots = shown.meta()["robots"]
    assert (robots["header"], robots["index"], robots["follow"]) == ("noindex, nofollow", False, False)
    assert shown.text("h1") == "Blue Teapot"


def test_a_page_without_a_product() -> None:
    assert made("<h1>Words</h1>").product() is None


def test_the_article() -> None:
    article = made(f"<article><h1>Kilns</h1><p>{WORDS}</p><p>{WORDS}</p></article><footer>imprint</footer>").article()
    assert article is not None
    assert article["text"].startswith("Kilns")
    assert "imprint" not in article["text"]


def test_without_its_library_the_article_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(RuntimeError, match="add it to the scraper's requirements"):
        made("<p>x").article()


def test_products_need_nothing_but_the_parser() -> None:
    code = (
        "import sys; from scrapeyard_sdk.page import Page; "
        "Page(url='https://x.example/', status=200, body=b'<h1>x</h1><b class=price>$5</b>').product(); "
        "print([m for m in ('lxml', 'extruct', 'price_parser', 'msgspec', 'scrapeyard') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
