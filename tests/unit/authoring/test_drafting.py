"""The fields that a first script gets from a page."""

import tomllib
from pathlib import Path

import pytest

from scrapeyard.authoring.drafting import create_for_page, found_fields
from scrapeyard.errors import BadRequest
from scrapeyard_sdk import Page

PRODUCT = """<h1>Lamp</h1><script type="application/ld+json">{"@type": "Product", "name": "Lamp", "sku": "L-1",
"offers": {"@type": "Offer", "price": "12.50", "priceCurrency": "EUR"}}</script>"""
POST = '<title>A post</title><meta name="description" content="What it says"><p>Words</p>'


def page(html: str, url: str = "https://shop.example/p/1") -> Page:
    return Page(url=url, status=200, body=html.encode(), headers={"content-type": "text/html"})


@pytest.mark.parametrize(
    ("html", "names"),
    [(PRODUCT, ["title", "price", "currency", "availability", "sku"]), (POST, ["title", "description"]), ("", [])],
)
def test_what_the_page_has_becomes_a_field(html: str, names: list[str]) -> None:
    assert [field.name for field in found_fields(page(html))] == names


@pytest.mark.parametrize("html", [PRODUCT, POST, ""])
def test_script_and_manifest_can_be_read(html: str, tmp_path: Path) -> None:
    create_for_page(tmp_path, "shop/lamp", page(html), "https://www.shop.example/p/1")
    compile((tmp_path / "scraper.py").read_text(), "scraper.py", "exec")
    manifest = tomllib.loads((tmp_path / "scraper.toml").read_text())
    assert manifest["id"] == "shop/lamp"
    assert manifest["allowed_hosts"] == ["www.shop.example", "shop.example"]
    assert set(manifest["output"]["required"]) == set(manifest["output"]["properties"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            '{"total": 2, "on": true, "items": [1], "url": "x", "no": null, "a\\"b{{id}}": 1}',
            ["total", "on", "items"],
        ),
        ("[1, 2]", ["items"]),
        ("3", []),
        ("{broken", []),
    ],
)
def test_json_gives_its_own_fields(text: str, names: list[str], tmp_path: Path) -> None:
    fetched = Page(
        url="https://shop.example/x", status=200, body=text.encode(), headers={"content-type": "application/json"}
    )
    assert [field.name for field in found_fields(fetched)] == names
    create_for_page(tmp_path, "shop/api", fetched, fetched.url)
    compile((tmp_path / "scraper.py").read_text(), "scraper.py", "exec")
    tomllib.loads((tmp_path / "scraper.toml").read_text())


def test_files_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "scraper.py").write_text("mine")
    with pytest.raises(BadRequest, match="already there"):
        create_for_page(tmp_path, "shop/lamp", page(POST), "https://shop.example/")
    assert [each.name for each in tmp_path.iterdir()] == ["scraper.py"]
