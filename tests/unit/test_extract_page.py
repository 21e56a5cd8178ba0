"""A page as data, from good pages and bad ones."""

import json
import os
import time

import jsonschema_rs
import pytest

from scrapeyard.builtin import BUILTINS
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.extract.bounds import MAX_HTML, bounded
from scrapeyard.extract.page import MAX_FIELD, MAX_LINKS, MAX_TEXT, extract_page

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
    assert set(extract_page(HTML, URL, include=["text"])) == {
        *("title", "description", "h1", "canonical", "language", "text")
    }


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
        "<table>" * 20_000,
        "<a href=x>" * 50_000,
        "<li>" * 100_000,
    ],
    ids=["deep", "deeper", "deep-and-wide", "reopened", "attributes", "tables", "links", "unclosed"],
)
def test_pages_made_to_choke_a_parser_are_cut_in_time(html: str) -> None:
    began = time.process_time()
    page = extract_page("<title>found</title>" + html, URL)
    assert page["title"] == "found"
    assert time.process_time() - began < 10


def test_large_but_honest_pages_are_not_cut() -> None:
    row = "<tr><td><b>x</b><br><img src=a><td><a href=/p>y</a></tr>"
    html = "<table>" + row * 20_000 + "</table>"
    assert bounded(html) == html
    assert bounded("x" * (MAX_HTML + 5)) == "x" * MAX_HTML


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
    result = await builtin.run(fetch, {"url": URL, **given})
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
    ("content_type", "body", "text"),
    [
        ("text/plain", b"hello\0", "hello"),
        ("application/json", b'{"a": 1}', '{"a": 1}'),
        ("image/png", b"\x89PNG", None),
        ("", b"who knows", None),
    ],
)
async def test_builtin_page_of_what_is_not_html(content_type: str, body: bytes, text: str | None) -> None:
    result = await run(answer(body, content_type))
    assert (result["title"], result["links"], result["text"]) == (None, None, text)


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
        {"url": URL, "include": ["html"]},
        {"url": URL, "include": ["text", "text"]},
        {"url": URL, "extra": 1},
    ],
)
def test_inputs_that_do_not_fit(given: dict[str, object]) -> None:
    assert not jsonschema_rs.is_valid(BUILTINS["builtin/page"].scraper.input_schema, given)
