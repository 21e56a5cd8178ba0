"""The outcomes of a batch on their way to a real store that is away, slow, or says no."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.errors import StoreUnavailable
from scrapeyard.model import ExitReason, new_id
from scrapeyard.model.job import Batch, BatchItem, ItemOutcome, ItemStatus, Job, JobStatus, NewItem
from scrapeyard.store.ports.jobs import ItemFilter, Recorded
from scrapeyard.store.sql import SqlStore
from scrapeyard.worker.batches import records as batch_records
from scrapeyard.worker.batches.records import MOST_WAITING, PART, BatchRecords
from tests.leaks import PATIENCE
from tests.services.sqlite import migrated

WORKER = "worker_1"
LEASE = 600.0


class Moody:
    """A real store whose records may be refused an answer, before or after they were written."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.away_before = 0
        self.away_after = 0
        self.unwritable: set[int] = set()
        self.parts: list[int] = []
        self.open = asyncio.Event()
        self.open.set()

    async def record(
        self, batch_id: str, worker_id: str, part: int, outcomes: Sequence[ItemOutcome], now: float, *, begun: int
    ) -> Recorded | None:
        await self.open.wait()
        if self.away_before:
            self.away_before -= 1
            raise StoreUnavailable("away")
        if any(o.seq in self.unwritable and o.exit_reason is ExitReason.SUCCEEDED for o in outcomes):
            raise ValueError("the database does not take this")
        self.parts.append(len(outcomes))
        recorded = await self.store.batches.record(batch_id, worker_id, part, outcomes, now, begun=begun)
        if self.away_after:
            self.away_after -= 1
            raise StoreUnavailable("the answer was lost")
        return recorded


class Stand:
    """One batch that was taken, and its records."""

    def __init__(self, store: SqlStore, batch: Batch, items: list[BatchItem]) -> None:
        self.store = store
        self.batch = batch
        self.items = items
        self.moody = Moody(store)
        self.refusals = 0
        self.records = BatchRecords(self.moody, batch, time.time() + LEASE, self._refuse)  # type: ignore[arg-type]

    def _refuse(self) -> None:
        self.refusals += 1

    def outcome(self, item: BatchItem, **given: Any) -> ItemOutcome:
        plain = ItemOutcome(
            seq=item.seq,
            attempt=item.attempt,
            exit_reason=ExitReason.SUCCEEDED,
            result=Raw(b"1"),
            result_bytes=1,
            started_at=1.0,
            finished_at=2.0,
        )
        return replace(plain, **given)

    async def record_all(self) -> None:
        running = asyncio.create_task(self.records.run())
        for item in self.items:
            await self.records.begin()
            await self.records.add(self.outcome(item))
        self.records.end()
        await running

    async def begun(self) -> int | None:
        """How many items have begun, as the store knows."""
        (batch,) = await self.store.batches.out(self.batch.job_id)
        return batch.begun

    async def statuses(self) -> dict[ItemStatus, int]:
        counts: dict[ItemStatus, int] = {}
        async for block in self.store.items.stream(self.batch.job_id, ItemFilter()):
            for item in block:
                counts[item.status] = counts.get(item.status, 0) + 1
        return counts


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Any]:
    store = SqlStore(migrated(tmp_path / "jobs.db"))
    await store.start()

    async def make(count: int, *, lost_before: bool = False) -> Stand:
        now = time.time()
        job = Job(id=new_id("job"), status=JobStatus.CREATING, scraper="a/b", pinned="a/b@1.0.0", created_at=now)
        assert await store.jobs.create(job)
        items = [NewItem(key=f"k{n}", input=Raw(b"{}")) for n in range(count)]
        for block in range(0, count, 1000):
            await store.items.add(job.id, items[block : block + 1000], block // 1000, now)
        await store.jobs.end_reading(job.id, 0, "", now)
        for lease in (0.0, LEASE) if lost_before else (LEASE,):
            await store.batches.expire(now, 10)
            batch = await store.batches.cut(Batch(id=new_id("batch"), job_id=job.id, left=count, queued_at=now), now)
            assert batch is not None
            taken = await store.batches.take(batch.id, WORKER, now, now + lease - 1)
            assert taken is not None
        return Stand(store, taken[0], taken[2])

    yield make
    await store.stop()


async def stuck(records: BatchRecords) -> None:
    """Until no more is added, though everybody has had many turns since."""
    async with asyncio.timeout(PATIENCE):
        while records._room.is_set():
            await asyncio.sleep(0.01)
    for _ in range(100):
        await asyncio.sleep(0)


async def test_outcomes_go_in_parts_and_none_is_left(stand: Any) -> None:
    made = await stand(2 * PART + 3)
    await made.record_all()
    assert sum(made.moody.parts) == 2 * PART + 3
    assert max(made.moody.parts) <= PART
    assert 0 not in made.moody.parts, "the start of an item costs no write of its own"
    assert made.records.left == 0
    assert await made.statuses() == {ItemStatus.SUCCESS: 2 * PART + 3}


@pytest.mark.parametrize(("before", "after"), [(3, 0), (0, 1), (2, 2)])
async def test_a_store_that_is_away_is_asked_again_and_nothing_is_lost(
    stand: Any, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    monkeypatch.setattr(batch_records, "_FIRST_REST", 0.001)
    made = await stand(PART + 10)
    made.moody.away_before, made.moody.away_after = before, after
    await made.record_all()
    assert await made.statuses() == {ItemStatus.SUCCESS: PART + 10}
    assert made.refusals == 0
    assert made.records.left == 0


async def test_a_store_that_is_away_for_longer_than_the_lease_voids_what_waits(stand: Any) -> None:
    made = await stand(5)
    made.moody.away_before = 1_000
    made.records.lease_until = time.time() + 0.3
    await made.record_all()
    assert made.records.refused
    assert made.refusals == 1
    assert await made.statuses() == {ItemStatus.IN_PROGRESS: 5}


async def test_a_batch_that_is_anothers_is_left_to_him(stand: Any) -> None:
    made = await stand(5)
    await made.store.batches.give_back(made.batch.id, WORKER, time.time())
    await made.record_all()
    assert made.refusals == 1
    assert await made.statuses() == {ItemStatus.PENDING: 5}
    await made.records.add(made.outcome(made.items[0]))


async def test_who_has_too_much_waiting_waits_with_it(stand: Any) -> None:
    made = await stand(MOST_WAITING + 500)
    made.moody.open.clear()
    adding = asyncio.create_task(made.record_all())
    await stuck(made.records)
    assert not adding.done()
    assert len(made.records._waiting) == MOST_WAITING
    made.moody.open.set()
    await adding
    assert await made.statuses() == {ItemStatus.SUCCESS: MOST_WAITING + 500}


async def test_large_results_wait_in_a_bounded_number(stand: Any) -> None:
    made = await stand(40)
    made.moody.open.clear()
    running = asyncio.create_task(made.records.run())

    async def add() -> None:
        for item in made.items:
            await made.records.add(made.outcome(item, result_bytes=1024 * 1024))

    adding = asyncio.create_task(add())
    await stuck(made.records)
    assert not adding.done()
    assert len(made.records._waiting) == 8
    made.moody.open.set()
    await adding
    made.records.end()
    await running
    assert await made.statuses() == {ItemStatus.SUCCESS: 40}


async def test_an_outcome_that_cannot_be_written_takes_no_other_along(stand: Any) -> None:
    made = await stand(20)
    made.moody.unwritable = {3, 17}
    await made.record_all()
    assert await made.statuses() == {ItemStatus.SUCCESS: 18, ItemStatus.ERROR: 2}
    assert made.records.left == 0


async def test_outcomes_do_not_wait_long_for_company(stand: Any) -> None:
    made = await stand(3)
    running = asyncio.create_task(made.records.run())
    await made.records.add(made.outcome(made.items[0]))
    async with asyncio.timeout(PATIENCE):
        while not made.moody.parts:
            await asyncio.sleep(0.01)
    made.records.end()
    await running
    assert made.moody.parts == [1]
    assert made.records.left == 2


async def test_an_item_begins_at_once_and_the_store_learns_of_it_with_the_next_outcome(stand: Any) -> None:
    made = await stand(3)
    running = asyncio.create_task(made.records.run())
    assert await made.records.begin()
    assert await made.records.begin()
    await made.records.add(made.outcome(made.items[0]))
    async with asyncio.timeout(PATIENCE):
        while not made.moody.parts:
            await asyncio.sleep(0.01)
    made.records.end()
    await running
    assert made.moody.parts == [1]
    assert await made.begun() == 2


async def test_the_store_learns_of_an_item_that_takes_long(stand: Any) -> None:
    made = await stand(3)
    running = asyncio.create_task(made.records.run())
    assert await made.records.begin()
    async with asyncio.timeout(PATIENCE):
        while not await made.begun():
            await asyncio.sleep(0.01)
    made.records.end()
    await running
    assert made.moody.parts == [0]


async def test_an_item_of_a_batch_that_was_lost_before_begins_when_the_store_knows(stand: Any) -> None:
    made = await stand(3, lost_before=True)
    running = asyncio.create_task(made.records.run())
    made.moody.open.clear()
    assert await made.records.begin()
    beginning = asyncio.create_task(made.records.begin())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not beginning.done()
    made.moody.open.set()
    assert await beginning
    assert await made.begun() == 2
    assert await made.records.begin()
    assert await made.begun() == 3
    made.records.end()
    await running


async def test_an_item_of_a_batch_that_is_anothers_does_not_begin(stand: Any) -> None:
    made = await stand(3, lost_before=True)
    running = asyncio.create_task(made.records.run())
    assert await made.records.begin()
    await made.store.batches.give_back(made.batch.id, WORKER, time.time())
    assert not await made.records.begin()
    made.records.end()
    await running
    assert made.refusals == 1
