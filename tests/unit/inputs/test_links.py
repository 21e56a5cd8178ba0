"""Which links of a page belong to a crawl, and how their URLs are spelled."""

import json

import msgspec
import pytest

from scrapeyard.builtin import PAGE
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import parse_target
from scrapeyard.inputs.links import FoundLinks, LinkScope, PageLinks, tidy_query
from scrapeyard.inputs.mapper import Shaper
from scrapeyard.inputs.source import FollowSource, QueryMode, ScopeKind, Shape, UrlChoice
from scrapeyard.repository.manifest.json_schemas import InputChecker
from tests.page_builtins import BUILTINS


def links_of(source: FollowSource) -> PageLinks:
    return PageLinks(source, Shaper(BUILTINS[PAGE].scraper, InputChecker(), source.shape), Sites())


def follow(links: PageLinks, pages: list[tuple[str, bytes]], depth: int) -> FoundLinks:
    found: dict[str, str] = {}
    for page, result in pages:
        links.gather(page, result, found)
    return links.listed(found, depth)


def test_links_of_results_become_items_of_the_same_site_once() -> None:
    source = FollowSource(
        start=("https://www.shop.example/",),
        choice=UrlChoice(exclude=("**.pdf",)),
        shape=Shape(input={"include": ["links"]}),
    )
    results = [
        b'{"links": ["https://img.shop.example/a#top", "https://img.shop.example/a", "mailto:x", "https://other.example/"]}',
        b'[{"links": [{"url": "https://shop.example/b"}, {"url": 7}, null]}, {"links": null}, {}]',
        b'{"links": "https://shop.example/c"}',
        b'{"links": ["https://shop.example/d.pdf", "https://',
        b"not json",
        b"",
    ]
    pages = [(f"https://shop.example/{number}", result) for number, result in enumerate(results)]
    items = follow(links_of(source), pages, 3).items
    expected = ["https://img.shop.example/a", "https://shop.example/b"]
    assert [msgspec.json.decode(item.input) for item in items] == [
        {"include": ["links"], "url": url} for url in expected
    ]
    assert [(item.depth, item.referrer) for item in items] == [
        (3, "https://shop.example/0"),
        (3, "https://shop.example/1"),
    ]
    anywhere = follow(links_of(msgspec.structs.replace(source, same_site=False)), pages, 1).items
    assert len(anywhere) == 3


SCOPES: list[tuple[ScopeKind, str, str, bool]] = [
    ("host", "https://shop.example/", "http://www.shop.example/a", True),
    ("host", "https://www.shop.example/", "https://SHOP.example:443/a", True),
    ("host", "https://shop.example/", "https://img.shop.example/a", False),
    ("host", "http://127.0.0.1:8000/", "http://127.0.0.1:8001/", False),
    ("site", "https://shop.example/", "https://img.shop.example:8443/a", True),
    ("site", "https://a.github.io/", "https://b.github.io/", False),
    ("path", "https://shop.example/docs/index.html", "https://shop.example/docs/a?b=/", True),
    ("path", "https://shop.example/docs", "https://shop.example/docs", True),
    ("path", "https://shop.example/docs", "https://shop.example/docs/a", True),
    ("path", "https://shop.example/docs/", "https://shop.example/docs-old/a", False),
    ("path", "https://shop.example/docs/", "https://shop.example/docs/../a", False),
    ("path", "https://shop.example/docs/", "https://img.shop.example/docs/a", False),
    ("any", "https://shop.example/", "https://other.example/", True),
]


@pytest.mark.parametrize(("kind", "start", "url", "inside"), SCOPES)
def test_a_scope_tells_which_urls_belong_to_a_crawl(kind: ScopeKind, start: str, url: str, inside: bool) -> None:
    assert LinkScope(kind, [start], Sites()).includes(parse_target(url)) is inside


QUERIES: list[tuple[QueryMode, str, str]] = [
    ("keep", "?b=2&utm_source=x&a=1", "?b=2&utm_source=x&a=1"),
    ("clean", "?b=2&utm_source=x&a=1&fbclid=7&", "?b=2&a=1"),
    ("clean", "?UTM_Medium=x", ""),
    ("sort", "?b=2&utm_source=x&a=2&a=1", "?a=2&a=1&b=2"),
    ("drop", "?b=2", ""),
    ("sort", "", ""),
]


@pytest.mark.parametrize(("mode", "query", "expected"), QUERIES)
def test_queries_are_tidied_as_asked(mode: QueryMode, query: str, expected: str) -> None:
    assert tidy_query(parse_target(f"https://shop.example/p{query}"), mode).resource == f"/p{expected}"


def test_spellings_of_one_url_become_one_item() -> None:
    source = FollowSource(start=("https://shop.example/",), query="sort")
    spellings = [
        "https://shop.example/a/index.html?x=1&y=2",
        "HTTPS://Shop.Example:443/b/../a/./index.html?y=2&x=1#top",
        "https://shop.example/a/index.html?utm_campaign=z&x=1&y=2",
    ]
    links = links_of(source)
    found = follow(links, [("", json.dumps({"links": spellings}).encode())], 1)
    assert [msgspec.json.decode(item.input)["url"] for item in found.items] == [spellings[0]]


def test_links_that_are_remembered_are_passed_over() -> None:
    links = links_of(FollowSource(start=("https://shop.example/",)))
    page = [("", b'{"links": ["https://shop.example/a", "mailto:x"]}')]
    found = follow(links, page, 1)
    assert len(found.items) == len(follow(links, page, 1).items) == 1
    links.remember(found)
    assert follow(links, page, 1).items == []
