"""Other spellings of paths, what answers at the root, and a truthful 404."""

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
    assert "openapi.json" in answer.json()["remedy"]


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
