"""Archives by HTTP: the items of an ended job go away and come back; meanwhile every answer says how to get them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.dispatch.upkeep.archiving import Archiving
from scrapeyard.model import ExitReason
from scrapeyard.model.job import JobStatus
from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import get, post, urls, work


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def a_round(stand: Stand) -> None:
    services = stand.services
    await Archiving(services.settings, stand.store, services.blobs, lambda: 1.0).run_once()


async def ended(stand: Stand) -> str:
    job = await post(stand.client, items=urls(3))
    await work(stand.store, job["id"], lambda item: ExitReason.TIMEOUT if item.seq == 2 else ExitReason.SUCCEEDED)
    for leave, to in ((JobStatus.RUNNING, JobStatus.FINISHING), (JobStatus.FINISHING, JobStatus.COMPLETED)):
        assert await stand.store.jobs.move(job["id"], leave, to, 1.0)
    return str(job["id"])


async def test_items_go_and_come_back(stand: Stand) -> None:
    place = f"/api/jobs/{await ended(stand)}"
    before = await get(stand.client, f"{place}/items")
    assert (await post(stand.client, f"{place}/archive"))["archive"] == "archiving"
    await a_round(stand)
    job = await get(stand.client, place)
    assert (job["archive"], job["status"], job["counts"]["success"]) == ("archived", "completed", 2)
    for _ in range(2):
        assert (await post(stand.client, f"{place}/archive"))["archive"] == "archived"
    assert (await post(stand.client, f"{place}/restore"))["archive"] == "restoring"
    await a_round(stand)
    assert await get(stand.client, f"{place}/items") == before
    assert (await post(stand.client, f"{place}/restore"))["archive"] == ""


async def test_an_archived_job_says_how_to_get_its_items(stand: Stand) -> None:
    job_id = await ended(stand)
    place = f"/api/jobs/{job_id}"
    await post(stand.client, f"{place}/archive")
    await a_round(stand)
    wish = {"type": "full", "format": "csv"}
    answers = [
        await stand.client.get(f"{place}/items"),
        await stand.client.get(f"{place}/items/any"),
        await stand.client.post(f"{place}/redrive", json={}),
        await stand.client.post(f"{place}/exports", json=wish),
    ]
    assert [answer.status_code for answer in answers] == [409] * 4
    assert all(f"{place}/restore" in answer.json()["detail"] for answer in answers)
    assert (await stand.client.delete(place)).status_code == 204


async def test_a_job_that_goes_on_cannot_be_archived(stand: Stand) -> None:
    job = await post(stand.client, items=urls(1))
    answer = await stand.client.post(f"/api/jobs/{job['id']}/archive")
    assert (answer.status_code, answer.json()["detail"]) == (409, "the job is running, so it cannot be archived yet")


async def test_watchers_are_told(stand: Stand) -> None:
    job_id = await ended(stand)
    await post(stand.client, f"/api/jobs/{job_id}/archive")
    await a_round(stand)
    kinds = [event.kind for event in await stand.store.events.after(job_id, 0, 100)]
    assert kinds == ["item_failed", "archive"]
