"""A page in the form that was asked for, and the request that fetches it."""

import json
from typing import Any

import pytest

from scrapeyard.builtin.pages.bounds import MAX_HTML
from scrapeyard.builtin.pages.port import MAX_TEXT, PARTS
from scrapeyard.builtin.services import Services
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.repository.manifest.json_schemas import InputChecker
from tests.page_builtins import BUILTINS

URL = "https://shop.example/dir/page"
PAGE = BUILTINS["builtin/page"]
HTML = """<!doctype html><html lang=en><head><title>Kilns</title><meta name=description content="All kilns">
<style>p {color: red}</style></head><body><nav><a href=/>Home</a></nav><main><h1>Kilns</h1>
<p onclick="spy()" style="color: red">Read <a href="../more#top">more</a> or <a href="javascript:spy()">this</a>.</p>
<img src=/pixel.gif width=1 height=1><img data-src=/kiln.png src="data:image/gif;base64,R0" alt=Kiln>
<div class=ad>Buy now</div><!-- a comment --><script>spy()</script></main>
<table><caption>Prices</caption><tr><th>Kiln<th>Price</tr><tr><td rowspan=2>Small|round<td>1</tr><tr><td>2</tr>
<tr><td colspan=2>sold out</tr></table></body></html>"""


async def scrape(html: str = HTML, **given: Any) -> tuple[dict[str, Any], FetchRequest]:
    asked: list[FetchRequest] = []

    async def fetch(request: FetchRequest) -> FetchResponse:
        asked.append(request)
        headers = (("content-type", "text/html"),)
        return FetchResponse(
            url=request.url, status=200, headers=headers, body=html.encode(), encoding="utf-8", elapsed_ms=1
        )

    assert faults(**given) == []
    return await PAGE.run(Services(fetch=fetch), {"url": URL, **given}), asked[0]


def faults(**given: Any) -> list[str]:
    found = InputChecker().errors(PAGE.scraper, {"url": URL, **given})
    return [f"{fault['path']}: {fault['message']}" for fault in found]


async def test_clean_html_has_no_scripts_and_no_tracking() -> None:
    page, _ = await scrape(formats=["html"])
    html = page["html"]
    for bad in ("spy", "style", "pixel", "comment", "javascript:", "data:"):
        assert bad not in html
    assert '<a href="https://shop.example/more#top">more</a>' in html
    assert '<img src="https://shop.example/kiln.png" alt="Kiln">' in html
    assert "Home" in html
    assert page["markdown"] is None


async def test_only_the_main_part() -> None:
    words = "<p>" + "The kiln was lit at dawn and the pots were glazed by noon. " * 9
    page, _ = await scrape(f"<nav>Menu</nav><article><h1>Kilns</h1>{words}</article>", formats=["html"], only_main=True)
    assert "Menu" not in page["html"]
    assert "lit at dawn" in page["html"]


async def test_raw_html_and_metadata() -> None:
    page, _ = await scrape(formats=["raw_html", "metadata"])
    assert page["raw_html"] == HTML
    assert (page["metadata"]["title"], page["metadata"]["description"]) == ("Kilns", "All kilns")


async def test_tables_as_data_and_as_markdown() -> None:
    page, _ = await scrape(formats=["tables"])
    (table,) = page["tables"]
    assert (table["caption"], table["header"]) == ("Prices", ["Kiln", "Price"])
    assert table["rows"] == [["Small|round", "1"], ["Small|round", "2"], ["sold out", "sold out"]]
    assert table["markdown"].splitlines()[:3] == ["| Kiln | Price |", "| --- | --- |", "| Small\\|round | 1 |"]


async def test_tags_choose_what_is_read() -> None:
    page, _ = await scrape(formats=["markdown", "links", "text"], include_tags=["main"], exclude_tags=[".ad", "h1"])
    assert page["links"] == ["https://shop.example/more"]
    assert page["text"] == "Read more or this."
    assert "Buy now" not in page["markdown"]
    assert page["title"] == "Kilns"
    page, _ = await scrape(formats=["text"], include_tags=["tr"])
    assert page["text"].splitlines()[:2] == ["Kiln", "Price"]
    page, _ = await scrape(formats=["text"], include_tags=[".none"])
    assert (page["text"], page["warnings"]) == ("", ["include_tags: '.none' matches nothing"])


async def test_what_is_cut_is_told() -> None:
    page, _ = await scrape(f"<p>{'x' * MAX_HTML}", formats=["raw_html", "text"])
    assert len(page["raw_html"]) == len(page["text"]) == MAX_TEXT
    assert page["warnings"][0] == "the page is read up to character 5,000,000 of 5,000,003"
    assert [warning.partition(" ")[0] for warning in page["warnings"][1:]] == ["raw_html", "text"]


async def test_the_old_names_still_work() -> None:
    page, _ = await scrape(include=["text"], main_only=False)
    assert page["text"].startswith("Home")
    assert page["markdown"] is None


async def test_a_request_with_headers_cookies_and_a_body() -> None:
    _, request = await scrape(
        headers={"X-Shop": "1"}, cookies={"a": "1", "b": "2 3"}, body={"form": {"q": "ä", "n": 1}}
    )
    assert (request.method, request.body) == ("POST", b"q=%C3%A4&n=1")
    assert request.headers == {
        "X-Shop": "1",
        "Cookie": "a=1; b=2 3",
        "content-type": "application/x-www-form-urlencoded",
    }
    _, request = await scrape(method="PUT", body={"json": {"q": True}})
    assert (request.method, json.loads(request.body)) == ("PUT", {"q": True})
    _, request = await scrape(body="as it is")
    assert (request.method, request.body, request.headers) == ("POST", b"as it is", {})
    _, request = await scrape()
    assert request == FetchRequest(url=URL)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"formats": ["pdf"]}, f'/formats/0: "pdf" is not one of {", ".join(PARTS)}'),
        ({"formats": ["text"], "include": ["text"]}, "/formats: does not go with the other fields that are given"),
        ({"exclude_tags": ["h1["]}, '/exclude_tags/0: "h1[" is not a "css-selector"'),
        ({"include_tags": ["h1"] * 51}, "/include_tags: "),
        ({"include_tags": ["a" * 501]}, "/include_tags/0: "),
        ({"headers": {"Host": "other.example"}}, '/headers: "Host" is not a "request-header"'),
        ({"headers": {"Content-Length": "1"}}, '/headers: "Content-Length" is not a "request-header"'),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, "/headers/X-A: "),
        ({"cookies": {"a": "1; b=2"}}, "/cookies/a: "),
        ({"cookies": {"a=b": "1"}}, "/cookies: "),
        ({"method": "TRACE"}, '/method: "TRACE" is not one of GET, '),
        ({"body": {"json": 1, "form": {}}}, "/body: "),
        ({"body": {"q": 1}}, "/body: "),
        ({"body": 7}, "/body: "),
    ],
)
def test_what_is_refused_at_the_door(given: dict[str, Any], told: str) -> None:
    found = faults(**given)
    assert found
    assert found[0].startswith(told)


async def test_headers_are_told_on_request_without_the_values_of_cookies() -> None:
    headers = (("Content-Type", "text/html"), ("Set-Cookie", "sid=hush; Path=/"), ("Set-Cookie", "odd"), ("x-a", "1"))

    async def fetch(request: FetchRequest) -> FetchResponse:
        return FetchResponse(url=request.url, status=200, headers=headers, body=b"", encoding="utf-8", elapsed_ms=1)

    found = await PAGE.run(Services(fetch=fetch), {"url": URL, "formats": ["headers"]})
    told = [(each["name"], each["value"]) for each in found["headers"]]
    assert told == [
        ("Content-Type", "text/html"),
        ("Set-Cookie", "sid=***; Path=/"),
        ("Set-Cookie", "odd=***"),
        ("x-a", "1"),
    ]
    assert "headers" not in await PAGE.run(Services(fetch=fetch), {"url": URL})
