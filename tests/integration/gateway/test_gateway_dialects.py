"""Other words in answers: properties under other names, dialects, and the words that filters take."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.gateway.http import alternatives
from scrapeyard.gateway.http.answers import schemas
from scrapeyard.gateway.jobs.documents import JobDocument
from scrapeyard.gateway.jobs.exports import ExportDocument
from scrapeyard.gateway.runs.documents import Summary
from scrapeyard.gateway.schedules.documents import ScheduleDocument
from scrapeyard.model import ExitReason, RunError
from scrapeyard.model.job import JobStatus
from scrapeyard.settings import GatewaySettings, Settings
from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import get, post, urls, work

SITE = {"Prefer": "dialect=site"}
TASKS = {"Prefer": "dialect=tasks"}
PAGE = "https://shop.example/p/1"


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def completed(stand: Stand, **call: Any) -> str:
    job_id: str = (await post(stand.client, items=urls(2), **call))["id"]
    await work(stand.store, job_id, lambda item: ExitReason.FAILED if item.seq else ExitReason.SUCCEEDED)
    for leave, to in ((JobStatus.RUNNING, JobStatus.FINISHING), (JobStatus.FINISHING, JobStatus.COMPLETED)):
        assert await stand.store.jobs.move(job_id, leave, to, 1e9)
    return job_id


@pytest.mark.parametrize(
    ("document", "names"),
    [
        (Summary, alternatives.RUN),
        (JobDocument, alternatives.JOB),
        (ExportDocument, alternatives.EXPORT),
        (ScheduleDocument, alternatives.SCHEDULE),
    ],
)
def test_every_other_name_is_in_the_document_and_marked(document: Any, names: alternatives.Values) -> None:
    properties = schemas([document])[document.__name__]["properties"]
    marked = {name for name, schema in properties.items() if schema.get("deprecated")}
    assert marked == names.keys()


async def test_a_job_tells_its_figures_under_other_names(stand: Stand) -> None:
    job = await get(stand.client, f"/api/jobs/{await completed(stand, domain='shop.example')}")
    assert (job["total_urls"], job["success_urls"], job["failed_urls"]) == (2, 1, 1)
    assert (job["traffic_mb_used"], job["residential_mb_used"], job["error_message"]) == (0.0, 0.0, None)
    assert (job["domain"], job["updated_at"]) == ("shop.example", job["finished_at"])


async def test_a_run_that_is_looked_up_has_other_names(stand: Stand) -> None:
    made = await post(stand.client, "/api/scrape", url=PAGE, wait=0)
    await stand.finish(await stand.take(), ExitReason.FAILED, error=RunError(message="no luck"))
    run = await get(stand.client, made["links"]["self"])
    assert (run["url"], run["error_message"], run["updated_at"]) == (PAGE, "no luck", run["finished_at"])
    (listed,) = (await get(stand.client, "/api/scrape"))["runs"]
    assert (listed["url"], listed["error_message"]) == (PAGE, "no luck")


async def test_a_schedule_and_an_export_have_other_names(stand: Stand) -> None:
    made = await post(stand.client, "/api/schedule", url=PAGE, interval=60)
    assert (made["url"], made["interval"], made["enabled"]) == (PAGE, 60, True)
    assert made["next_run"] == made["next_run_at"]
    wished = await post(stand.client, f"/api/jobs/{await completed(stand)}/exports", type="full", format="csv")
    assert (wished["url"], wished["size_bytes"]) == (None, 0)


async def test_a_client_of_sites_sees_its_own_words(stand: Stand) -> None:
    job_id = await completed(stand)
    job = await stand.client.get(f"/api/jobs/{job_id}", headers=SITE)
    assert (job.json()["status"], job.headers["preference-applied"]) == ("succeeded", "dialect=site")
    listed = (await stand.client.get("/api/jobs", headers=SITE)).json()
    assert [(each["id"], each["status"]) for each in listed] == [(job_id, "succeeded")]
    assert (await stand.client.get(f"/api/jobs/{job_id}/exports", headers=SITE)).json() == []
    paused = await stand.client.post("/api/jobs", json={"items": urls(1), "paused": True}, headers=SITE)
    assert (paused.status_code, paused.json()["status"]) == (201, "running")
    page = await stand.client.get("/api/jobs", params={"limit": 1}, headers=SITE)
    rest = await stand.client.get("/api/jobs", params={"cursor": page.headers["next-cursor"]}, headers=SITE)
    assert [each["id"] for each in page.json() + rest.json()] == [paused.json()["id"], job_id]


async def test_cancelling_tells_whether_anything_was_cancelled(stand: Stand) -> None:
    job_id = await completed(stand)
    for headers in ({}, SITE):
        answer = await stand.client.post(f"/api/jobs/{job_id}/cancel", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        assert "completed" in answer.json()["detail"]
    going = (await post(stand.client, items=urls(1)))["id"]
    first = await stand.client.post(f"/api/jobs/{going}/cancel", headers=SITE)
    assert (first.status_code, first.json()) == (202, {"ok": True})
    again = await stand.client.post(f"/api/jobs/{going}/cancel")
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")


async def test_a_client_of_tasks_is_answered_at_once_in_its_own_words(stand: Stand) -> None:
    asked = await stand.client.post("/api/scrape/", json={"url": PAGE}, headers=TASKS)
    assert (asked.status_code, asked.json()["status"]) == (202, "pending")
    place = f"/api/scrape/{asked.json()['id']}/"
    assert (await stand.client.get(place, headers=TASKS)).json()["status"] == "pending"
    await stand.finish(await stand.take())
    run = (await stand.client.get(place, headers=TASKS)).json()
    assert (run["status"], run["result"]["title"]) == ("completed", "Tea")
    (listed,) = (await stand.client.get("/api/scrape/", headers=TASKS)).json()
    assert (listed["id"], listed["status"]) == (run["id"], "completed")


async def test_a_result_in_the_blob_store_is_told_in_the_same_words(stand: Stand) -> None:
    asked = await stand.client.post("/api/scrape/", json={"urls": [PAGE]}, headers=TASKS)
    assert isinstance(asked.json(), list)
    await stand.blobs.put("runs/large", b'{"large":true}', "application/json")
    await stand.finish(await stand.take(), result=None, result_key="runs/large", result_bytes=14)
    run = (await stand.client.get(f"/api/scrape/{asked.json()[0]['id']}", headers=TASKS)).json()
    assert (run["status"], run["result"]) == ("completed", {"large": True})


async def test_the_operator_chooses_the_dialect_of_those_who_do_not_ask(tmp_path: Path) -> None:
    async with open_stand(tmp_path, Settings(gateway=GatewaySettings(dialect="site"))) as stand:
        job_id = (await post(stand.client, items=urls(1)))["id"]
        for headers, kind in (({}, list), ({"Prefer": "dialect=own"}, dict), ({"Prefer": "dialect=none"}, list)):
            assert isinstance((await stand.client.get("/api/jobs", headers=headers)).json(), kind)
        assert (await stand.client.get(f"/api/jobs/{job_id}")).json()["status"] == "running"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/api/scrape", ("queued", "pending")),
        ("/api/scrape", ("succeeded", "completed", "success")),
        ("/api/scrape", ("failed", "error")),
        ("/api/jobs", ("creating", "queued", "pending")),
        ("/api/jobs", ("completed", "succeeded", "success")),
        ("/api/jobs", ("running", "in_progress")),
    ],
)
async def test_filters_take_the_words_of_all(stand: Stand, path: str, words: tuple[str, ...]) -> None:
    await completed(stand)
    await post(stand.client, sitemap_url="https://shop.example/sitemap.xml")
    await post(stand.client, "/api/scrape", url=PAGE, wait=0)

    async def found(word: str) -> httpx.Response:
        answer = await stand.client.get(path, params={"status": word})
        assert answer.status_code == 200, answer.text
        return answer

    first, *others = [(await found(word)).json() for word in words]
    assert all(other == first for other in others)
    assert (await stand.client.get(path, params={"status": "nonsense"})).status_code == 422


async def test_a_job_made_in_other_words_is_answered_in_them(stand: Stand) -> None:
    made = await post(stand.client, items=urls(1), options={"domain": "example.com"}, paused=True)
    place = f"/api/jobs/{made['id']}"
    assert made["status"] == "running"
    assert (await stand.client.get(place)).json()["status"] == "running"
    assert (await stand.client.get(f"{place}/exports")).json() == []
    ours = {"Prefer": "dialect=own"}
    assert (await stand.client.get(place, headers=ours)).json()["status"] == "paused"
    assert (await stand.client.get(f"{place}/exports", headers=ours)).json() == {"exports": []}
    listed = (await stand.client.get("/api/jobs")).json()["jobs"]
    assert [job["status"] for job in listed] == ["paused"]
