"""Resuming jobs by HTTP: a cancelled one goes on with what it did not do; others say what to do instead."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.model.job import Batch, JobStatus
from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import post, read, urls, work


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def refusal(stand: Stand, job_id: str) -> str:
    answer = await stand.client.post(f"/api/jobs/{job_id}/resume")
    assert answer.status_code == 409, answer.text
    return str(answer.json()["detail"])


async def test_a_cancelled_job_goes_on_with_the_items_it_did_not_do(stand: Stand) -> None:
    job = await post(stand.client, items=urls(3))
    place = f"/api/jobs/{job['id']}"
    await post(stand.client, f"{place}/cancel")
    for _ in range(2):
        resumed = await post(stand.client, f"{place}/resume")
        assert (resumed["status"], resumed["counts"]["pending"], resumed["counts"]["cancelled"]) == ("running", 3, 0)
    assert await work(stand.store, job["id"]) == 3


async def test_a_list_that_was_not_read_when_its_job_was_cancelled_is_read_on(stand: Stand) -> None:
    lines = b"".join(b"https://shop.example/p/%d\n" % number for number in range(1500))
    job = (await stand.client.post("/api/jobs", content=lines, headers={"content-type": "text/plain"})).json()
    place = f"/api/jobs/{job['id']}"
    await post(stand.client, f"{place}/cancel")
    assert (await read(stand.store, stand.services.intake, job["id"])).counts.total == 0
    assert (await post(stand.client, f"{place}/resume"))["reading"] is True
    done = await read(stand.store, stand.services.intake, job["id"])
    assert (done.status, done.counts.total, done.reading) == (JobStatus.RUNNING, 1500, False)


async def test_other_jobs_say_what_to_do_instead(stand: Stand) -> None:
    job = await post(stand.client, items=urls(1))
    await stand.store.batches.cut(Batch(id="batch_1", job_id=job["id"], left=1, queued_at=1.0), 1.0)
    await stand.store.batches.take("batch_1", "w1", 1.0, 9e9)
    await post(stand.client, f"/api/jobs/{job['id']}/cancel")
    assert "wait until it is cancelled" in await refusal(stand, job["id"])
    done = await post(stand.client, items=urls(1))
    await work(stand.store, done["id"])
    for leave, to in ((JobStatus.RUNNING, JobStatus.FINISHING), (JobStatus.FINISHING, JobStatus.COMPLETED)):
        assert await stand.store.jobs.move(done["id"], leave, to, 1.0)
        assert "redrive" in await refusal(stand, done["id"])


async def test_a_job_that_is_being_deleted_is_not_resumed(stand: Stand) -> None:
    job = await post(stand.client, items=urls(1))
    await post(stand.client, f"/api/jobs/{job['id']}/cancel")
    await stand.store.jobs.begin_delete(job["id"])
    assert "deleted" in await refusal(stand, job["id"])
