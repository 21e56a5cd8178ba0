"""A page as data, from good pages and bad ones."""

import hashlib
import json
import os
import time
from urllib.parse import urldefrag, urljoin

import jsonschema_rs
import pytest

from scrapeyard.builtin.pages.bounds import MAX_HTML, MAX_LIGHT, bounded, is_light
from scrapeyard.builtin.pages.page import MAX_FIELD, MAX_LINKS, extract_page
from scrapeyard.builtin.pages.port import FIELDS, MAX_TEXT, PARTS
from scrapeyard.builtin.services import Services
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard_sdk.extract.page import Joiner
from tests.page_builtins import BUILTINS

URL = "https://shop.example/dir/page"
HTML = """<!doctype html>
<html lang="ko-KR"><head><title> Tea
 shop </title><meta name="Description" content="Pots  and cups"><link rel="alternate canonical" href="/tea">
<style>p { color: red }</style></head>
<body><nav><a href="/">Home</a></nav>
<main><h1>Tea <em>pots</em></h1><p>A <b>bl</b>ue pot.</p><p hidden>secret</p>
<table><tr><th>Size</th><th>Price</th></tr><tr><td>1 l</td><td>12</td></tr></table>
<a href="a?x=1#top">A</a> <a href="a?x=1">again</a> <a href="#here">here</a> <a href="mailto:x@y.example">mail</a>
<a href="javascript:void(0)">js</a> <a href="http://[bad">bad</a> <a href="//other.example/b">B</a></main>
<footer>imprint</footer><script>var hidden = 1</script></body></html>"""


def test_a_good_page() -> None:
    page = extract_page(HTML.encode(), URL)
    assert page["title"] == "Tea shop"
    assert page["description"] == "Pots and cups"
    assert page["h1"] == "Tea pots"
    assert page["canonical"] == "https://shop.example/tea"
    assert page["language"] == "ko-KR"
    assert page["links"] == ["https://shop.example/", "https://shop.example/dir/a?x=1", "https://other.example/b"]
    assert page["text"].splitlines()[:4] == ["Home", "Tea pots", "A blue pot.", "Size"]
    assert not {"secret", "hidden", "color"} & set(page["text"].split())
    markdown = page["markdown"]
    assert "# Tea *pots*" in markdown
    assert "| Size | Price |" in markdown
    assert "[A](https://shop.example/dir/a?x=1#top)" in markdown
    for noise in ("Home", "imprint", "secret", "hidden"):
        assert noise not in markdown


def test_only_what_is_asked_for() -> None:
    assert set(extract_page(HTML, URL, include=[])) == set(FIELDS)
    for part in PARTS:
        assert set(extract_page(HTML, URL, include=[part])) == {*FIELDS, part}


HEAD = """<html lang=de-CH><head><title>T</title><meta name=keywords content="tea, pots">
<meta name=ROBOTS content="noindex, max-snippet:5">
<link rel=alternate hreflang=fr href=/fr><link rel=alternate hreflang=x-default href=/>
<link rel=alternate hreflang=bad href="mailto:x">
<meta property=og:title content="Pots"><meta property=og:image content=/a><meta property=og:image content=/b>
<meta name=twitter:card content=summary><meta name=viewport content="width=1"></head>
<body><h1>One</h1><h1> </h1><h1>Two</h1><h2>Sub</h2>
<a href=/in rel="nofollow ugc">In <b>here</b></a><a href=https://www.shop.example/www>W</a><a href=https://other.example/>Out</a>
<img src=/i.png alt="A  pot"><img src=/deco.png alt=""><img data-src=/lazy.png></body>"""


def test_what_the_head_says() -> None:
    page = extract_page(
        HEAD, URL, include=[], headers=[("X-Robots-Tag", "nofollow"), ("x-robots-tag", "otherbot: none")]
    )
    assert (page["language"], page["keywords"]) == ("de-CH", "tea, pots")
    assert page["robots"] == {
        "meta": "noindex, max-snippet:5",
        "header": "nofollow, otherbot: none",
        "index": False,
        "follow": False,
    }
    assert page["hreflang"] == [
        {"language": "fr", "url": "https://shop.example/fr"},
        {"language": "x-default", "url": "https://shop.example/"},
    ]
    assert page["opengraph"] == {"og:title": "Pots", "og:image": ["/a", "/b"]}
    assert page["twitter"] == {"twitter:card": "summary"}
    assert page["meta"]["viewport"] == "width=1"


def test_a_page_that_says_nothing_to_robots_may_be_indexed() -> None:
    assert extract_page("<p>x", URL)["robots"] == {"meta": None, "header": None, "index": True, "follow": True}
    header = [("x-robots-tag", "googlebot: noindex")]
    assert extract_page("<p>x", URL, headers=header)["robots"]["index"]
    assert not extract_page('<meta name="robots" content="none">', URL)["robots"]["follow"]


def test_headings_links_and_images() -> None:
    page = extract_page(HEAD, URL, include=["anchors", "images"])
    assert (page["h1"], page["headings"]) == ("One", {"h1": ["One", "Two"], "h2": ["Sub"]})
    assert page["anchors"] == [
        {"url": "https://shop.example/in", "text": "In here", "rel": ["nofollow", "ugc"], "internal": True},
        {"url": "https://www.shop.example/www", "text": "W", "rel": [], "internal": True},
        {"url": "https://other.example/", "text": "Out", "rel": [], "internal": False},
    ]
    assert page["images"] == [
        {"url": "https://shop.example/i.png", "alt": "A pot"},
        {"url": "https://shop.example/deco.png", "alt": ""},
        {"url": "https://shop.example/lazy.png", "alt": None},
    ]


def test_the_text_hash_follows_the_words_and_not_the_markup() -> None:
    def of(html: str) -> tuple[int, str | None]:
        page = extract_page(html, URL, include=[])
        return page["word_count"], page["text_hash"]

    first = of("<title>a</title><p>Two  words</p><script>x</script>")
    assert first == of("<title>b</title><div class=x>two\n<b>Words</b></div><style>y</style><p hidden>no</p>")
    assert first[0] == 2
    assert first[1] == hashlib.sha256(b"two words").hexdigest()
    assert of("<p>Three other words")[1] != first[1]
    assert of("<script>x</script>") == (0, None)


def test_a_hidden_root_is_survived() -> None:
    assert extract_page("<html hidden><body><p>x", URL)["title"] is None


def test_the_article() -> None:
    words = "The kiln was lit at dawn and the pots were glazed by noon, as they had been for years. "
    paragraphs = "".join(f"<p>{words * 3}</p>" for _ in range(5))
    html = f"<title>Kilns</title><nav>Home</nav><article><h1>Kilns</h1>{paragraphs}</article><footer>imprint</footer>"
    article = extract_page(html, URL, include=["article"])["article"]
    assert "lit at dawn" in article["text"]
    assert "imprint" not in article["text"]
    assert extract_page("<p></p>", URL, include=["article"])["article"] is None


def test_a_broken_script_does_not_keep_the_article_busy() -> None:
    began = time.process_time()
    extract_page('<p>x<script type="application/ld+json">"' + '\\"' * 30_000, URL, include=["article"])
    assert time.process_time() - began < 10


def test_links_are_joined_the_short_way_as_the_long_way_does() -> None:
    base = "https://shop.example:8443/a/b?c=d"
    joiner = Joiner(base)
    hrefs = ["/", "/x", "/x?y=1&z=%20", "/x/../y", "/./x", "//h.example/x", "/x#y", "/x?", "x", "?q", "https://h.example",
             "https://h.example/x", "HTTPS://H.example/x", "https://h.example/x#y", "https://h.example/a/../b", "/a b",
             "/\u00e9", "mailto:x@y.example", "http://[bad", "", "/x;p=1", "https://h.example/x?", "/x:y"]  # fmt: skip
    for href in hrefs:
        whole = urldefrag(urljoin(base, href)).url if href and "[" not in href else ""
        assert joiner.absolute(href) == (whole if whole.startswith("http") else None), href


def test_the_base_element_counts() -> None:
    page = extract_page('<base href="https://cdn.example/x/"><a href="y">', URL)
    assert page["links"] == ["https://cdn.example/x/y"]
    assert extract_page('<base href="javascript:x"><a href="y">', URL)["links"] == ["https://shop.example/dir/y"]


def test_bytes_are_read_in_their_charset() -> None:
    assert extract_page("<title>가격</title>".encode("cp949"), URL, encoding="cp949")["title"] == "가격"


@pytest.mark.parametrize(
    "html",
    ["", "<", "<!doctype", "\0" * 1000, "\ud800<h1>\udfff", "<title>", "</html>", "<html><body></body></html>", "]]>"],
)
def test_garbage_gives_empty_fields(html: str) -> None:
    page = extract_page(html, URL)
    assert page["links"] == []
    assert page["title"] is None
    json.dumps(page).encode()
    json.dumps(page, ensure_ascii=False).encode("utf-8")


def test_binary_is_survived() -> None:
    for body in (os.urandom(50_000), bytes(range(256)) * 200, b"\x89PNG\r\n\x1a\n" + b"\0" * 10_000):
        assert "\0" not in json.dumps(extract_page(body, URL), ensure_ascii=False)


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 10_000 + "deep",
        "<div>" * 300_000 + "deep",
        "<div>" * 5000 + "<div></div>" * 200_000,
        "<p>" + "".join(f"<b id={i}>" for i in range(5000)) + "</p>" + "<p>x</p>" * 5000,
        "<div " + " ".join(f"a{i}" for i in range(200_000)) + ">",
        "<table>" * 10_000,
        "<a href=x>" * 12_500,
        "<li>" * 25_000,
        '<b class="price">$1.50</b>' * 25_000,
        "<table>" + "<tr><th>SKU<td>A-12345" * 12_500,
        '<div itemscope itemprop="a">' * 12_500,
        "<script>" + "x={price:" * 100_000,
        '<script type="application/ld+json">' + '{"@type":"Product","offers":' * 50_000,
    ],
    ids=[
        *("deep", "deeper", "deep-and-wide", "reopened", "attributes", "tables", "links", "unclosed"),
        *("prices", "rows", "items", "states", "json"),
    ],
)
def test_pages_made_to_choke_a_parser_are_cut_in_time(html: str) -> None:
    began = time.process_time()
    page = extract_page("<title>found</title>" + html, URL, include=[part for part in PARTS if part != "article"])
    assert page["title"] == "found"
    assert time.process_time() - began < 5


def test_large_but_honest_pages_are_not_cut() -> None:
    row = "<tr><td><b>x</b><br><img src=a><td><a href=/p>y</a></tr>"
    html = "<table>" + row * 20_000 + "</table>"
    assert bounded(html) == html
    assert bounded("x" * (MAX_HTML + 5)) == "x" * MAX_HTML


@pytest.mark.parametrize(
    "html",
    [
        "x" * (MAX_LIGHT + 1),
        "<p>" * 5000,
        "<!-- </b> -->" + "<b>" * 900,
        "<div " + "a " * 5000 + ">",
    ],
    ids=["long", "tags", "formatting", "attributes"],
)
def test_pages_that_may_be_trouble_are_not_light(html: str) -> None:
    assert not is_light(html)


def test_an_ordinary_page_is_light() -> None:
    assert is_light("<li><a href=/x><b>word</b></a> words</li>" * 200)


def test_caps() -> None:
    html = f"<title>{'t' * 9000}</title>" + "".join(f"<a href=/{i}>x</a>" for i in range(MAX_LINKS + 10))
    page = extract_page(html + "word " * 300_000, URL)
    assert len(page["title"]) == MAX_FIELD
    assert len(page["links"]) == MAX_LINKS
    assert len(page["text"]) <= MAX_TEXT


def test_a_large_page_is_converted_in_pieces_without_loss() -> None:
    body = "".join(f"<section><h2>Part {i}</h2><p>{'words ' * 200}</p></section>" for i in range(200))
    markdown = extract_page(f"<body><div><div>{body}</div></div>", URL)["markdown"]
    assert [line for line in markdown.splitlines() if line.startswith("## ")] == [f"## Part {i}" for i in range(200)]


async def run(response: FetchResponse, **given: object) -> dict[str, object]:
    asked: list[FetchRequest] = []

    async def fetch(request: FetchRequest) -> FetchResponse:
        asked.append(request)
        return response

    builtin = BUILTINS["builtin/page"]
    jsonschema_rs.validate(builtin.scraper.input_schema, {"url": URL, **given})
    result = await builtin.run(Services(fetch=fetch), {"url": URL, **given})
    assert asked == [FetchRequest(url=URL)]
    assert builtin.scraper.output_schema is not None
    jsonschema_rs.validate(builtin.scraper.output_schema, result)
    return result


def answer(body: bytes, content_type: str, status: int = 200) -> FetchResponse:
    headers = (("Content-Type", content_type), ("content-language", "de, en"))
    return FetchResponse(url=URL + "/", status=status, headers=headers, body=body, encoding="utf-8", elapsed_ms=1)


async def test_builtin_page_of_html() -> None:
    result = await run(answer(HTML.encode(), "text/html; charset=utf-8", 404))
    assert (result["status"], result["url"], result["final_url"]) == (404, URL, URL + "/")
    assert (result["title"], result["language"]) == ("Tea shop", "ko-KR")
    assert result["content_type"] == "text/html; charset=utf-8"
    assert result["markdown"]


async def test_builtin_page_of_some_parts() -> None:
    result = await run(answer(b"<p>x", "text/html"), include=["text"])
    assert (result["text"], result["links"], result["markdown"], result["language"]) == ("x", None, None, "de")


@pytest.mark.parametrize(
    ("content_type", "body", "text", "links"),
    [
        ("text/plain", b"hello\0", "hello", []),
        ("application/json", b'{"a": 1}', '{"a": 1}', []),
        ("image/png", b"\x89PNG", None, None),
        ("", b"who knows", None, None),
    ],
)
async def test_builtin_page_of_what_is_not_html(
    content_type: str, body: bytes, text: str | None, links: list[str] | None
) -> None:
    result = await run(answer(body, content_type))
    assert (result["title"], result["links"], result["text"]) == (None, links, text)


async def test_builtin_page_of_html_that_does_not_say_so() -> None:
    assert (await run(answer(b" <!DOCTYPE html><title>x", "")))["title"] == "x"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"url": "ftp://x.example/"},
        {"url": "x"},
        {"url": 1},
        {"url": "http://" + "a" * 9000},
        {"url": URL, "include": ["pdf"]},
        {"url": URL, "formats": ["text"], "include": ["text"]},
        {"url": URL, "include": ["text", "text"]},
        {"url": URL, "extra": 1},
    ],
)
def test_inputs_that_do_not_fit(given: dict[str, object]) -> None:
    assert not jsonschema_rs.is_valid(BUILTINS["builtin/page"].scraper.input_schema, given)
