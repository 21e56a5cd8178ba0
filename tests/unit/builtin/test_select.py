"""Fields of a page without a script."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapeyard.builtin.pages.port import MAX_TEXT, RawPage
from scrapeyard.builtin.pages.select import MAX_MATCHES, MAX_WARNINGS
from scrapeyard.builtin.reading.raw import read_raw
from scrapeyard.builtin.services import Services
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.repository.manifest.json_schemas import InputChecker
from tests.page_builtins import BUILTINS

URL = "https://shop.example/dir/page"
SELECT = BUILTINS["builtin/select"]
HTML = """<!doctype html><html lang=en><body><h1 class=t>Kiln <b>one</b></h1><p class=price>Was $120.00 Now $60.00</p>
<span class=count>1,234 sold</span><span class=weight>1.234 kg</span><time datetime=2024-05-01T10:00:00Z>May</time>
<span class=day>03/04/2024</span><a class=more href="../more">More</a><input type=checkbox checked>
<span class=stock>yes</span><script id=data type=application/json>{"sku": [1, 2]}</script><i class=empty></i>
<ul><li>a</li><li>b</li></ul>
<div class=review><b>Ann</b><i>5</i></div><div class=review><b>Bob</b><i>n/a</i></div><div class=review><i>3</i></div>
<table><tr><td>x</td><td>1</td></tr><tr><td>y</td><td>2</td></tr></table></body></html>"""


def read(fields: dict[str, Any], html: str = HTML) -> tuple[Any, list[str]]:
    assert faults(fields) == []
    found = read_raw(RawPage(url=URL, body=html.encode(), encoding="utf-8", fields=fields))
    return found["fields"], found["warnings"]


def value(rule: Any, html: str = HTML) -> Any:
    found, warnings = read({"it": rule}, html)
    assert warnings == []
    return found["it"]


def faults(fields: Any) -> list[str]:
    found = InputChecker().errors(SELECT.scraper, {"url": URL, "fields": fields})
    return [f"{fault['path']}: {fault['message']}" for fault in found]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("h1", "Kiln one"),
        ("h1::text", "Kiln"),
        ("a.more@href", "../more"),
        ("a.more::attr(href)", "../more"),
        ({"css": "a.more", "attr": "href"}, "../more"),
        ("//h1/b", "one"),
        ("//h1/b/text()", "one"),
        ({"xpath": "count(//li)", "as": "number"}, 2),
        ({"css": ".price", "as": "price"}, {"amount": 60.0, "currency": "USD"}),
        ({"css": ".count", "as": "number"}, 1234),
        ({"css": ".weight", "as": "number"}, 1.234),
        ({"css": "time", "as": "date"}, "2024-05-01T10:00:00+00:00"),
        ({"css": ".day", "as": "date", "order": "dmy"}, "2024-04-03"),
        ({"css": "a.more", "as": "url"}, "https://shop.example/more"),
        ({"css": "input", "attr": "checked", "as": "bool"}, True),
        ({"css": ".stock", "as": "bool"}, True),
        ({"css": "h1", "as": "html"}, '<h1 class="t">Kiln <b>one</b></h1>'),
        ({"css": "h1", "as": "markdown"}, "# Kiln **one**"),
        ({"css": "#data", "as": "json"}, {"sku": [1, 2]}),
        ({"css": ".price", "regex": r"Now \$([\d.]+)", "as": "number"}, 60),
        ({"css": "li", "list": True}, ["a", "b"]),
        ({"css": ".none", "default": "n/a"}, "n/a"),
        (
            {"each": "tr", "fields": {"k": "td", "v": {"xpath": "td[2]", "as": "number"}}},
            [{"k": "x", "v": 1}, {"k": "y", "v": 2}],
        ),
        ({"each": "//tr", "fields": {"v": {"css": "td:nth-child(2)", "as": "number"}}}, [{"v": 1}, {"v": 2}]),
    ],
)
def test_a_field(rule: Any, expected: Any) -> None:
    assert value(rule) == expected


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (".none", "it: nothing found"),
        ("//none", "it: nothing found"),
        ({"css": "a.more", "attr": "title"}, "it: nothing found"),
        (".empty", "it: found, but without text"),
        ({"css": "h1", "as": "number"}, "it: 'Kiln one' is not a number"),
        ({"css": "h1", "as": "price"}, "it: 'Kiln one' is not a price"),
        ({"css": ".day", "as": "date"}, "it: '03/04/2024' is not a date; if day and month are in doubt"),
        ({"css": "h1", "as": "bool"}, "it: 'Kiln one' is not a boolean"),
        ({"css": "h1", "as": "url"}, "it: 'Kiln one' is not a URL"),
        ({"css": "h1", "as": "json"}, "it: 'Kiln one' is not a JSON document"),
        ({"css": "h1", "regex": "x(.)"}, "it: the regular expression matches nothing"),
        ({"xpath": "//h1[nope()]"}, "it: the XPath expression cannot be evaluated"),
    ],
)
def test_what_is_not_there_or_not_of_its_type_is_null_and_told(rule: Any, told: str) -> None:
    found, warnings = read({"it": rule})
    assert found == {"it": None}
    assert len(warnings) == 1
    assert warnings[0].startswith(told)


def test_the_language_decides_what_a_separator_means_and_nothing_is_guessed() -> None:
    rule = {"css": "p", "as": "number"}
    assert value(rule, "<html lang=de-AT><p>1.234") == 1234
    assert value(rule, "<html lang=de><p>1,234") == 1.234
    assert value({**rule, "decimal": "."}, "<p>1.234") == 1.234
    found, warnings = read({"it": rule}, "<p>1.234")
    assert found == {"it": None}
    assert "may be two numbers" in warnings[0]


@pytest.mark.parametrize(
    ("xpath", "expected"),
    [
        ("//a/@href", ["/1", "/3"]),
        ("(//a)[last()]/@href", ["/2", "/3"]),
        ("count(//a)", ["2", "1"]),
        ("/li/b", ["One", "Three"]),
        ("//li/b", ["One", "Three"]),
        ("..", [None, None]),
        ("ancestor::*", [None, None]),
        ("normalize-space(/)", ["One 1 2", "Three 3"]),
        ("//a[../b]", ["1", "3"]),
    ],
)
def test_xpath_stays_inside_its_record(xpath: str, expected: list[str | None]) -> None:
    html = """<ul><li><b>One</b> <a href=/1>1</a> <a href=/2>2</a></li> between
    <li><b>Three</b> <a href=/3>3</a></li></ul><a href=/4>4</a>"""
    for each in ("li", "//li"):
        found, _ = read({"rows": {"each": each, "fields": {"it": {"xpath": xpath}}}}, html)
        assert [record["it"] for record in found["rows"]] == expected
    found, _ = read({"rows": {"each": "li", "fields": {"all": {"xpath": "//text()", "list": True}}}}, html)
    assert not any("between" in text for record in found["rows"] for text in record["all"])


def test_xpath_finds_elements_in_their_place_in_the_page() -> None:
    html = "<table><tr><td>a<td>1<tr><td>b<td>2</table>"
    rule = {"each": "//tr", "fields": {"cells": {"each": "//td", "fields": {"text": "::text", "html": {"as": "html"}}}}}
    assert value(rule, html)[1]["cells"] == [{"text": "b", "html": "<td>b</td>"}, {"text": "2", "html": "<td>2</td>"}]


def test_records_in_a_page() -> None:
    rule = {"each": ".review", "fields": {"who": {"css": "b", "required": True}, "stars": {"css": "i", "as": "number"}}}
    found, warnings = read({"reviews": rule})
    assert found == {"reviews": [{"who": "Ann", "stars": 5}, {"who": "Bob", "stars": None}]}
    assert warnings == [
        "reviews.stars: 'n/a' is not a number",
        "reviews.who: nothing found",
        "reviews.who: required, and not found: that record is left out",
    ]


def test_bounds_on_matches_warnings_and_size() -> None:
    found, warnings = read({"it": {"css": "p", "list": True}}, "<p>x" * (MAX_MATCHES + 1))
    assert len(found["it"]) == MAX_MATCHES
    assert warnings == [f"it: only the first {MAX_MATCHES:,} of {MAX_MATCHES + 1:,} matches are taken"]
    rule = {"css": "p", "list": True, "as": "number", "default": 7}
    found, warnings = read({"it": rule}, "".join(f"<p>{chr(1000 + n)}" for n in range(500)))
    assert (found["it"], len(warnings)) == (7, MAX_WARNINGS + 1)
    found, warnings = read({"it": {"css": "div", "list": True}}, f"<div>{'x' * 300_000}</div>" * 5)
    assert sum(map(len, found["it"])) <= MAX_TEXT
    assert "more than 1,000,000 characters" in warnings[0]


def test_a_slow_expression_is_given_up() -> None:
    found, warnings = read({"it": {"css": "p", "regex": "(a+)+$"}}, f"<p>{'a' * 5000}b")
    assert found == {"it": None}
    assert warnings == ["it: the regular expression takes too long; make it simpler"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, "/fields: "),
        ({"it": "h1["}, '/fields/it: "h1[" is not a "selector"'),
        ({"it": "//h1["}, '/fields/it: "//h1[" is not a "selector"'),
        ({"it": {"css": "h1["}}, '/fields/it/css: "h1[" is not a "css-selector"'),
        ({"it": {"xpath": "//["}}, '/fields/it/xpath: "//[" is not a "xpath"'),
        ({"it": {"regex": "("}}, '/fields/it/regex: "(" is not a "python-regex"'),
        ({"it": {"css": "p", "as": "money"}}, '/fields/it/as: "money" is not one of text, number, '),
        ({"it": {"css": "p", "xpath": "//p"}}, "/fields/it/xpath: does not go with"),
        ({"it": {"each": "p"}}, '/fields/it: "fields" is a required property'),
        ({"it": {"each": "p", "fields": {"x": "b["}}}, "/fields/it/fields/x: "),
        ({"it": {"csss": "p"}}, "/fields/it: "),
        ({"it": 7}, "/fields/it: "),
        ({"warnings": "p"}, "/fields: "),
        ({f"f{n}": "p" for n in range(101)}, "/fields: "),
        ({"it": "p" * 501}, "/fields/it: "),
    ],
)
def test_what_is_refused_at_the_door(fields: Any, path: str) -> None:
    found = faults(fields)
    assert found
    assert found[0].startswith(path)


def test_records_nest_only_so_deep() -> None:
    fields: dict[str, Any] = {"x": "b"}
    for _ in range(3):
        fields = {"it": {"each": "p", "fields": fields}}
    assert faults(fields) == []
    assert faults({"it": {"each": "p", "fields": fields}})


async def run(fields: dict[str, Any], body: bytes = HTML.encode(), media: str = "text/html") -> dict[str, Any]:
    async def fetch(request: FetchRequest) -> FetchResponse:
        headers = (("content-type", media),)
        return FetchResponse(url=request.url, status=200, headers=headers, body=body, encoding="utf-8", elapsed_ms=1)

    return await SELECT.run(Services(fetch=fetch), {"url": URL, "fields": fields})


async def test_the_result_is_the_fields() -> None:
    assert await run({"title": "h1", "none": ".none"}) == {
        "url": URL,
        "status": 200,
        "title": "Kiln one",
        "none": None,
        "warnings": ["none: nothing found"],
    }


async def test_a_required_field_that_is_missing_fails_the_run() -> None:
    with pytest.raises(FetchFailed, match="price: required, and not found") as failed:
        await run({"price": {"css": ".none", "required": True}})
    assert failed.value.reason is ExitReason.BAD_RESULT


@pytest.mark.parametrize(("media", "body"), [("application/json", b"{}"), ("image/png", b"\x89PNG")])
async def test_a_page_that_is_not_html_has_no_fields(media: str, body: bytes) -> None:
    result = await run({"title": "h1"}, body, media)
    assert result["title"] is None
    assert "not HTML" in result["warnings"][0]


RULES = st.fixed_dictionaries(
    {"css": st.sampled_from(["p", "*", "a@href", "", "td", "h1::text"])},
    optional={
        "as": st.sampled_from(["text", "number", "price", "date", "url", "bool", "html", "markdown", "json"]),
        "list": st.booleans(),
        "regex": st.sampled_from(["a", "(a*)*b", r"\d+"]),
    },
)


@settings(max_examples=60, deadline=None)
@given(html=st.text(alphabet="<>/ ptdahre='\"1.,€b&;", max_size=300), rule=RULES)
def test_any_page_is_read_without_a_fault(html: str, rule: dict[str, Any]) -> None:
    found = read_raw(RawPage(url=URL, body=html.encode(), encoding="utf-8", fields={"it": rule, "x": "//p"}))
    assert set(found["fields"]) == {"it", "x"}
    assert (found["fields"]["it"] in (None, [])) <= bool(found["warnings"])
