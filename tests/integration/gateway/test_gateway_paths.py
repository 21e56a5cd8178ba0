"""Other spellings of paths, HEAD, what answers at the root and at /docs, and truthful refusals."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.gateway.http.paths import our_path
from tests.integration.gateway_stand import Stand, open_stand, worker
from tests.integration.job_desk import urls


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("/", "/"),
        ("/api/scrape/", "/api/scrape"),
        ("/jobs", "/api/jobs"),
        ("/jobs/", "/api/jobs"),
        ("/jobs/test-001/results", "/api/jobs/test-001/results"),
        ("/jobsite", "/jobsite"),
        ("/api/jobs//", "/api/jobs/"),
        ("//", "/"),
        ("/api/runs", "/api/scrape"),
        ("/api/runs/run_1/logs", "/api/scrape/run_1/logs"),
        ("/api/runsome", "/api/runsome"),
        ("/api/schedules/schedule_1", "/api/schedule/schedule_1"),
    ],
)
def test_a_path_is_read_as_ours(given: str, ours: str) -> None:
    assert our_path(given) == ours


async def test_a_slash_at_the_end_reaches_the_same_route_with_its_body(stand: Stand) -> None:
    made = await stand.client.post("/api/jobs/", json={"items": urls(2)})
    assert (made.status_code, made.json()["rows"]["taken"]) == (201, 2)
    asked = await stand.client.post("/api/scrape/", json={"url": "https://shop.example/p/1", "wait": 0})
    assert asked.status_code == 202
    run = (await stand.client.get(f"/api/scrape/{asked.json()['id']}/")).json()
    assert run["input"] == {"url": "https://shop.example/p/1"}


async def test_jobs_are_found_without_the_prefix(stand: Stand) -> None:
    made = (await stand.client.post("/jobs", json={"items": urls(1)})).json()
    assert (await stand.client.get(f"/jobs/{made['id']}")).json()["id"] == made["id"]
    assert [job["id"] for job in (await stand.client.get("/jobs")).json()["jobs"]] == [made["id"]]


async def test_an_upload_under_another_spelling_has_the_limit_of_uploads(stand: Stand) -> None:
    rows = "url\n" + "".join(f"https://shop.example/{number}/{'x' * 2000}\n" for number in range(6000))
    assert len(rows) > stand.settings.gateway.max_body_mb * 2**20
    answer = await stand.client.post("/jobs/", content=rows, headers={"content-type": "text/csv"})
    assert (answer.status_code, answer.json()["rows"]["taken"]) == (201, 6000)


async def test_a_path_that_does_not_exist_says_so(stand: Stand) -> None:
    answer = await stand.client.get("/api/nowhere/1")
    assert (answer.status_code, answer.json()["code"]) == (404, "no_such_path")
    assert answer.json()["detail"] == "this gateway has no path /api/nowhere/1"
    assert "/docs" in answer.json()["remedy"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("/api/job", "/api/jobs"),
        ("/scrape", "/api/scrape"),
        ("/api/jobs/test-001/item", "/api/jobs/{job_id}/items"),
        ("/api/scrapers/shop/product/channel", "/api/scrapers/{site}/{task}/channels"),
    ],
)
async def test_a_path_with_a_slip_tells_what_was_meant(stand: Stand, given: str, meant: str) -> None:
    answer = await stand.client.get(given)
    assert answer.status_code == 404
    assert answer.json()["detail"] == f"this gateway has no path {given}; did you mean {meant}?"


@pytest.mark.parametrize(
    ("method", "path", "takes"),
    [
        ("PUT", "/api/jobs", "GET, HEAD, POST"),
        ("PUT", "/api/jobs/test-001", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/api/cache/warm", "POST"),
    ],
)
async def test_a_method_that_a_path_does_not_take_tells_all_that_it_takes(
    stand: Stand, method: str, path: str, takes: str
) -> None:
    answer = await stand.client.request(method, path)
    assert (answer.status_code, answer.json()["code"], answer.headers["allow"]) == (405, "method_not_allowed", takes)
    assert answer.json()["detail"] == f"{path} does not take {method}; it takes {takes}"


async def test_runs_and_schedules_have_plain_names(stand: Stand) -> None:
    made = (await stand.client.post("/api/scrape", json={"url": "https://shop.example/p/1", "wait": 0})).json()
    assert [run["id"] for run in (await stand.client.get("/api/runs")).json()["runs"]] == [made["id"]]
    run = (await stand.client.get(f"/api/runs/{made['id']}")).json()
    assert run["links"]["self"] == f"/api/scrape/{made['id']}"
    body = {"cron": "@daily", "scrape": {"url": "https://shop.example/p/1"}}
    scheduled = await stand.client.post("/api/schedules", json=body)
    assert scheduled.headers["location"] == f"/api/schedule/{scheduled.json()['id']}"
    assert len((await stand.client.get("/api/schedules")).json()["schedules"]) == 1


@pytest.mark.parametrize("path", ["/", "/docs", "/api/jobs", "/api/runs", "/api/health", "/metrics", "/api/nowhere"])
async def test_head_is_answered_as_get_without_the_body(stand: Stand, path: str) -> None:
    told, got = await stand.client.head(path), await stand.client.get(path)
    assert (told.status_code, told.content) == (got.status_code, b"")
    assert told.headers["content-type"] == got.headers["content-type"]


async def test_head_of_a_stream_ends(stand: Stand) -> None:
    job = (await stand.client.post("/api/jobs", json={"items": urls(1), "paused": True})).json()
    told = await stand.client.head(f"/api/jobs/{job['id']}/stream")
    assert (told.status_code, told.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


async def test_the_reference_needs_nothing_from_elsewhere(stand: Stand) -> None:
    page = await stand.client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self';" in page.headers["content-security-policy"]
    parts = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(parts) == 5
    for part in parts:
        assert part.startswith("/")
        assert (await stand.client.get(part)).status_code == 200
    assert "<script>" not in page.text
    assert "/api/openapi.json" in (await stand.client.get("/docs/start.js")).text


@pytest.mark.parametrize("path", ["/api/jobs/a b", "/api/schedule/1", "/api/exports/1", "/api/webhooks/deliveries/1"])
async def test_a_text_that_is_no_id_is_the_id_of_nothing(stand: Stand, path: str) -> None:
    answer = await stand.client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text


async def test_the_root_and_the_health_tell_what_is_there(stand: Stand) -> None:
    root = await stand.client.get("/")
    assert (root.status_code, root.json()["status"], root.json()["service"]) == (200, "ok", "scrapeyard")
    await stand.store.workers.beat(worker())
    health = (await stand.client.get("/api/health")).json()
    assert (health["status"], health["database"]) == ("ok", "ok")
    for link in ("docs", "api", "health"):
        assert (await stand.client.get(root.json()[link])).status_code == 200
