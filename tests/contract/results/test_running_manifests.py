"""Manifests of jobs that still run: on every database."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.model import ExitReason
from scrapeyard.model.job import (
    Batch,
    BatchItem,
    ExportWish,
    ItemOutcome,
    ItemStatus,
    Job,
    JobPolicy,
    JobStatus,
    NewItem,
)
from scrapeyard.results import artifacts
from scrapeyard.results.feeding import item_blocks
from scrapeyard.results.manifests import ManifestIndex, write_manifests
from scrapeyard.results.running_manifests import LOOK_SECONDS, RunningManifests, read_index
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.sql import SqlStore
from tests.contract.results.test_item_objects import Killed, MortalBlobs
from tests.services.job_yard import Clock

NOW = 1_700_000_000.0


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


class Running:
    """A job that runs, and the duty that lists what it has."""

    def __init__(self, store: SqlStore, blobs: Any) -> None:
        self.store = store
        self.blobs = blobs
        self.clock = Clock()
        self._batches = 0

    async def create(
        self, count: int, results: Any = "objects", exports: tuple[ExportWish, ...] = (), *, read: bool = True
    ) -> None:
        """Without `read` its list is still being read."""
        policy = JobPolicy(results=results)
        job = Job(
            id="job_1", status=JobStatus.CREATING, scraper="shop/product", pinned="shop/product@1.0.0", created_at=NOW,
            reading=True, policy=policy, exports=exports,
        )  # fmt: skip
        assert await self.store.jobs.create(job)
        for block, first in enumerate(range(0, count, 1000)):
            new = [NewItem(key=f"k{n}", input=Raw(b'{"n":%d}' % n)) for n in range(first, min(count, first + 1000))]
            await self.store.items.add("job_1", new, block, NOW)
        if read:
            await self.read()

    async def read(self) -> None:
        await self.store.jobs.end_reading("job_1", 0, "", NOW)

    async def work(self, most: int = 10**9, hold: Sequence[int] = ()) -> list[tuple[str, BatchItem]]:
        """End items, every third one badly; but not those to hold, which stay out. (batch, item) of each held one."""
        held = []
        while most > 0:
            self._batches += 1
            batch = Batch(id=f"batch_{self._batches}", job_id="job_1", left=min(500, most), queued_at=NOW)
            cut = await self.store.batches.cut(batch, NOW)
            if cut is None:
                break
            taken = await self.store.batches.take(cut.id, "w1", NOW, NOW + 1000)
            assert taken is not None
            ready = [item for item in taken[2] if item.seq not in hold]
            held += [(cut.id, item) for item in taken[2] if item.seq in hold]
            await self.store.batches.record(cut.id, "w1", 0, [ended(item) for item in ready], NOW)
            most -= len(taken[2])
        return held

    async def release(self, held: Sequence[tuple[str, BatchItem]]) -> None:
        for batch_id, item in held:
            assert await self.store.batches.record(batch_id, "w1", 1, [ended(item)], NOW) is not None

    async def round(self, blobs: Any = None, *, duty: RunningManifests | None = None) -> None:
        self.clock.now += LOOK_SECONDS
        await (duty or RunningManifests(self.store, blobs or self.blobs, self.clock)).run_once()

    async def job(self) -> Job:
        found = await self.store.jobs.get("job_1")
        assert found is not None
        return found

    async def index(self) -> ManifestIndex | None:
        """As it is, after every part that it names was looked at."""
        found = await read_index(self.blobs, await self.job())
        for each in (file for kind in found.manifests.values() for file in kind.files) if found else ():
            data = await artifacts.read(self.blobs, each.key)
            assert (len(data), hashlib.sha256(data).hexdigest()) == (each.bytes, each.digest)
            assert len(json.loads(data)["entries"]) == each.items
        return found

    async def listed(self) -> tuple[int, int, int] | None:
        """Parts of each kind."""
        found = await self.index()
        return None if found is None else tuple(found.manifests[kind].parts for kind in keys.MANIFESTS)  # type: ignore[return-value]

    async def finish(self) -> None:
        assert await self.store.jobs.move("job_1", JobStatus.RUNNING, JobStatus.FINISHING, NOW)
        await write_manifests(item_blocks(self.store.items, "job_1"), self.blobs, await self.job())


def ended(item: BatchItem) -> ItemOutcome:
    reason = ExitReason.FAILED if item.seq % 3 == 0 else ExitReason.SUCCEEDED
    found = Raw(b'{"n":%d}' % item.seq) if reason is ExitReason.SUCCEEDED else None
    return ItemOutcome(
        seq=item.seq, attempt=item.attempt, exit_reason=reason, result=found, started_at=NOW + item.seq,
        finished_at=NOW + item.seq,
    )  # fmt: skip


@pytest.fixture
async def running(store: SqlStore, blobs: ObjectBlobs) -> Running:
    return Running(store, blobs)


async def bytes_of(running: Running) -> dict[str, bytes]:
    found = await running.index()
    assert found is not None
    names = [file.key for kind in found.manifests.values() for file in kind.files]
    return {name: await artifacts.read(running.blobs, name) for name in names}


async def test_parts_appear_while_the_job_runs_and_never_change(running: Running) -> None:
    await running.create(3500)
    duty = RunningManifests(running.store, running.blobs, running.clock)
    await running.round(duty=duty)
    assert await running.listed() is None
    await running.work(1500)
    await running.round(duty=duty)
    assert await running.listed() == (1, 0, 0)
    first = await bytes_of(running)
    await running.work(1500)
    await running.round(duty=duty)
    assert await running.listed() == (3, 2, 1)
    more = await bytes_of(running)
    assert first.items() <= more.items()
    await running.work()
    await running.round(duty=duty)
    await running.finish()
    assert await running.listed() == (4, 3, 2)
    assert more.items() <= (await bytes_of(running)).items()
    found = await running.index()
    assert found is not None
    assert (found.complete, found.items, found.counts) == (True, 3500, {"success": 2333, "error": 1167})


async def test_a_part_waits_for_the_last_of_its_items(running: Running) -> None:
    await running.create(2200)
    held = await running.work(hold=[7, 1999])
    await running.round()
    assert await running.listed() == (0, 0, 0)
    await running.release(held[:1])
    await running.round()
    assert await running.listed() == (1, 0, 0)
    await running.release(held[1:])
    await running.round()
    assert await running.listed() == (2, 1, 0)


async def test_whatever_is_killed_the_index_names_what_is_there(running: Running) -> None:
    await running.create(3100)
    await running.work(3050)
    kills = 0
    for dies_at in range(20):
        try:
            await running.round(MortalBlobs(running.blobs, dies_at))
            break
        except Killed:
            kills += 1
            assert await running.listed() is None
    assert kills == 7  # three parts of all, two of successes, one of errors, the index
    assert await running.listed() == (3, 2, 1)


async def test_a_redrive_voids_the_index_and_the_parts_come_anew(running: Running) -> None:
    await running.create(1200)
    await running.work()
    duty = RunningManifests(running.store, running.blobs, running.clock)
    await running.round(duty=duty)
    assert await running.listed() == (1, 0, 0)
    failed = ItemFilter(statuses=(ItemStatus.ERROR,))
    assert await running.store.items.redrive("job_1", failed, None, NOW) == 400
    assert await running.listed() is None
    await running.round(duty=duty)
    assert await running.listed() == (0, 0, 0)
    await running.work()
    await running.round(duty=duty)
    assert await running.listed() == (1, 0, 0)
    await running.finish()
    assert await running.store.jobs.move("job_1", JobStatus.FINISHING, JobStatus.COMPLETED, NOW)
    assert await running.store.items.redrive("job_1", failed, None, NOW) == 400
    assert await running.listed() is None


async def test_another_dispatcher_goes_on_where_the_first_stopped(running: Running) -> None:
    await running.create(2100)
    await running.work(1000)
    await running.round()
    first = await bytes_of(running)
    await running.work(1000)
    counted = MortalBlobs(running.blobs, 100)
    before = counted._left
    await running.round(counted)
    assert await running.listed() == (2, 1, 0)
    assert first.items() <= (await bytes_of(running)).items()
    assert before is not None
    assert counted._left == before - 3  # the second part, one of successes, the index


async def test_a_job_without_objects_has_none_until_it_ends(running: Running) -> None:
    await running.create(1100, results="rows")
    await running.work()
    await running.round(MortalBlobs(running.blobs, 0))
    assert await running.listed() is None
    await running.finish()
    assert await running.listed() is None


async def test_a_job_that_has_ended_gets_no_index_any_more(running: Running) -> None:
    await running.create(1100)
    await running.work()
    duty = RunningManifests(running.store, MortalBlobs(running.blobs, 0), running.clock)
    assert await running.store.jobs.move("job_1", JobStatus.RUNNING, JobStatus.FINISHING, NOW)
    await running.round(duty=duty)
    await duty._advance("job_1")
    await duty.leave()
