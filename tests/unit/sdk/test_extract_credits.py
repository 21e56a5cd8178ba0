"""Who wrote a page, and when."""

from typing import Any

import pytest
from benchmarks.articles import WAYS, Credited, credited_pages
from selectolax.lexbor import LexborHTMLParser

from scrapeyard_sdk.extract.credits import MAX_AUTHORS, read_credits
from scrapeyard_sdk.page import Page

PAGES = {page.way: page for page in credited_pages()}


def read(html: str, url: str = "https://news.example/story") -> dict[str, Any]:
    return read_credits(LexborHTMLParser(html), url)


@pytest.mark.parametrize("page", [PAGES[way] for way in WAYS], ids=list(WAYS))
def test_every_way_to_tell(page: Credited) -> None:
    found = read(page.html, page.url)
    assert (found["authors"], found["published"][:10]) == (page.authors, page.published)


@pytest.mark.parametrize(
    ("html", "authors"),
    [
        ("<p class=byline>By Ann Lee, Bob Ray and Cy Poe | 3 May 2024</p>", ["Ann Lee", "Bob Ray", "Cy Poe"]),
        ("<p class=author>Von Ute Weber</p>", ["Ute Weber"]),
        ("<meta name=author content='https://social.example/ann'>", []),
        ("<div class=reviews><span class=author>Buyer</span></div>", []),
        ("<div itemprop=review itemscope><b itemprop=author>Buyer</b></div>", []),
        (
            "<meta name=citation_author content='Lee, Ann'><meta name=citation_author content='Ray, Bob'>",
            ["Lee, Ann", "Ray, Bob"],
        ),
        ('<script type="application/ld+json">{"@type": "Article", "author": "Ann Lee"}</script>', ["Ann Lee"]),
        ('<script type="application/ld+json">{"@type": "Review", "author": "Buyer"}</script>', []),
    ],
)
def test_authors(html: str, authors: list[str]) -> None:
    assert read(html)["authors"] == authors


def test_authors_are_bounded() -> None:
    many = "".join(f"<i rel=author>Ann {'x' * (n + 1)}</i>" for n in range(30))
    assert len(read(many)["authors"]) == MAX_AUTHORS


@pytest.mark.parametrize(
    ("html", "url", "published"),
    [
        ("", "https://n.example/2024/05/01/story", "2024-05-01"),
        ("", "https://n.example/2024/13/01/story", None),
        ("<time datetime='2024-05-01T10:00:00+02:00'>May</time>", "", "2024-05-01T10:00:00+02:00"),
        ("<span class=date>1. Mai 2024</span>", "", "2024-05-01"),
        ("<div class=comment><time datetime=2011-01-01></time></div>", "", None),
        ("<meta name=date content='0001-01-01'>", "", None),
    ],
)
def test_published(html: str, url: str, published: str | None) -> None:
    assert read(html, url or "https://n.example/story")["published"] == published


def test_modified_and_the_article_of_a_script() -> None:
    page = PAGES["json-ld"]
    html = page.html.replace("<head>", "<head><meta property=article:modified_time content=2025-01-01T00:00:00Z>", 1)
    assert read(html)["modified"] == "2025-01-01T00:00:00+00:00"
    article = Page(url=page.url, status=200, body=html.encode()).article()
    assert article is not None
    assert (article["authors"], article["author"], article["date"]) == (
        page.authors,
        "; ".join(page.authors),
        page.published,
    )
    assert article["markdown"]
    assert article["text"]
