"""`/api/crawl` and `/api/map`, through the real programs."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.job_calls import Jobs
from tests.programs import Embedded


@pytest.fixture(scope="module")
def yard(nothing_left: None) -> Iterator[Embedded]:
    with Embedded() as opened:
        yield opened
        assert not list(opened.errors())


@pytest.fixture(scope="module")
def api(yard: Embedded) -> Iterator[httpx.Client]:
    with yard.client() as client:
        yield client


def test_a_crawl_is_a_job_that_tells_what_it_left_out(yard: Embedded, api: httpx.Client) -> None:
    call = {
        "url": f"{yard.shop.url}/",
        "depth": 1,
        "exclude": ["/slow**", "/status/**", "/account"],
        "sitemap": False,
        "exports": [{"type": "pages", "format": "jsonl"}],
    }
    headers = {"Idempotency-Key": "crawl-1"}
    answer, again = (api.post("/api/crawl", json=call, headers=headers) for _ in range(2))
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["links"]["self"]
    assert (again.json()["id"], again.headers["idempotency-replayed"]) == (answer.json()["id"], "true")
    job = Jobs(api).ended(answer.json()["id"])
    assert job["status"] == "completed", job
    assert job["policy"]["fetching"]["robots"] == "obey"
    assert (job["source"]["limit"], job["source"]["scope"]) == (1000, "host")
    assert job["source"]["found"]["beyond_depth"] > 0
    export = api.get(f"/api/jobs/{job['id']}/exports").json()["exports"][0]
    rows = [json.loads(line) for line in api.get(export["links"]["download"]).text.splitlines()]
    assert len(rows) == job["counts"]["total"] > 3
    assert {row["depth"] for row in rows} == {0, 1}
    assert all(row["markdown"] for row in rows if row["item_status"] == "success" and row["http_status"] == 200)


def test_a_crawl_takes_the_pages_of_the_sitemap_up_to_its_limit(yard: Embedded, api: httpx.Client) -> None:
    call = {"url": f"{yard.shop.url}/", "include": ["/product/*"], "limit": 5, "formats": []}
    job = Jobs(api).ended(api.post("/api/crawl", json=call).json()["id"])
    assert job["counts"]["total"] == 5
    assert any("the limit of 5 pages was reached" in warning for warning in job["warnings"])


def test_a_crawl_that_cannot_be_is_refused_with_the_place(api: httpx.Client) -> None:
    for call, place in (({}, "url"), ({"url": "https://x/", "scope": "all"}, "scope"), ({"url": "x"}, "url")):
        answer = api.post("/api/crawl", json=call)
        assert answer.status_code == 422
        assert place in answer.json()["errors"][0]["path"]
    bad = api.post("/api/crawl", json={"url": "https://x/", "include": ["re:("]})
    assert (bad.status_code, "include" in bad.json()["detail"]) == (400, True)


def test_a_map_answers_with_the_urls_of_the_site(yard: Embedded, api: httpx.Client) -> None:
    answer = api.post("/api/map", json={"url": f"{yard.shop.url}/", "search": "/product/", "limit": 7})
    assert answer.status_code == 200, answer.text
    run = answer.json()
    assert run["scraper"] == "builtin/map"
    assert len(run["result"]["urls"]) == 7
    assert run["result"]["has_more"]
    assert all("/product/" in found["url"] for found in run["result"]["urls"])
    assert {found["source"] for found in run["result"]["urls"]} <= {"link", "sitemap"}


def test_a_map_is_a_scraper_for_jobs_as_well(yard: Embedded, api: httpx.Client) -> None:
    items = [{"url": f"{yard.shop.url}/", "limit": 3}]
    made = api.post("/api/jobs", json={"scraper": "builtin/map", "items": items})
    job = Jobs(api).ended(made.json()["id"])
    (item,) = Jobs(api).items(job["id"])
    assert (item["status"], item["exit_reason"]) == ("success", "succeeded"), item


def test_a_map_that_goes_on_is_a_handle_and_a_bad_pattern_is_told(yard: Embedded, api: httpx.Client) -> None:
    later = api.post("/api/map", json={"url": f"{yard.shop.url}/", "wait": 0})
    assert (later.status_code, later.json()["status"]) == (202, "queued")
    bad = api.post("/api/map", json={"url": f"{yard.shop.url}/", "include": ["re:("]})
    assert (bad.status_code, bad.json()["exit_reason"]) == (502, "bad_input")
    assert api.post("/api/map", json={"url": "nowhere"}).status_code == 422
