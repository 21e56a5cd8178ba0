"""The plan of site crawls (D3): its API and its end-to-end test, with its own names and values."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.documents.stand import Yard, served
from tests.leaks import until

PAGE = "http://localhost:3000"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    environment = {"CORS_ORIGINS": f'["{PAGE}"]'}
    with served(tmp_path_factory.mktemp("site-crawls"), **environment) as opened:
        yield opened


@pytest.fixture(scope="module")
def job(yard: Yard) -> dict[str, Any]:
    """The job of the end-to-end test, ended. The practice shop stands for example.com."""
    call = {
        "sitemap_urls": [f"{yard.shop}/product/1", f"{yard.shop}/product/2"],
        "options": {"domain": "example.com", "max_concurrency": 1},
    }
    made = yard.json("POST", "/api/jobs", 201, json=call)
    assert made["status"] in ("queued", "running")
    return yard.until(f"/api/jobs/{made['id']}", "succeeded", "failed")


def test_the_root_answers(yard: Yard) -> None:
    root = yard.json("GET", "/")
    assert (root["status"], root["service"]) == ("ok", "scrapeyard")


def test_the_health_tells_of_the_database(yard: Yard) -> None:
    health = yard.json("GET", "/api/health")
    assert (health["status"], health["database"]) == ("ok", "ok")


def test_the_job_succeeds_with_the_figures_of_the_response(job: dict[str, Any]) -> None:
    assert job["status"] == "succeeded"
    assert (job["total_urls"], job["success_urls"], job["failed_urls"]) == (2, 2, 0)
    assert (job["domain"], job["error_message"], job["residential_mb_used"]) == ("example.com", None, 0.0)
    assert job["traffic_mb_used"] >= 0.0
    assert job["created_at"] <= job["started_at"] <= job["finished_at"]


def test_the_options_have_the_defaults_of_the_plan(job: dict[str, Any]) -> None:
    assert job["policy"]["concurrency"] == 1
    assert job["policy"]["budget"] == {"megabytes": 100.0, "residential_megabytes": 50.0}
    assert job["policy"]["fetching"]["allow_residential"] is False
    assert (job["profile"], job["policy"]["max_seconds"]) == ("site", 7200)


def test_a_job_without_addresses_is_refused(yard: Yard) -> None:
    answer = yard.json("POST", "/api/jobs", 422, json={"options": {"domain": "example.com"}})
    assert "give exactly one of items, items_url, sitemap_url, kafka and start_url" in answer["detail"]


def test_a_job_is_looked_up_or_not_there(yard: Yard, job: dict[str, Any]) -> None:
    assert yard.json("GET", f"/api/jobs/{job['id']}")["id"] == job["id"]
    for unknown in ("0b8e3a3e-8c1e-4f6c-9a57-0e8b7d0a1c11", "unknown"):
        assert yard.json("GET", f"/api/jobs/{unknown}", 404)["code"] == "not_found"
        assert yard.json("POST", f"/api/jobs/{unknown}/cancel", 404)["code"] == "not_found"


def test_a_job_is_cancelled_once(yard: Yard, job: dict[str, Any]) -> None:
    call = {"sitemap_urls": [f"{yard.shop}/product/1"], "options": {"domain": "example.com"}, "paused": True}
    made = yard.json("POST", "/api/jobs", 201, json=call)
    assert yard.json("POST", f"/api/jobs/{made['id']}/cancel", 202) == {"ok": True}
    assert yard.until(f"/api/jobs/{made['id']}", "cancelled")["status"] == "cancelled"
    refused = yard.json("POST", f"/api/jobs/{job['id']}/cancel", 409)
    assert "the job is completed" in refused["detail"]


def test_a_cancelled_job_is_run_again_to_the_same_results(yard: Yard) -> None:
    addresses = [f"{yard.shop}/product/{number}" for number in (1, 2, 3)]
    call = {"sitemap_urls": addresses, "options": {"domain": "example.com"}, "paused": True}
    made = yard.json("POST", "/api/jobs", 201, json=call)
    yard.json("POST", f"/api/jobs/{made['id']}/cancel", 202)
    yard.until(f"/api/jobs/{made['id']}", "cancelled")
    yard.json("POST", f"/api/jobs/{made['id']}/resume")
    assert yard.until(f"/api/jobs/{made['id']}", "succeeded")["success_urls"] == 3


def test_jobs_are_a_list_by_domain(yard: Yard, job: dict[str, Any]) -> None:
    words = {"Prefer": "dialect=site"}
    found = yard.json("GET", "/api/jobs", params={"domain": "example.com", "limit": 50}, headers=words)
    assert job["id"] in {each["id"] for each in found}
    assert {each["domain"] for each in found} == {"example.com"}
    assert yard.json("GET", "/api/jobs", params={"domain": "nowhere.example"}, headers=words) == []
    done = yard.json("GET", "/api/jobs", params={"status": "succeeded"}, headers=words)
    assert job["id"] in {each["id"] for each in done}


def test_exports_are_a_list_with_address_and_size(yard: Yard, job: dict[str, Any]) -> None:
    place = f"/api/jobs/{job['id']}/exports"

    def ready() -> bool:
        return all(each["state"] == "done" for each in yard.json("GET", place))

    until(ready, "the exports are not made")
    exports = yard.json("GET", place)
    assert any(each["type"] == "full" and each["format"] == "csv" for each in exports)
    assert any(each["type"] == "seo" and each["format"] == "csv" for each in exports)
    for each in exports:
        assert len(yard.client.get(each["url"]).content) == each["size_bytes"] > 0


def test_the_page_at_port_3000_may_call(yard: Yard) -> None:
    for method in ("GET", "POST", "PATCH", "DELETE"):
        headers = {"Origin": PAGE, "Access-Control-Request-Method": method}
        assert yard.client.options("/api/jobs", headers=headers).headers["access-control-allow-origin"] == PAGE
