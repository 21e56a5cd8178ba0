"""Profiles of jobs by HTTP: defaults for what a call leaves open, and nothing else."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import get, post, urls

SITEMAP = "https://shop.example/sitemap.xml"
FILES = [("full", "csv", False), ("seo", "csv", False), ("diff", "csv", True)]


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


def files(job: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(wish["type"], wish["format"], wish["skip_first"]) for wish in job["exports"]]


async def test_a_crawl_of_a_site_is_careful_and_leaves_files_without_being_asked(stand: Stand) -> None:
    job = await post(stand.client, profile="site", sitemap_url=SITEMAP)
    assert job["profile"] == "site"
    assert (job["policy"]["concurrency"], job["policy"]["max_seconds"]) == (2, 7200.0)
    assert job["policy"]["fetching"]["allow_residential"] is False
    assert job["policy"]["budget"] == {"megabytes": 100.0, "residential_megabytes": 50.0}
    assert job["source"]["limit"] == 10_000
    assert files(job) == FILES
    assert (await get(stand.client, f"/api/jobs/{job['id']}"))["profile"] == "site"


async def test_what_a_call_says_counts(stand: Stand) -> None:
    policy = {"concurrency": None, "budget": {"megabytes": 7}, "rate": 3}
    job = await post(stand.client, profile="site", sitemap_url=SITEMAP, sitemap={"limit": 5}, policy=policy, exports=[])
    assert (job["policy"]["concurrency"], job["policy"]["rate"], job["source"]["limit"]) == (None, 3.0, 5)
    assert job["policy"]["budget"] == {"megabytes": 7.0, "residential_megabytes": 50.0}
    assert job["exports"] == []


async def test_links_that_are_followed_are_limited_too(stand: Stand) -> None:
    job = await post(stand.client, profile="site", start_url="https://shop.example/", follow={"depth": 2})
    assert (job["source"]["depth"], job["source"].get("limit", 10_000)) == (2, 10_000)


async def test_an_uploaded_list_may_have_a_profile(stand: Stand) -> None:
    answer = await stand.client.post(
        "/api/jobs?profile=site", content="url\nhttps://shop.example/1\n", headers={"content-type": "text/csv"}
    )
    assert answer.status_code == 201, answer.text
    assert (answer.json()["profile"], answer.json()["policy"]["concurrency"]) == ("site", 2)
    assert files(answer.json()) == FILES


async def test_a_job_without_a_profile_is_as_it_was(stand: Stand) -> None:
    job = await post(stand.client, items=urls(1))
    assert (job["profile"], job["policy"]["concurrency"], job["exports"]) == (None, None, [])


async def test_a_profile_that_is_not_known_is_refused(stand: Stand) -> None:
    answer = await stand.client.post("/api/jobs", json={"profile": "planet", "items": urls(1)})
    assert answer.status_code == 422
    assert "site" in answer.text


async def test_a_schedule_keeps_the_name_of_the_profile(stand: Stand) -> None:
    template = {"profile": "site", "sitemap_url": SITEMAP}
    made = await post(stand.client, "/api/schedule", every_seconds=3600, job=template)
    assert made["job"] == template
