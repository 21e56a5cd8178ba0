"""The page a script is given, and the checks it may make."""

import subprocess
import sys

import pytest

from scrapeyard_sdk.checks import CheckFailed, assert_fields_present, assert_html_contains
from scrapeyard_sdk.outcomes import FetchError
from scrapeyard_sdk.page import Headers, Page

HTML = """
<html><head><title>Shop &amp; Co</title><base href="/base/"><style>p { color: red }</style></head>
<body><h1>  Blue
  <b>te</b>apot </h1>
<p class="price" data-cents="1250">12,50&nbsp;€</p>
<ul><li>one</li><li>two <i>and a half</i></li><li></li></ul>
<a href="a?x=1#top">A</a><a href="/b">B</a><a href="/b#again">B</a><a href="#here">here</a>
<a href="mailto:x@y.example">mail</a><a href="http://[bad">bad</a><a>none</a><input disabled>
<script>var hidden = 1</script></body></html>
"""


@pytest.fixture
def page() -> Page:
    return Page(
        url="https://shop.example/dir/page",
        status=200,
        headers=[["Content-Type", "text/html"], ["Set-Cookie", "a=1"], ["set-cookie", "b=2"]],
        body=HTML.encode(),
        encoding="utf-8",
        elapsed_ms=12.5,
        redirects=["https://shop.example/"],
    )


def test_loading_the_sdk_needs_the_standard_library_alone() -> None:
    code = (
        "import sys; import scrapeyard_sdk.page, scrapeyard_sdk.checks; "
        "print([m for m in ('selectolax', 'lxml', 'msgspec', 'scrapeyard') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_the_site_answered(page: Page) -> None:
    assert (page.status, page.ok, page.elapsed_ms, page.redirects) == (200, True, 12.5, ("https://shop.example/",))
    assert page.headers["content-TYPE"] == "text/html"
    assert page.headers.get("missing") is None
    assert "SET-COOKIE" in page.headers
    assert page.headers["set-cookie"] == "a=1, b=2"
    assert page.headers.get_all("Set-Cookie") == ["a=1", "b=2"]
    assert dict(Headers({"A": "1"})) == {"a": "1"}
    assert repr(page) == "<Page 200 https://shop.example/dir/page>"


def test_text_of_the_first_match(page: Page) -> None:
    assert page.text("h1") == "Blue teapot"
    assert page.text(".price") == "12,50 €"
    assert page.text("title") == "Shop & Co"
    assert page.text("ul") == "one two and a half"
    assert page.text(".missing") is None
    assert page.text(".missing", "") == ""
    assert page.text("li:nth-child(3)", "default") == ""


def test_texts_and_the_whole_text(page: Page) -> None:
    assert page.texts("li") == ["one", "two and a half", ""]
    assert page.texts(".missing") == []
    text = page.text()
    assert text is not None
    assert text.splitlines()[:4] == ["Blue teapot", "12,50 €", "one", "two and a half"]
    assert "hidden" not in text
    assert "color" not in text
    assert page.text("script") == "var hidden = 1"


def test_nodes(page: Page) -> None:
    node = page.css_first("ul")
    assert node
    assert [item.text() for item in node.css("li")] == ["one", "two and a half", ""]
    inner = node.css_first("i")
    assert inner is not None
    assert (inner.tag, inner.html) == ("i", "<i>and a half</i>")
    assert node.css_first("b") is None
    assert page.css_first(".missing") is None
    assert page.css(".missing") == []
    price = page.css_first(".price")
    assert price is not None
    assert price.attrs == {"class": "price", "data-cents": "1250"}


def test_attributes(page: Page) -> None:
    assert page.attr(".price", "data-cents") == "1250"
    assert page.attr(".price", "missing") is None
    assert page.attr(".price", "missing", "x") == "x"
    assert page.attr(".missing", "class", "x") == "x"
    assert page.attr("input", "disabled") == ""
    assert page.attrs("a", "href")[:2] == ["a?x=1#top", "/b"]
    assert page.attrs(".missing", "href") == []


def test_links_are_absolute_and_come_once(page: Page) -> None:
    assert page.links() == ["https://shop.example/base/a?x=1", "https://shop.example/b"]
    assert page.links("a[href^='/']") == ["https://shop.example/b"]
    assert page.url_join("x") == "https://shop.example/base/x"


def test_a_selector_that_is_none(page: Page) -> None:
    for wrong in (lambda: page.css("[["), lambda: page.text("[[")):
        with pytest.raises(ValueError, match="not a CSS selector"):
            wrong()


def test_parsing_happens_once(page: Page) -> None:
    page.text("h1")
    first = page._parsed()
    page.css("a")
    assert page._parsed() is first


def test_xpath(page: Page) -> None:
    assert page.xpath("//li/text()")[0] == "one"
    assert Page(url="http://x.example/", status=200).xpath("//p") == []
    declared = '<?xml version="1.0" encoding="euc-kr"?><p>가격</p>'
    assert Page(url="http://x.example/", status=200, body=declared.encode()).xpath("string(//p)") == "가격"


@pytest.mark.parametrize(("module", "call"), [("lxml.html", "xpath"), ("selectolax.lexbor", "css")])
def test_a_missing_library_says_what_to_do(page: Page, monkeypatch: pytest.MonkeyPatch, module: str, call: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RuntimeError, match="has not installed"):
        getattr(page, call)("a")


def test_json() -> None:
    assert Page(url="http://x.example/", status=200, body='{"a": "é"}'.encode()).json() == {"a": "é"}
    assert Page(url="http://x.example/", status=200, body=b'\xef\xbb\xbf{"a": 1}').json() == {"a": 1}
    for body in (b"<html>", b"", b"[" * 200_000):
        with pytest.raises(ValueError, match=r".+"):
            Page(url="http://x.example/", status=200, body=body).json()


def test_charset() -> None:
    assert (
        Page(url="http://x.example/", status=200, body="<p>가격".encode("cp949"), encoding="cp949").text("p") == "가격"
    )
    assert Page(url="http://x.example/", status=200, body=b"<p>\xff", encoding="utf-8").text("p") == "\ufffd"


def test_raise_for_status(page: Page) -> None:
    assert page.raise_for_status() is page
    with pytest.raises(FetchError) as failure:
        Page(url="http://x.example/", status=503).raise_for_status()
    assert (failure.value.reason, failure.value.site_status) == ("fetch_status", 503)
    assert not Page(url="http://x.example/", status=304).ok
    Page(url="http://x.example/", status=304).raise_for_status()


@pytest.mark.parametrize("body", [b"", b"\0", b"\xff\xfe\0<", b"plain text", b"<", b"<!doctype", b"<div>" * 2000])
def test_any_bytes_are_a_page(body: bytes) -> None:
    page = Page(url="http://x.example/", status=200, body=body)
    assert page.text("h1") is None
    assert isinstance(page.text(), str)
    assert page.links() == []


def test_html_contains(page: Page) -> None:
    assert_html_contains(page, "teapot</h1>".replace("teapot", "apot "), "data-cents")
    assert_html_contains("<p>x</p>", "x")
    with pytest.raises(
        CheckFailed, match=r"https://shop\.example/dir/page does not contain 'captcha', 'login'"
    ) as failure:
        assert_html_contains(page, "data-cents", "captcha", "login")
    assert failure.value.missing == ("captcha", "login")
    assert isinstance(failure.value, AssertionError)


@pytest.mark.parametrize(
    ("field", "present"),
    [
        ("title", True),
        ("price.amount", True),
        ("price.currency", False),
        ("offers.0.sku", True),
        ("offers.1.sku", False),
        ("offers.x", False),
        ("zero", True),
        ("false", True),
        ("none", False),
        ("blank", False),
        ("empty_list", False),
        ("empty_map", False),
        ("missing", False),
        ("title.deeper", False),
        ("dotted.key", True),
    ],
)
def test_fields_present(field: str, present: bool) -> None:
    record = {
        "title": "x",
        "price": {"amount": 1, "currency": ""},
        "offers": [{"sku": "a"}],
        "zero": 0,
        "false": False,
        "none": None,
        "blank": " \n",
        "empty_list": [],
        "empty_map": {},
        "dotted.key": 1,
    }
    if present:
        assert_fields_present(record, field)
        return
    with pytest.raises(CheckFailed) as failure:
        assert_fields_present(record, "title", field)
    assert failure.value.missing == (field,)
    assert field in str(failure.value)
