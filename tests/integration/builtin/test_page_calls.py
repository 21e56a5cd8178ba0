"""What a call may say of its page beside `url`: over HTTP, in calls, jobs and schedules."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from tests.integration.cli_stand import Stand
from tests.leaks import PATIENCE
from tests.sites.site import Site, page
from tests.unit.builtin.made_documents import pdf

HTML = b"<html lang=en><title>Kilns</title><h1>Kilns</h1><p class=price>12.50 EUR</p><p class=ad>Buy</p>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    stand = Stand(tmp_path_factory.mktemp("calls"))
    up = ("up", "--port", "0", "--data-dir", "data", "--allow-private")
    with stand.serving(*up, says=b"listens on ") as url:
        yield url


@pytest.fixture
async def api(server: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server, timeout=PATIENCE) as client:
        yield client


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    html = page(HTML, content_type="text/html")
    paper = page(pdf([["Kilns of 2024"]]), content_type="application/octet-stream")
    async with Site(otherwise=html, routes={"/paper": paper}) as site:
        yield site


async def scrape(api: httpx.AsyncClient, **call: Any) -> Any:
    answer = await api.post("/api/scrape", json=call)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


async def test_formats_and_tags(api: httpx.AsyncClient, site: Site) -> None:
    result = await scrape(api, url=site.url("/"), formats=["text", "html"], exclude_tags=[".ad"])
    assert (result["text"], result["markdown"]) == ("Kilns\n12.50 EUR", None)
    assert "Buy" not in result["html"]


async def test_the_request_is_as_asked(api: httpx.AsyncClient, site: Site) -> None:
    await scrape(
        api, url=site.url("/q"), headers={"X-Shop": "1"}, cookies={"a": "b"}, method="PUT", body={"json": {"q": 1}}
    )
    (asked,) = site.asked
    assert (asked.method, asked.body) == ("PUT", b'{"q": 1}')
    assert (asked.headers["x-shop"], asked.headers["cookie"]) == ("1", "a=b")
    assert asked.headers["content-type"] == "application/json"


async def test_fields(api: httpx.AsyncClient, site: Site) -> None:
    fields = {"title": "h1", "price": {"css": ".price", "as": "price"}, "none": ".none"}
    result = await scrape(api, url=site.url("/"), fields=fields)
    assert (result["title"], result["price"]) == ("Kilns", {"amount": 12.5, "currency": "EUR"})
    assert (result["none"], result["warnings"]) == (None, ["none: nothing found"])


async def test_a_document(api: httpx.AsyncClient, site: Site) -> None:
    assert (await scrape(api, url=site.url("/paper")))["markdown"] == "Kilns of 2024"


@pytest.mark.parametrize(
    ("call", "path", "told"),
    [
        ({"formats": ["pdf"]}, "/input/formats/0", "markdown, html, raw_html"),
        ({"exclude_tags": ["h1["]}, "/input/exclude_tags/0", "css-selector"),
        ({"headers": {"Host": "x"}}, "/input/headers", "request-header"),
        ({"fields": {"a": "h1["}}, "/input/fields/a", "selector"),
    ],
)
async def test_what_is_refused(api: httpx.AsyncClient, call: dict[str, Any], path: str, told: str) -> None:
    answer = await api.post("/api/scrape", json={"url": "https://shop.example/", **call})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] == path
    assert told in error["message"]


async def test_jobs_and_schedules_take_the_same(api: httpx.AsyncClient) -> None:
    fields = {"title": "h1"}
    job = {"items": ["https://shop.example/"], "fields": fields, "paused": True}
    answer = await api.post("/api/jobs", json=job)
    assert (answer.status_code, answer.json()["scraper"]) == (201, "builtin/select"), answer.text
    every = {"every_seconds": 3600, "paused": True}
    for body in ({"scrape": {"url": "https://shop.example/", "fields": fields}}, {"job": job}):
        answer = await api.post("/api/schedule", json={**every, **body})
        assert answer.status_code == 201, answer.text
    bad = {"scrape": {"url": "https://shop.example/", "formats": ["pdf"]}}
    assert (await api.post("/api/schedule", json={**every, **bad})).status_code == 422


async def test_the_document_describes_them(api: httpx.AsyncClient) -> None:
    schemas = (await api.get("/api/openapi.json")).json()["components"]["schemas"]
    for name in ("ScrapeCall", "ScheduledScrape", "JobCall"):
        properties = schemas[name]["properties"]
        for option in ("formats", "fields", "headers", "cookies", "method", "body", "only_main", "include_tags"):
            assert properties[option]["description"]
