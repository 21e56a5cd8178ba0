"""Other names in requests, ids that callers choose, and the site that a job is about."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import get, post, urls, work

SITE = "https://shop.example/p/1"


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("name", ["parameters", "params", "input"])
async def test_an_input_has_other_names(stand: Stand, name: str) -> None:
    call: dict[str, Any] = {"scraper_id": "shop/product", name: {"url": SITE, "currency": "EUR"}, "wait": 0}
    made = await post(stand.client, "/api/scrape", **call)
    run = await get(stand.client, made["links"]["self"])
    assert (run["scraper"], run["input"]) == ("shop/product", {"url": SITE, "currency": "EUR"})


async def test_a_field_under_two_names_is_refused(stand: Stand) -> None:
    answer = await stand.client.post("/api/scrape", json={"scraper": "shop/product", "scraper_id": "a/b"})
    assert answer.status_code == 422
    assert "`scraper_id` is another name of `scraper`; give one of them" in answer.json()["detail"]


async def test_a_scraper_s_name_may_have_a_dash_for_its_slash(stand: Stand) -> None:
    made = await post(stand.client, scraper_id="shop-product@1.4.2", items=[SITE])
    assert (made["scraper"], made["version"]) == ("shop/product", "1.4.2")


async def test_options_are_limits_under_other_names(stand: Stand) -> None:
    made = await post(stand.client, sitemap_urls=urls(2), options={"domain": "Example.com", "max_concurrency": 1})
    assert (made["counts"]["total"], made["policy"]["concurrency"]) == (2, 1)
    assert made["policy"]["budget"] == {"megabytes": 100.0, "residential_megabytes": 50.0}
    assert (made["profile"], made["policy"]["fetching"]["allow_residential"]) == ("site", False)
    options = {"allow_residential": True, "residential_limit_mb": 7, "traffic_budget_mb": 9, "max_urls": 5}
    made = await post(stand.client, sitemap_url="https://shop.example/sitemap.xml", options=options)
    assert made["policy"]["budget"] == {"megabytes": 9.0, "residential_megabytes": 7.0}
    assert (made["policy"]["concurrency"], made["source"]["limit"]) == (2, 5)


async def test_policy_wins_over_options(stand: Stand) -> None:
    policy = {"concurrency": 9, "budget": {"megabytes": 3}}
    made = await post(stand.client, items=urls(1), policy=policy, options={"max_concurrency": 1})
    assert made["policy"]["concurrency"] == 9
    assert made["policy"]["budget"] == {"megabytes": 3.0, "residential_megabytes": 50.0}


@pytest.mark.parametrize(
    ("options", "word"),
    [({"max_urls": 1}, "max_urls is 1"), ({"enable_firecrawl": True}, "firecrawl"), ({"nonsense": 1}, "nonsense")],
)
async def test_options_that_cannot_be_kept_are_refused(stand: Stand, options: dict[str, Any], word: str) -> None:
    answer = await stand.client.post("/api/jobs", json={"sitemap_urls": urls(2), "options": options})
    assert answer.status_code == 422
    assert word in answer.json()["detail"]


async def test_a_limit_that_cannot_be_kept_is_refused(stand: Stand) -> None:
    call = {"items_url": "https://shop.example/list.csv", "options": {"max_urls": 5}}
    answer = await stand.client.post("/api/jobs", json=call)
    assert (answer.status_code, "items_url" in answer.json()["detail"]) == (422, True)


async def test_a_schedule_takes_an_address_and_an_interval(stand: Stand) -> None:
    made = await post(stand.client, "/api/schedule/", url=SITE, interval=3600)
    assert (made["every_seconds"], made["scrape"], made["paused"]) == (3600, {"url": SITE}, False)
    place = f"/api/schedule/{made['id']}/"
    for enabled in (False, True):
        changed = (await stand.client.patch(place, json={"enabled": enabled})).json()
        assert changed["paused"] is not enabled
    assert (await stand.client.patch(place, json={"enabled": "no"})).status_code == 422


async def test_a_job_has_the_id_that_its_caller_chose(stand: Stand) -> None:
    call: dict[str, Any] = {"job_id": "test-001", "items": [{"item_id": "item-1", "input": {"url": SITE}}]}
    first = await stand.client.post("/api/jobs", json=call)
    assert (first.status_code, first.json()["id"]) == (201, "test-001")
    again = await stand.client.post("/jobs", json=call)
    assert (again.status_code, again.json()["id"]) == (201, "test-001")
    assert again.headers["idempotency-replayed"] == "true"
    other = await stand.client.post("/api/jobs", json={**call, "items": urls(2)})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert await work(stand.store, "test-001") == 1
    item = await get(stand.client, "/api/jobs/test-001/items/item-1")
    assert item["links"]["job"] == "/api/jobs/test-001"
    assert (await stand.client.get("/api/jobs/test-002")).status_code == 404


async def test_one_id_asked_for_at_once_with_two_lists_has_one_of_them(stand: Stand) -> None:
    calls = [{"job_id": "both", "items": urls(3, first)} for first in (1, 100)]
    answers = await asyncio.gather(*(stand.client.post("/api/jobs", json=call) for call in calls))
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    made = next(call for call, answer in zip(calls, answers, strict=True) if answer.status_code == 201)
    items = await get(stand.client, "/api/jobs/both/items")
    assert [item["input"]["url"] for item in items["items"]] == made["items"]


@pytest.mark.parametrize("chosen", ["job_1", "runs", "probes", "a/b", "", "-a", "a" * 65, "ä"])
async def test_an_id_that_may_not_be_chosen_is_refused(stand: Stand, chosen: str) -> None:
    answer = await stand.client.post("/api/jobs", json={"job_id": chosen, "items": urls(1)})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


async def test_a_schedule_chooses_no_id(stand: Stand) -> None:
    answer = await stand.client.post("/api/schedule", json={"interval": 60, "job": {"job_id": "x", "items": urls(1)}})
    assert answer.status_code == 422
    assert "job_id" in answer.json()["detail"]


async def test_jobs_are_listed_newest_first_whatever_their_ids(stand: Stand) -> None:
    for chosen in ("b", "c", "a"):
        await post(stand.client, job_id=chosen, items=urls(1))
    page = await get(stand.client, "/api/jobs", limit=2)
    assert [job["id"] for job in page["jobs"]] == ["a", "c"]
    rest = await get(stand.client, "/api/jobs", limit=2, cursor=page["next_cursor"])
    assert [job["id"] for job in rest["jobs"]] == ["b"]


async def test_jobs_are_found_by_the_site_they_are_about(stand: Stand) -> None:
    named = await post(stand.client, items=urls(1), options={"domain": "Example.com"})
    shown = await post(stand.client, items=urls(1))
    follows = await post(stand.client, start_url="https://Shop.example/", domain="shop.example")
    found = await get(stand.client, "/api/jobs", domain="shop.example")
    assert [job["id"] for job in found["jobs"]] == [follows["id"], shown["id"]]
    assert [job["id"] for job in (await get(stand.client, "/api/jobs", domain="example.com"))["jobs"]] == [named["id"]]
    assert (await get(stand.client, "/api/jobs", domain="nowhere.example"))["jobs"] == []
