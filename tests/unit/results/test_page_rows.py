"""The columns of `full` and `seo`, from pages as the built-in scraper reads them."""

import json
from typing import Any

from scrapeyard.builtin.reading.page import extract_page
from scrapeyard.results.exports.columns import SEO
from scrapeyard.results.exports.protocol import Line
from scrapeyard.results.exports.records import seo_row

URL = "http://shop.example/lamp"
HEAD = """<title>Lamp</title>
<meta property="og:title" content="A lamp"><meta property="og:description" content="It shines">
<meta property="og:image" content="http://shop.example/lamp.png">
<meta name="twitter:title" content="Lamp!"><meta name="twitter:description" content="Shiny">"""


def a_page(head: str = HEAD, **more: Any) -> dict[str, Any]:
    """A result of `builtin/page`."""
    html = f"<html><head>{head}</head><body><h1>Lamp</h1><p>two words</p></body></html>"
    return {"status": 200, "url": URL, "final_url": URL, **extract_page(html, URL, include=("links",)), **more}


def a_line(page: dict[str, Any] | None, **more: Any) -> Line:
    given = {"key": "item-1", "status": "success", "finished_at": 1.7e9, "site_status": None}
    result = b"" if page is None else json.dumps(page).encode()
    return Line(**{**given, "input": json.dumps({"url": URL}).encode(), "result": result, **more})


def seo(page: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    return dict(zip([column.name for column in SEO], seo_row(a_line(page, **more)), strict=True))


def test_seo_has_the_cards_of_a_page() -> None:
    row = seo(a_page())
    assert (row["og_title"], row["og_description"]) == ("A lamp", "It shines")
    assert row["og_image"] == "http://shop.example/lamp.png"
    assert (row["twitter_title"], row["twitter_description"]) == ("Lamp!", "Shiny")


def test_seo_takes_cards_of_scripts_too() -> None:
    row = seo({"opengraph": {"title": "short"}, "twitter_title": "flat"})
    assert (row["og_title"], row["twitter_title"]) == ("short", "flat")
