"""Selecting from a page: elements and their neighbours, XPath, the names of Scrapy, paths into JSON."""

from datetime import date
from decimal import Decimal

import pytest

from scrapeyard_sdk import Node, Page, parse_html

HTML = """<!doctype html><html><head><title> The  Shop </title><base href="/base/"></head><body>
<ul id="list"><li class="a">one <b>bold</b> end</li><!-- note --><li class="b">two</li><li>three</li></ul>
<p>para<p>graph
<table><tr><td>1<td>2</table>
<a href="next?p=2">Next</a> <a name="x">anchor</a>
<span class="price">1.299,00 €</span><time datetime="2024-05-01">May</time><i>1,234 sold</i>
</body></html>"""


@pytest.fixture
def page() -> Page:
    return Page(
        url="https://shop.example/dir/",
        status=200,
        body=HTML.encode(),
        headers=[("set-cookie", "sid=a=b; Path=/; HttpOnly"), ("set-cookie", 'lang="ko"'), ("set-cookie", "broken")],
    )


def test_what_a_page_says_of_itself(page: Page) -> None:
    assert page.title == "The Shop"
    assert parse_html("<p>x").title is None
    assert page.cookies == {"sid": "a=b", "lang": "ko"}
    assert page.encoding == "utf-8"


def test_an_element_knows_its_neighbours(page: Page) -> None:
    second = page.css_first("li.b")
    assert second is not None
    assert (second.previous and second.previous.text(), second.next and second.next.text()) == ("one bold end", "three")
    assert second.next is not None
    assert second.next.next is None
    assert second.parent == page.css_first("ul")
    assert [child.text() for child in page.css("ul")[0].children] == ["one bold end", "two", "three"]
    root = page.css_first("html")
    assert root is not None
    assert root.parent is None
    assert len({*page.css("li"), *page.css("ul > li")}) == 3


def test_attributes_by_get_and_brackets(page: Page) -> None:
    link = page.css("a")[0]
    assert link["href"] == link.get("href") == link.attrib["href"] == "next?p=2"
    assert link.get("rel", "none") == "none"
    assert link.get() == link.html == '<a href="next?p=2">Next</a>'
    with pytest.raises(KeyError, match="rel"):
        link["rel"]


def test_the_pseudo_elements_of_scrapy(page: Page) -> None:
    assert page.css("li.a::text").getall() == ["one ", " end"]
    assert page.css("li.a ::text").getall() == ["one ", "bold", " end"]
    assert page.css("a::attr(href)").get() == "next?p=2"
    assert page.css("a::attr(href)").getall() == ["next?p=2"]
    assert page.css(".none::text").get() is None
    assert page.css(".none::text").get("gone") == "gone"
    assert page.css("ul").css("b::text").getall() == ["bold"]
    assert page.css("li.b::text, b::text").getall() == ["two", "bold"]
    assert page.css('a[href*="::text"]').getall() == []
    assert page.css("b").get() == "<b>bold</b>"
    assert page.css("ul").attrib == {"id": "list"}
    assert page.text("a::attr(href)") == "next?p=2"
    assert "-".join(page.css("li::text")[2:]) == "two-three"  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a CSS selector"):
        page.css("li[::text")


def test_xpath_gives_the_elements_of_the_page(page: Page) -> None:
    items = page.xpath("//li")
    assert [item.text() for item in items] == ["one bold end", "two", "three"]
    assert items[1] == page.css_first("li.b")
    assert items[1].parent.attr("id") == "list"
    assert page.xpath("//a/@href").getall() == ["next?p=2"]
    assert page.xpath("//li[2]/text()").get() == "two"
    assert page.xpath("count(//td)") == 2
    assert page.xpath("boolean(//td)") is True
    assert page.xpath("string(//li[3])") == "three"
    assert page.css_first("table").xpath(".//td/text()").getall() == ["1", "2"]  # type: ignore[union-attr]
    assert page.css("ul").xpath("./li/@class").getall() == ["a", "b"]
    assert "data-" not in page.xpath("//ul")[0].html
    assert page.xpath("//@*[starts-with(name(), 'data')]") == []
    with pytest.raises(ValueError, match="not an XPath expression"):
        page.xpath("//li[")


def test_patterns(page: Page) -> None:
    assert page.re_first(r"next\?p=(\d)") == "2"
    assert page.re(r"<td>\d") == ["<td>1", "<td>2"]
    assert page.re_first("zzz", "none") == "none"
    assert page.css("li::text").re(r"t\w+") == ["two", "three"]
    assert page.css("b").re_first(r"<b>(.*)</b>") == "bold"
    assert page.xpath("//b/text()").re_first("o.*") == "old"


def test_numbers_prices_and_dates_of_elements(page: Page) -> None:
    price = page.css(".price")[0].price()
    assert (price.amount, price.currency) == (Decimal("1299.00"), "EUR")
    assert page.css("time")[0].date() == date(2024, 5, 1)
    assert page.css("i")[0].number() == 1234


def test_paths_into_json() -> None:
    body = b'{"a": {"b": [{"c": 1}, {"c": 2, "d.e": 3}]}, "none": null, "x.y": 4}'
    page = Page(url="https://x.example/", status=200, body=body)
    assert page.json("a.b[0].c") == page.json("a.b.0.c") == 1
    assert page.json("a.b[-1].c") == 2
    assert page.json('a.b[1]["d.e"]') == 3
    assert page.json("a.b[*].c") == [1, 2]
    assert page.json("x.y") == 4
    assert page.json("a.b[2].c", "gone") == page.json("a.z.c", "gone") == page.json("none.x", "gone") == "gone"
    assert page.json("none", "gone") is None
    with pytest.raises(ValueError, match="not a path"):
        page.json("a[")


def test_images_links_and_markdown(page: Page) -> None:
    html = '<h1>Tea</h1><p>Green <a href="/x">leaf</a></p><img src="a.png" alt="cup"><script>no()</script>'
    page = parse_html(html, "https://shop.example/dir/")
    assert page.images() == [{"url": "https://shop.example/dir/a.png", "alt": "cup"}]
    assert page.markdown(whole=True).startswith("# Tea\n\nGreen [leaf](https://shop.example/x)")
    assert page.text("h1") == "Tea"  # the page itself stays as it is
    assert page.urljoin("../y") == "https://shop.example/y"


def test_a_page_that_no_run_fetched_cannot_be_followed(page: Page) -> None:
    with pytest.raises(RuntimeError, match="not fetched by a run"):
        page.follow("/x")
    fetched = Page(
        url="https://shop.example/dir/", status=200, body=HTML.encode(), fetch=lambda url, **given: (url, given)
    )
    assert fetched.follow(fetched.css("a")[0], timeout=3) == ("https://shop.example/base/next?p=2", {"timeout": 3})
    assert fetched.follow("x") == ("https://shop.example/base/x", {})
    with pytest.raises(ValueError, match="neither href nor src"):
        fetched.follow(fetched.css("b")[0])


def test_a_node_is_true_and_a_selection_is_a_list(page: Page) -> None:
    assert all(isinstance(each, Node) for each in page.css("li"))
    assert page.css("li").texts() == page.texts("li")
    assert not page.css(".none")


def test_a_node_gives_the_text_of_what_is_inside_it(page: Page) -> None:
    first = page.css("li")[0]
    assert (first.text(), first.text("b"), first.text("i"), first.text("i", "none")) == (
        "one bold end",
        "bold",
        None,
        "none",
    )
