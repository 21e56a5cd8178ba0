"""Scrapers as classes, and the functions that read HTML."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scrapeyard_sdk import (
    BaseHttpScraper,
    BaseScraper,
    CheckFailed,
    FetchError,
    Page,
    ScraperError,
    extract_text,
    parse_html,
    registry,
    select_one,
)
from scrapeyard_sdk.base import InputRefused
from scrapeyard_sdk.child.explain import explain
from scrapeyard_sdk.registry import ATTRIBUTE
from scrapeyard_sdk.script import Script, load

HTML = '<main><h1> Parcel <b>7</b></h1><p class="status">taxable</p><a href="/parcel/8">next</a></main>'


def script(folder: Path, source: str) -> Script:
    (folder / "scraper.py").write_text(f"from scrapeyard_sdk import *\nclass Case(BaseScraper):\n{source}")
    return load(str(folder), "scraper.py:Case")


def context(**given: Any) -> Any:
    return SimpleNamespace(input=given, config={"fee": 2})


def test_html_is_parsed_from_text_bytes_and_pages() -> None:
    for html in (HTML, HTML.encode(), Page(url="", status=200, body=HTML.encode())):
        page = parse_html(html)
        assert extract_text(page, "h1") == "Parcel 7"
        assert extract_text(select_one(page, "main"), ".status") == "taxable"
        assert extract_text(select_one(page, ".status")) == "taxable"
    assert parse_html(HTML, "http://county.example/p/7").links() == ["http://county.example/parcel/8"]


def test_what_is_not_there_is_none_or_the_default() -> None:
    page = parse_html(HTML)
    assert select_one(page, ".owner") is None
    assert extract_text(page, ".owner") is None
    assert extract_text(select_one(page, ".owner"), "b", "unknown") == "unknown"
    with pytest.raises(CheckFailed, match=r"\.owner"):
        select_one(page, ".owner", required=True)


@pytest.mark.parametrize(
    ("error_type", "reason", "retryable"),
    [
        ("retryable", "retry", True),
        ("non_retryable", "failed", False),
        ("NON-RETRYABLE", "failed", False),
        ("blocked", "blocked", False),
        ("invalid_input", "bad_input", False),
    ],
)
def test_the_type_of_an_error_says_how_the_run_ends(error_type: str, reason: str, retryable: bool) -> None:
    error = ScraperError("no luck", error_type, after=3, parcel="7")
    told = explain(error)
    assert (told["reason"], told["message"], error.retryable) == (reason, "no luck", retryable)
    assert told["details"] == {"error_type": error.error_type, "parcel": "7"}
    assert told["after"] == 3


def test_an_unknown_type_of_error_is_named() -> None:
    with pytest.raises(ValueError, match="'temporary' is unknown; write one of retryable, non_retryable"):
        ScraperError("no luck", "temporary")


@pytest.mark.parametrize(
    ("source", "kind", "result"),
    [
        ("    def scrape(self, input): return input, self.config", "sync", ({"a": 1, "b": 2}, {"fee": 2})),
        ("    def scrape(self, a, b=5): return a, b", "sync", (1, 2)),
        ("    def scrape(self, **fields): return fields", "sync", {"a": 1, "b": 2}),
        ("    def scrape(self): return self.ctx.input", "sync", {"a": 1, "b": 2}),
    ],
)
def test_how_a_method_gets_its_input(tmp_path: Path, source: str, kind: str, result: Any) -> None:
    loaded, ctx = script(tmp_path, source), context(a=1, b=2)
    assert loaded.kind == kind
    if loaded.takes_input:
        bound = loaded.signature.bind(ctx, **ctx.input)
        assert loaded.function(*bound.args, **bound.kwargs) == result
    else:
        assert loaded.function(ctx) == result


def test_methods_may_be_of_every_kind(tmp_path: Path) -> None:
    kinds = {
        "    async def scrape(self, input): return 1": "async",
        "    async def scrape(self, input): yield 1": "async_generator",
        "    def scrape(self, input): yield 1": "generator",
    }
    assert [script(tmp_path, source).kind for source in kinds] == list(kinds.values())


@pytest.mark.parametrize(
    "check", ["return False", "raise ValueError('no parcel')", "assert 'id' in input", "input['id']"]
)
def test_an_input_may_be_refused(tmp_path: Path, check: str) -> None:
    source = f"    def validate_input(self, input):\n        {check}\n    def scrape(self, input): return 1"
    with pytest.raises(InputRefused) as refused:
        script(tmp_path, source).function(context(a=1))
    assert explain(refused.value)["reason"] == "bad_input"


def test_each_run_has_an_object_of_its_own(tmp_path: Path) -> None:
    loaded = script(
        tmp_path, "    seen = 0\n    def scrape(self, input):\n        self.seen += 1\n        return self.seen"
    )
    assert [loaded.function(context()) for _ in range(3)] == [1, 1, 1]


def test_the_class_validates_or_else_the_module(tmp_path: Path) -> None:
    scrape = "    def scrape(self, input): return 1\n"
    assert script(tmp_path, scrape).validate is None
    module = scrape + "def validate_result(result): return 'module'"
    own = "    def validate_result(self, result): return self.ctx.input['a'] + result\n"
    for source, result in ((module, "module"), (own + module, 3)):
        loaded = script(tmp_path, source)
        loaded.function(context(a=2))
        assert loaded.validate is not None
        assert loaded.validate(1) == result


class Getter(BaseHttpScraper):
    """Gets one page."""


def test_get_wants_a_good_page_and_fetch_takes_any() -> None:
    getter, asked = Getter(), []

    def fetch(url: str, **options: Any) -> Page:
        asked.append(options)
        return Page(url=url, status=404)

    getter.ctx = SimpleNamespace(fetch=fetch)
    assert getter.fetch("http://county.example/").status == 404
    for ask in (getter.get, getter.post):
        with pytest.raises(FetchError) as failed:
            ask("http://county.example/")
        assert failed.value.site_status == 404
    assert asked == [{}, {}, {"method": "POST"}]


async def test_get_can_be_awaited() -> None:
    getter = Getter()

    async def fetch(url: str, **_: Any) -> Page:
        return Page(url=url, status=200 if url.endswith("good") else 500)

    getter.ctx = SimpleNamespace(fetch=fetch)
    assert (await getter.get("http://county.example/good")).ok
    with pytest.raises(FetchError):
        await getter.get("http://county.example/bad")


def test_an_id_without_a_task_gets_one() -> None:
    ids = {
        getattr(registry.register(name, version="1.0.0", **more)(type("Case", (), {})), ATTRIBUTE)["id"]
        for name, more in (("county-az", {}), ("county-az", {"task": "parcel"}), ("county/parcels", {}))
    }
    assert ids == {"county-az/scrape", "county-az/parcel", "county/parcels"}


def test_a_scraper_without_a_method_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Getter has no method scrape"):
        Getter().scrape()
    assert issubclass(Getter, BaseScraper)
