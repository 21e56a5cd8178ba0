"""Readers of what retention removed are told so: 410 with the time, never an empty result."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.blobs import keys
from scrapeyard.dispatch.upkeep.job_retention import JobRetention
from scrapeyard.dispatch.upkeep.retention import DAY, Retention
from scrapeyard.model import Artifact
from scrapeyard.model.job import JobStatus
from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import get, post, urls, work

KEPT = {"results_days": 1, "html_days": 1, "logs_days": 1}


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def a_round(stand: Stand) -> None:
    later = time.time() + 1.1 * DAY
    for duty in (Retention, JobRetention):
        await duty(stand.settings, stand.store, stand.blobs, lambda: later).run_once()


async def answers(stand: Stand, *paths: str) -> list[tuple[int, str]]:
    found = [await stand.client.get(path) for path in paths]
    return [(answer.status_code, "" if answer.is_success else answer.json()["code"]) for answer in found]


async def test_a_run(stand: Stand) -> None:
    call = {"url": "https://shop.example/", "wait": 0, "policy": {"retention": KEPT}}
    place = "/api/scrape/" + (await post(stand.client, "/api/scrape", **call))["id"]
    delivery = await stand.take()
    key = keys.artifact(delivery.run_id, 1, "page.html")
    await stand.blobs.put(key, b"<p>", "text/html")
    left = Artifact(name="page.html", content_type="text/html", size=3, key=key)
    await stand.finish(delivery, artifacts=(left,))
    paths = [place, f"{place}/logs", f"{place}/artifacts/page.html"]
    assert [status for status, _ in await answers(stand, *paths)] == [200] * 3
    await a_round(stand)
    assert await answers(stand, *paths) == [(410, "swept")] * 3
    told = (await stand.client.get(place)).json()["detail"]
    assert told.startswith("retention removed the results of run run_")
    listed = (await get(stand.client, "/api/scrape"))["runs"]
    assert set(listed[0]["swept"]) == {"results", "html", "logs"}
    assert await answers(stand, f"{place}/explain") == [(200, "")]


async def test_a_result_that_is_gone_is_not_taken_for_an_empty_one(stand: Stand) -> None:
    run_id = (await post(stand.client, "/api/scrape", url="https://shop.example/", wait=0))["id"]
    delivery = await stand.take()
    await stand.finish(delivery, result=None, result_key=keys.result(run_id, 1), result_bytes=2)
    assert await answers(stand, f"/api/scrape/{run_id}") == [(410, "swept")]


async def test_a_job(stand: Stand) -> None:
    job = await post(stand.client, items=urls(2), policy={"retention": KEPT})
    await work(stand.store, job["id"])
    place = f"/api/jobs/{job['id']}"
    for leave, to in ((JobStatus.RUNNING, JobStatus.FINISHING), (JobStatus.FINISHING, JobStatus.COMPLETED)):
        assert await stand.store.jobs.move(job["id"], leave, to, time.time())
    item = (await get(stand.client, f"{place}/items"))["items"][0]
    paths = [f"{place}/items/{item['id']}", f"{place}/items/{item['id']}/download", f"{place}/results"]
    assert [status for status, _ in await answers(stand, *paths)] == [200] * 3
    await a_round(stand)
    assert await answers(stand, *paths) == [(410, "swept")] * 3
    items = (await get(stand.client, f"{place}/items"))["items"]
    assert [(one["result"], set(one["swept"])) for one in items] == [(None, {"results", "html", "logs"})] * 2
    assert set((await get(stand.client, place))["swept"]) == {"results", "html", "logs"}
    wish = {"type": "full", "format": "csv"}
    for path, body in (("exports", wish), ("redrive", {"statuses": ["success"]})):
        answer = await stand.client.post(f"{place}/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (410, "swept"), answer.text


async def test_a_manifest_says_how_long_and_a_call_may_say_otherwise(stand: Stand) -> None:
    bad = await stand.client.post("/api/scrape", json={"url": urls(1)[0], "policy": {"retention": {"days": 0}}})
    assert bad.status_code == 422
    assert bad.json()["errors"][0]["path"] == "/policy/retention/days"
