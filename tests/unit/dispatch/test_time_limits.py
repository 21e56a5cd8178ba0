"""The wall-clock limit of a whole job, on real embedded backends, with a clock moved by hand."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from scrapeyard.dispatch.leader import LEAD_SECONDS
from scrapeyard.model.job import JobStatus
from scrapeyard.store.ports.jobs import ItemFilter
from tests.services.job_yard import START, TICK, JobYard, Writing, feed, job_yard, run_out, settle


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[JobYard]:
    async with job_yard(tmp_path) as yard:
        await yard.beat()
        yield yard


async def test_items_that_have_not_begun_when_the_time_is_over_are_cancelled(yard: JobYard) -> None:
    job_id = await yard.job(10, max_seconds=100, concurrency=2)
    await feed(yard)
    assert (await yard.got(job_id)).deadline == START + TICK + 100
    running = await yard.take()
    await yard.dispatcher.round()
    assert (await yard.got(job_id)).status is JobStatus.RUNNING
    yard.clock.now += 100
    assert not await yard.store.batches.renew("w1", [batch.id for batch in running], yard.clock() + 15)
    await yard.dispatcher.round()
    job = await yard.got(job_id)
    begun = sum(batch.left for batch in running)
    assert (job.status, job.counts.in_progress, job.counts.cancelled) == (JobStatus.CANCELLING, begun, 10 - begun)
    assert job.error is not None
    assert "100 s" in job.error.message
    for batch in running:
        await yard.store.batches.give_back(batch.id, "w1", yard.clock())
    await settle(yard)
    assert (await yard.got(job_id)).status is JobStatus.CANCELLED
    (told,) = await yard.told(job_id, "budget")
    assert (told["budget"], told["state"], told["allowed"]) == ("max_seconds", "used_up", 100)
    assert {"status": "cancelling", "reason": "max_seconds"} in await yard.told(job_id, "status")


async def test_another_leader_keeps_the_time(tmp_path: Path, yard: JobYard) -> None:
    job_id = await yard.job(4, max_seconds=100)
    await feed(yard)
    yard.clock.now += max(100, LEAD_SECONDS) + 1
    other = yard.leading(tmp_path, Writing().finish)
    assert await other.round()
    await other.idle()
    await other.stop()
    job = await yard.got(job_id)
    assert (job.status, job.counts.cancelled) == (JobStatus.CANCELLED, 4), "what nobody had taken is withdrawn"


async def test_pauses_count_and_the_time_before_the_first_item_does_not(yard: JobYard) -> None:
    job_id = await yard.job(4, max_seconds=100, concurrency=1)
    yard.clock.now += 1000
    await yard.dispatcher.round()
    await feed(yard)
    assert (await yard.got(job_id)).deadline == yard.clock() + 100
    await yard.work()
    await yard.store.jobs.set_paused(job_id, True, "by hand", yard.clock())
    yard.clock.now += 101
    await yard.beat()
    await yard.dispatcher.round()
    assert (await yard.got(job_id)).status is JobStatus.CANCELLED


@pytest.mark.parametrize("how", ["resume", "redrive"])
async def test_a_job_that_goes_on_has_its_time_anew(yard: JobYard, how: str) -> None:
    job_id = await yard.job(4, max_seconds=100)
    await feed(yard)
    yard.clock.now += 200
    await settle(yard)
    assert (await yard.got(job_id)).status is JobStatus.CANCELLED
    if how == "resume":
        await yard.store.jobs.reopen(job_id, yard.clock())
    else:
        await yard.store.items.redrive(job_id, ItemFilter(), None, yard.clock())
    job = await yard.got(job_id)
    assert (job.deadline, job.error) == (None, None)
    await yard.beat()
    assert await run_out(yard) == 4
    await settle(yard)
    assert (await yard.got(job_id)).status is JobStatus.COMPLETED


async def test_a_changed_limit_moves_the_end(yard: JobYard) -> None:
    job_id = await yard.job(4, max_seconds=100, concurrency=1)
    await feed(yard)
    began = yard.clock()
    policy = (await yard.got(job_id)).policy
    longer = await yard.store.jobs.set_policy(job_id, replace(policy, max_seconds=150))
    assert longer is not None
    assert longer.deadline == began + 150
    without = await yard.store.jobs.set_policy(job_id, replace(policy, max_seconds=None))
    assert without is not None
    assert without.deadline is None
    yard.clock.now += 1000
    await yard.beat()
    await yard.dispatcher.round()
    assert (await yard.got(job_id)).status is JobStatus.RUNNING


async def test_a_job_in_time_is_completed(yard: JobYard) -> None:
    job_id = await yard.job(4, max_seconds=100)
    await run_out(yard)
    await settle(yard)
    yard.clock.now += 1000
    await settle(yard)
    job = await yard.got(job_id)
    assert (job.status, job.error) == (JobStatus.COMPLETED, None)
