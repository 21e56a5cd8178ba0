"""The parts of a page that are text or images, and a part that cannot be read."""

from typing import Any

import pytest

from scrapeyard.builtin.pages import page
from scrapeyard.builtin.pages.page import extract_page
from scrapeyard.builtin.pages.port import RawPage
from scrapeyard.builtin.reading import frames
from scrapeyard.builtin.reading.serving import answer
from scrapeyard.builtin.services import Services
from scrapeyard.engines.port import FetchRequest, FetchResponse
from tests.page_builtins import BUILTINS

URL = "https://shop.example/"
WORDS = "The kiln was lit at dawn, and the pots were glazed by noon, as they had been for many years. "


def text_of(html: str) -> str:
    found: str = extract_page(html, URL, include=["text"])["text"]
    return found


def test_links_side_by_side_stand_apart_and_letters_do_not() -> None:
    assert text_of("<a href=/a>Lighting</a><a href=/b>Kitchen</a><button>Go</button>") == "Lighting Kitchen Go"
    assert text_of("J<b>o</b>hn <a href=/>P</a>ot") == "John Pot"


def test_formatted_text_keeps_its_lines() -> None:
    html = "<p>a\n b</p><pre>def f():\n    return <b>1</b>\n\nf()</pre><p>c\nd</p>"
    assert text_of(html).splitlines() == ["a b", "def f():", "    return 1", "f()", "c d"]


def test_what_a_style_hides_is_not_seen_unless_it_is_the_page() -> None:
    assert text_of(f"<p>{WORDS}</p><p style='color:red; display: none'>secret</p>") == WORDS.strip()
    assert text_of(f"<div style='display:none'><p>{WORDS}</p></div>") == WORDS.strip()


def test_images_that_load_late() -> None:
    html = """<img src="data:image/gif;base64,R0" data-src=/a.png><img srcset="/b.png 400w, /c.png 800w">
    <img data-srcset="/d.png 2x, /e.png"><img src=/f.png srcset="/g.png 2x"><img src="data:image/gif;base64,R0">"""
    found = [image["url"] for image in extract_page(html, URL, include=["images"])["images"]]
    assert found == [f"https://shop.example/{name}.png" for name in "acdf"]


@pytest.mark.parametrize("doctype", ['<!DOCTYPE html SYSTEM "about:legacy-compat">', "<!DOCTYPE html PUBLIC>"])
def test_an_article_under_any_doctype(doctype: str) -> None:
    found = extract_page(f"{doctype}<article><h1>Kilns</h1><p>{WORDS * 9}</p></article>", URL, include=["article"])
    assert "lit at dawn" in found["article"]["text"]
    assert found["warnings"] == []


@pytest.fixture
def broken_article(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("no such node")

    monkeypatch.setattr(page, "read_article", fail)


@pytest.mark.usefixtures("broken_article")
async def test_a_part_that_fails_costs_only_itself() -> None:
    body = b"<title>Kilns</title><p>Pots"
    headers = (("content-type", "text/html"),)

    async def fetch(request: FetchRequest) -> FetchResponse:
        return FetchResponse(url=request.url, status=200, headers=headers, body=body, encoding="utf-8", elapsed_ms=1)

    found = await BUILTINS["builtin/page"].run(
        Services(fetch=fetch), {"url": URL, "include": ["article", "text", "markdown"]}
    )
    assert (found["title"], found["text"], found["markdown"], found["article"]) == ("Kilns", "Pots", "Pots", None)
    assert found["warnings"] == ["article could not be read: KeyError: 'no such node'"]


def test_a_page_that_fails_is_answered_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: RawPage) -> dict[str, Any]:
        raise ValueError("odd page")

    monkeypatch.setattr("scrapeyard.builtin.reading.serving.read_raw", fail)
    frame = answer(RawPage(url=URL, body=b"", encoding="utf-8"))
    assert frame == frames.FRAMING.pack(frames.FAULT, b"ValueError: odd page")
