"""A cancelled job is final at once, and its manifests and exports follow, whatever happens meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.leader import LEAD_SECONDS
from scrapeyard.errors import NotFound
from scrapeyard.model.export import ExportState
from scrapeyard.model.job import ExportWish, ItemStatus, Job, JobStatus
from scrapeyard.results import artifacts
from scrapeyard.results.changes import ChangesMetadata
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.finishing import Finisher
from scrapeyard.results.manifests import read_metadata
from scrapeyard.store.ports.jobs import ItemFilter
from tests.contract.finished_jobs import finished_job, good
from tests.services.job_yard import JobYard, Writing, job_yard

FULL, DIFF = ExportWish(type="full", format="jsonl"), ExportWish(type="diff", format="jsonl")


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[JobYard]:
    async with job_yard(tmp_path) as yard:
        yield yard


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


def finisher(yard: JobYard, blobs: ObjectBlobs) -> Finisher:
    return Finisher(yard.store, blobs, Exporter(yard.store, blobs, yard.clock), yard.clock)


async def cancelled_half_way(yard: JobYard, job_id: str, *, pages: int, read: int) -> Job:
    """Some of its pages were read well, the others never."""
    ended = await finished_job(yard.store, [good(n) for n in range(pages)], job_id=job_id, exports=[FULL, DIFF])
    assert await yard.store.jobs.move(job_id, JobStatus.FINISHING, JobStatus.COMPLETED, yard.clock())
    await yard.store.items.redrive(job_id, ItemFilter(statuses=(ItemStatus.SUCCESS,), first=read), None, yard.clock())
    await yard.store.jobs.cancel(job_id, False, yard.clock())
    job = await yard.got(ended.id)
    assert (job.counts.success, job.counts.cancelled) == (read, pages - read)
    return job


async def test_a_cancelled_job_gets_manifests_and_exports_of_every_item(yard: JobYard, blobs: ObjectBlobs) -> None:
    job = await cancelled_half_way(yard, "job_1", pages=5, read=2)
    for _ in range(2):  # a second time after a crash
        await finisher(yard, blobs).finish(job)
        metadata = await read_metadata(blobs, job.id)
        assert metadata.counts == {**metadata.counts, "total": 5, "success": 2, "cancelled": 3}
        assert {kind: found.items for kind, found in metadata.manifests.items()} == {
            "full": 5,
            "success": 2,
            "errors": 0,
        }
        made = {export.wish: export for export in await yard.store.exports.of_job(job.id)}
        assert {export.state for export in made.values()} == {ExportState.DONE}
        rows = [msgspec.json.decode(line) for line in (await blobs.get(made[FULL].key)).splitlines()]
        assert len(rows) == 5


async def test_a_cancelled_crawl_calls_no_page_removed(yard: JobYard, blobs: ObjectBlobs) -> None:
    await finisher(yard, blobs).finish(
        await finished_job(yard.store, [good(n) for n in range(6)], job_id="job_1", exports=[DIFF])
    )
    job = await cancelled_half_way(yard, "job_2", pages=4, read=2)  # 2 never read, 2 not on the list as far as it came
    await finisher(yard, blobs).finish(job)
    found = msgspec.json.decode(await artifacts.read(blobs, keys.changes_metadata("job_2")), type=ChangesMetadata)
    assert found.counts == {"UNCHANGED": 2}
    last = await finished_job(yard.store, [good(n) for n in range(5)], job_id="job_3", exports=[DIFF])
    await finisher(yard, blobs).finish(last)
    found = msgspec.json.decode(await artifacts.read(blobs, keys.changes_metadata("job_3")), type=ChangesMetadata)
    assert found.counts == {"REMOVED": 1, "UNCHANGED": 5}


async def test_nothing_stays_of_a_job_that_is_deleted_while_its_files_are_written(
    tmp_path: Path, yard: JobYard, blobs: ObjectBlobs
) -> None:
    job = await cancelled_half_way(yard, "job_1", pages=3, read=1)
    assert await yard.store.jobs.begin_delete(job.id)
    await blobs.delete_prefix([keys.job_prefix(job.id)])
    await finisher(yard, blobs).finish(job)  # marked, and its rows still there
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert await yard.store.jobs.delete(job.id)
    await finisher(yard, blobs).finish(job)  # gone
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    with pytest.raises(NotFound):
        await read_metadata(blobs, job.id)


async def test_a_cancelled_job_is_final_at_once_and_its_files_follow(tmp_path: Path, yard: JobYard) -> None:
    began, release = asyncio.Event(), asyncio.Event()

    async def finish(_: Job) -> None:
        began.set()
        await release.wait()

    dispatcher = yard.leading(tmp_path, finish)
    job_id = await yard.job(3)
    await yard.store.jobs.cancel(job_id, False, yard.clock())
    await dispatcher.round()
    await began.wait()
    job = await yard.got(job_id)
    assert (job.status, job.files_pending) == (JobStatus.CANCELLED, True)
    release.set()
    await dispatcher.idle()
    assert await yard.got(job_id) == replace(job, files_pending=False)
    began.clear()
    await dispatcher.round()
    await dispatcher.idle()
    assert not began.is_set()


async def test_another_leader_writes_the_files_of_a_cancelled_job(
    tmp_path: Path, yard: JobYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapeyard.dispatch.leader.STOP_SECONDS", 0.1)
    writing = Writing()
    job_id = await yard.job(3)
    await yard.store.jobs.cancel(job_id, False, yard.clock())
    first, second = yard.leading(tmp_path, writing.stuck), yard.leading(tmp_path, writing.finish)
    await first.round()
    await writing.began.wait()
    await first.stop()
    yard.clock.now += LEAD_SECONDS + 1
    assert await second.round()
    await second.idle()
    assert writing.written == [job_id]
    assert not (await yard.got(job_id)).files_pending


async def test_files_of_a_job_that_was_redriven_and_cancelled_again_are_written_again(
    tmp_path: Path, yard: JobYard
) -> None:
    seen: list[float | None] = []

    async def finish(job: Job) -> None:
        seen.append(job.finished_at)
        if len(seen) == 1:
            await yard.store.items.redrive(job.id, ItemFilter(), None, yard.clock())
            yard.clock.now += 1
            await yard.store.jobs.cancel(job.id, False, yard.clock())

    dispatcher = yard.leading(tmp_path, finish)
    job_id = await yard.job(3)
    await yard.store.jobs.cancel(job_id, False, yard.clock())
    for pending in (True, False):
        await dispatcher.round()
        await dispatcher.idle()
        assert (await yard.got(job_id)).files_pending is pending
    assert seen == [yard.clock() - 1, yard.clock()]


async def test_a_cancelled_job_whose_files_can_never_be_written_says_so(tmp_path: Path, yard: JobYard) -> None:
    async def finish(_: Job) -> None:
        raise ValueError("always")

    dispatcher = yard.leading(tmp_path, finish)
    job_id = await yard.job(3)
    await yard.store.jobs.cancel(job_id, False, yard.clock())
    for _ in range(5):
        assert (await yard.got(job_id)).files_pending
        await dispatcher.round()
        await dispatcher.idle()
        yard.clock.now += 61
    job = await yard.got(job_id)
    assert (job.status, job.files_pending) == (JobStatus.CANCELLED, False)
    told = (await yard.told(job_id, "status"))[-1]
    assert (told["status"], "could not be written" in told["problem"]) == ("cancelled", True)
