"""How a job went over time, by HTTP; the points are noted by a dispatcher whose clock is moved by hand."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scrapeyard.dispatch.upkeep.running_jobs import EVERY_SECONDS, JobPoints
from scrapeyard.model import ExitReason, Usage, new_id
from scrapeyard.model.job import Batch
from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import get, outcome_of, post, urls
from tests.services.job_yard import Clock

USED = Usage(
    requests=2, bytes_received=1000, bytes_by_class={"direct": 600, "residential": 400}, solver_calls=4,
    solver_successes=3,
)  # fmt: skip


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def work_one(stand: Stand, job_id: str) -> None:

    batch = Batch(id=new_id("batch"), job_id=job_id, left=1, queued_at=1.0)
    await stand.store.batches.cut(batch, 1.0)
    taken = await stand.store.batches.take(batch.id, "w1", 1.0, 9e9)
    assert taken is not None
    outcomes = [replace(outcome_of(item, ExitReason.SUCCEEDED), usage=USED) for item in taken[2]]
    await stand.store.batches.record(batch.id, "w1", 0, outcomes, 1.0)


def values(series: list[dict[str, Any]]) -> dict[str, list[float]]:
    return {" ".join((one["name"], *one["labels"].values())): [p["value"] for p in one["points"]] for one in series}


async def test_a_job_tells_how_it_went(stand: Stand) -> None:
    job = await post(stand.client, items=urls(3))
    created = await stand.store.jobs.get(job["id"])
    assert created is not None
    clock = Clock()
    clock.now = created.created_at
    duty = JobPoints(stand.store.points, clock)
    for _ in range(2):
        await duty.run_once()
        await duty.run_once()  # it is not time yet
        clock.now += EVERY_SECONDS
        await work_one(stand, job["id"])
    told = await get(stand.client, job["links"]["metrics"])
    assert told["job_id"] == job["id"]
    found = values(told["series"])
    assert found["items success"] == [0, 1, 2]
    assert found["items pending"] == [3, 2, 1]
    assert found["requests"] == [0, 2, 4]
    assert (found["bytes_received"], found["bytes residential"]) == ([0, 1000, 2000], [0, 400, 800])
    assert found["items_per_second"][0] == 1 / EVERY_SECONDS
    assert (found["solver_calls"][-1], found["flaresolverr_success_rate"]) == (8, [0.75, 0.75])
    stats = await get(stand.client, "/api/stats")
    assert stats["jobs"]["solver"] == {"calls": 8, "successes": 6, "flaresolverr_success_rate": 0.75}


async def test_series_are_chosen_by_name(stand: Stand) -> None:
    job = await post(stand.client, items=urls(1))
    place = f"/api/jobs/{job['id']}/metrics"
    told = await get(stand.client, place, name=["requests", "solver_calls"])
    assert [one["name"] for one in told["series"]] == ["requests", "solver_calls"]
    assert (await stand.client.get(place, params={"name": "nothing"})).status_code == 422
    assert (await stand.client.get(f"/api/jobs/{new_id('job')}/metrics")).status_code == 404
