"""How jobs end, on real embedded backends, with a clock moved by hand: files, cancelling, redrive, retention."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.leader import LEAD_SECONDS, Dispatcher
from scrapeyard.dispatch.upkeep.lost_deliveries import GRACE_SECONDS
from scrapeyard.errors import BlobsUnavailable
from scrapeyard.model import ExitReason, Priority
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import ItemFilter
from tests.leaks import PATIENCE
from tests.services.job_yard import JobYard, Writing, feed, job_yard, run_out, settle


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[JobYard]:
    async with job_yard(tmp_path) as yard:
        yield yard


async def test_a_job_is_finished_once_its_files_are_written(tmp_path: Path, yard: JobYard) -> None:
    written: list[str] = []
    release = asyncio.Event()

    async def finish(job: Job) -> None:
        written.append(job.id)
        await release.wait()

    dispatcher = yard.leading(tmp_path, finish)
    job_id = await yard.job(3)
    await run_out(yard)
    await dispatcher.round()
    await dispatcher.round()
    assert (await yard.got(job_id)).status is JobStatus.FINISHING
    release.set()
    await dispatcher.idle()
    job = await yard.got(job_id)
    assert (job.status, job.finished_at) == (JobStatus.COMPLETED, yard.clock())
    assert written == [job_id]
    assert [told["status"] for told in await yard.told(job_id, "status")][-2:] == ["finishing", "completed"]
    await dispatcher.stop()


async def test_another_leader_writes_the_files_again(tmp_path: Path, yard: JobYard) -> None:
    writing = Writing()
    job_id = await yard.job(3)
    await run_out(yard)
    first, second = yard.leading(tmp_path, writing.stuck), yard.leading(tmp_path, writing.finish)
    await first.round()
    await writing.began.wait()
    assert not await second.round()
    yard.clock.now += LEAD_SECONDS + 1
    assert await second.round()
    assert not await first.round()  # it no longer leads, and ends what it writes
    await first.idle()
    await second.idle()
    assert (await yard.got(job_id)).status is JobStatus.COMPLETED
    assert writing.written == [job_id]


@pytest.mark.parametrize("fault", [BlobsUnavailable("away"), ValueError("ours")])
async def test_files_that_cannot_be_written_are_tried_again(tmp_path: Path, yard: JobYard, fault: Exception) -> None:
    faults = [fault]

    async def finish(_: Job) -> None:
        if faults:
            raise faults.pop()

    dispatcher = yard.leading(tmp_path, finish)
    job_id = await yard.job(3)
    await run_out(yard)
    await dispatcher.round()
    await dispatcher.idle()
    assert (await yard.got(job_id)).status is JobStatus.FINISHING
    yard.clock.now += 2
    await dispatcher.round()
    await dispatcher.idle()
    assert (await yard.got(job_id)).status is JobStatus.COMPLETED


async def test_a_job_whose_files_can_never_be_written_is_completed_all_the_same(tmp_path: Path, yard: JobYard) -> None:
    async def finish(_: Job) -> None:
        raise ValueError("always")

    dispatcher = yard.leading(tmp_path, finish)
    job_id = await yard.job(3)
    await run_out(yard)
    for _ in range(5):
        await dispatcher.round()
        await dispatcher.idle()
        yard.clock.now += 61
    assert (await yard.got(job_id)).status is JobStatus.COMPLETED
    assert "could not be written" in (await yard.told(job_id, "status"))[-1]["problem"]


async def test_a_duty_that_takes_long_holds_up_neither_the_others_nor_the_lead(
    tmp_path: Path, yard: JobYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow:
        name, waits_after_outage = "slow", False
        began = asyncio.Event()

        async def run_once(self) -> None:
            self.began.set()
            await asyncio.Event().wait()

    slow = Slow()
    job_id = await yard.job(3)
    await run_out(yard)
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    dispatcher = Dispatcher(Settings(), yard.store, yard.queue, blobs, yard.clock, more=[slow])
    await dispatcher.start()
    await slow.began.wait()
    async with asyncio.timeout(PATIENCE):
        while (await yard.got(job_id)).status is not JobStatus.COMPLETED:
            await asyncio.sleep(0.01)
    assert dispatcher.leads
    monkeypatch.setattr("scrapeyard.dispatch.leader.STOP_SECONDS", 0.1)
    await dispatcher.stop()
    assert await yard.dispatcher.round()


async def test_a_cancelled_job_ends_when_its_batches_have(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(1000)
    await feed(yard)
    batches = await yard.take()
    await yard.store.jobs.cancel(job_id, True, yard.clock())
    await settle(yard)
    assert (await yard.got(job_id)).status is JobStatus.CANCELLING
    for batch in batches:
        await yard.store.batches.give_back(batch.id, "w1", yard.clock())
    await settle(yard)
    job = await yard.got(job_id)
    assert (job.status, job.counts.cancelled) == (JobStatus.CANCELLED, 1000)


async def test_a_cancelled_job_whose_queued_batches_were_lost_ends_too(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(1000)
    await feed(yard)
    await yard.queue.take(["default"], 100, list(Priority), 0)
    await yard.store.jobs.cancel(job_id, False, yard.clock())
    yard.clock.now += GRACE_SECONDS + 1
    await yard.dispatcher.round()
    await yard.dispatcher.round()
    await yard.work()
    await settle(yard)
    job = await yard.got(job_id)
    assert job.status is JobStatus.CANCELLED
    assert job.counts.success + job.counts.cancelled == 1000


async def test_a_redriven_job_runs_and_ends_again(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(30, max_attempts=1)
    await run_out(yard, ends=lambda item: ExitReason.FAILED if item.seq % 3 == 0 else ExitReason.SUCCEEDED)
    await settle(yard)
    assert (await yard.got(job_id)).status is JobStatus.COMPLETED
    assert await yard.store.items.redrive(job_id, ItemFilter(), None, yard.clock()) == 10
    assert await run_out(yard) == 10
    await settle(yard)
    assert (await yard.got(job_id)).counts.success == 30


async def test_old_jobs_go_with_what_they_left(yard: JobYard, tmp_path: Path) -> None:
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    old = await yard.job(3)
    await run_out(yard)
    await settle(yard)
    yard.clock.now += 29 * 86_400
    fresh = await yard.job(3)
    await run_out(yard)
    await settle(yard)
    for job_id in (old, fresh):
        await blobs.put(keys.job_metadata(job_id), b"{}", "application/json")
    yard.clock.now += 2 * 86_400
    await yard.dispatcher.round()
    assert await yard.store.jobs.get(old) is None
    assert await blobs.size(keys.job_metadata(old)) is None
    assert (await yard.got(fresh)).counts.success == 3
    assert await blobs.size(keys.job_metadata(fresh)) is not None
