"""The columns of `full` and `seo`, from pages as the built-in scraper reads them."""

import json
from typing import Any

import pytest

from scrapeyard.builtin.pages.page import extract_page
from scrapeyard.results.exports.columns import FULL, SEO
from scrapeyard.results.exports.protocol import Line
from scrapeyard.results.exports.records import full_row, seo_row

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
    return dict(zip([column.name for column in SEO], seo_row(a_line(page, **more), page or {}), strict=True))


def test_seo_has_the_cards_of_a_page() -> None:
    row = seo(a_page())
    assert (row["og_title"], row["og_description"]) == ("A lamp", "It shines")
    assert row["og_image"] == "http://shop.example/lamp.png"
    assert (row["twitter_title"], row["twitter_description"]) == ("Lamp!", "Shiny")


def test_seo_takes_cards_of_scripts_too() -> None:
    row = seo({"opengraph": {"title": "short"}, "twitter_title": "flat"})
    assert (row["og_title"], row["twitter_title"]) == ("short", "flat")


def test_seo_tells_how_a_page_was_answered() -> None:
    row = seo(a_page(size=1234, redirects=[]))
    assert (row["http_status"], row["word_count"], row["size"]) == (200, 3, 1234)
    assert (row["indexable"], row["indexability"], row["redirect_url"]) == (True, None, None)


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (a_page('<meta name="robots" content="noindex, follow">'), "noindex"),
        (a_page('<link rel="canonical" href="/other">'), "canonical elsewhere"),
        (a_page(status=404), "status 404"),
        (a_page(final_url="http://shop.example/new", redirects=[URL]), "redirected"),
        (a_page(robots={"meta": None, "header": "none", "index": False, "follow": False}), "noindex"),
        ({"url": URL, "robots": "NOINDEX"}, "noindex"),
        (a_page('<link rel="canonical" href="/x"><meta name="robots" content="none">'), "noindex|canonical elsewhere"),
    ],
)
def test_seo_tells_why_a_page_is_not_indexed(page: dict[str, Any], why: str) -> None:
    row = seo(page)
    assert (row["indexable"], row["indexability"]) == (False, why)


@pytest.mark.parametrize("canonical", ["http://shop.example/lamp", "HTTP://SHOP.example:80/lamp#top", "/lamp"])
def test_a_canonical_to_itself_is_no_other_page(canonical: str) -> None:
    assert seo(a_page(f'<link rel="canonical" href="{canonical}">'))["indexable"] is True


def test_a_redirect_is_named() -> None:
    row = seo(a_page(final_url="http://shop.example/new", redirects=[URL]))
    assert row["redirect_url"] == "http://shop.example/new"


def test_a_failed_item_has_its_reason() -> None:
    failed = {
        "status": "error",
        "site_status": 503,
        "exit_reason": "fetch_status",
        "error": "answers 503",
        "attempts": 3,
        "depth": 2,
        "referrer": "http://shop.example/",
    }
    expected = ("error", "fetch_status", "answers 503", 3, 2, "http://shop.example/")
    names = ("item_status", "exit_reason", "error", "attempts", "depth", "referrer")
    row = seo(None, **failed)
    assert tuple(row[name] for name in names) == expected
    assert (row["http_status"], row["indexable"], row["indexability"]) == (503, False, "status 503")
    full = dict(zip([column.name for column in FULL], full_row(a_line(None, **failed), {}), strict=True))
    assert (*(full[name] for name in names), full["http_status"]) == (*expected, 503)


def test_of_a_page_that_never_answered_nothing_is_said() -> None:
    row = seo(None, status="error", exit_reason="fetch_timeout")
    assert (row["http_status"], row["indexable"], row["indexability"]) == (None, None, None)
