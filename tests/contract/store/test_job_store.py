"""Creating, filling and removing jobs, on SQLite and on PostgreSQL."""

import asyncio

import pytest
from msgspec import Raw, structs

from scrapeyard.model.job import (
    BreakerPolicy,
    BreakerState,
    Counts,
    ExportWish,
    JobPolicy,
    JobStatus,
    NewItem,
)
from scrapeyard.store.ports.jobs import ITEM_BLOCK, DeadLetterFilter, ItemFilter
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import a_job, a_retry, a_success, new_items
from tests.contract.job_steps import a_running_job, an_ended_job, fetched, taken
from tests.contract.nouns import NOW

NO_IDS = ("job_none", "", "job_\x00", "job_\ud800", "x" * 10_000)


class TestCreate:
    async def test_a_job_returns_as_it_was_given(self, store: Store) -> None:
        job = a_job(
            name="한국",
            owner="key-1",
            lane="slow",
            policy=JobPolicy(rate=2.5, breaker=BreakerPolicy(failures=3)),
            exports=(ExportWish(type="full", format="csv"),),
            webhook=Raw(b'{"url": "http://hook.example/"}'),
            source={"kind": "csv", "rows": 3},
            schedule_id="schedule_1",
        )
        assert await store.jobs.create(job)
        assert await store.jobs.get(job.id) == job
        assert not await store.jobs.create(structs.replace(job, name="other"))
        assert await store.jobs.get(job.id) == job

    async def test_what_is_not_there(self, store: Store) -> None:
        for job_id in NO_IDS:
            assert await store.jobs.get(job_id) is None
            assert await store.items.add(job_id, new_items(1), 0, NOW) is None
            assert await store.jobs.end_reading(job_id, 0, "", NOW) is None
            assert await store.jobs.set_paused(job_id, True, "", NOW) is None
            assert await store.jobs.cancel(job_id, True, NOW) is None
            assert await store.items.redrive(job_id, ItemFilter(), None, NOW) is None
            assert not await store.jobs.set_source(job_id, {})
            assert not await store.jobs.delete(job_id)
            assert not await store.jobs.move(job_id, JobStatus.RUNNING, JobStatus.FINISHING, NOW)
            assert (await store.items.page(job_id, ItemFilter(), None, 10)).items == ()
            assert await store.items.get(job_id, "item-1") is None
            assert await store.batches.out(job_id) == []
            assert await store.events.after(job_id, 0, 10) == []
            assert await store.items.recount(job_id) == Counts()
            assert await store.batches.take(job_id, "worker-1", NOW, NOW + 1) is None
            assert await store.batches.record(job_id, "worker-1", 0, [], NOW) is None
            assert await store.batches.renew("worker-1", [job_id], NOW) == [job_id]
            await store.batches.give_back(job_id, "worker-1", NOW)
            await store.events.add(job_id, "status", Raw(b"{}"), NOW)
            await store.jobs.set_breaker(job_id, BreakerState(), None, "")

    async def test_items_are_numbered_without_a_gap_and_a_key_is_there_once(self, store: Store) -> None:
        job = a_job()
        await store.jobs.create(job)
        assert await store.items.add(job.id, new_items(3), 0, NOW) == 3
        assert await store.items.add(job.id, [*new_items(4, 1), *new_items(2, 4)], 1, NOW) == 3
        found = (await store.items.page(job.id, ItemFilter(), None, 100)).items
        assert [(item.seq, item.key) for item in found] == [(number, f"item-{number}") for number in range(6)]
        assert (await fetched(store, job)).counts == Counts(total=6, pending=6)

    async def test_a_block_counts_once_for_its_source(self, store: Store) -> None:
        job = a_job()
        await store.jobs.create(job)
        for source, first in (("", 0), ("append-1", 10)):
            for _ in range(2):
                assert await store.items.add(job.id, new_items(3, first), 0, NOW, source=source) == 3
        assert (await fetched(store, job)).counts.total == 6

    async def test_a_block_too_large_is_refused(self, store: Store) -> None:
        with pytest.raises(ValueError, match="at most 1000"):
            await store.items.add("job_1", new_items(ITEM_BLOCK + 1), 0, NOW)

    async def test_blocks_added_at_once_do_not_meet(self, store: Store) -> None:
        job = a_job()
        await store.jobs.create(job)
        blocks = [store.items.add(job.id, new_items(100, first * 50), first, NOW) for first in range(8)]
        added = await asyncio.gather(*blocks)
        assert sum(count or 0 for count in added) == 450
        assert (await fetched(store, job)).counts.total == 450

    @pytest.mark.parametrize("raw", [b'{ "a" :1.0}', b'{"nul":"\\u0000 \\ud83d\\ude00"}', '{"k":"한국"}'.encode()])
    async def test_input_and_result_are_kept_to_the_byte(self, store: Store, raw: bytes) -> None:
        job = a_job()
        await store.jobs.create(job)
        await store.items.add(job.id, [NewItem(key="a" * 128, input=Raw(raw))], 0, NOW)
        batch, items = await taken(store, job)
        assert bytes(items[0].input) == raw
        await store.batches.record(batch, "worker-1", 0, [a_success(items[0], result=Raw(raw))], NOW)
        item = await store.items.get(job.id, "a" * 128)
        assert item is not None
        assert item.result is not None
        assert (bytes(item.input), bytes(item.result)) == (raw, raw)

    async def test_a_list_that_breaks_fails_the_job(self, store: Store) -> None:
        job = a_job()
        await store.jobs.create(job)
        await store.items.add(job.id, new_items(5), 0, NOW)
        batch, items = await taken(store, job, 2)
        failed = await store.jobs.end_reading(job.id, 3, "line 6: not CSV", NOW)
        assert failed is not None
        assert (failed.status, failed.finished_at, failed.skipped_rows) == (JobStatus.FAILED, NOW, 3)
        assert failed.error is not None
        assert failed.error.message == "line 6: not CSV"
        assert failed.counts == Counts(total=5, in_progress=2, cancelled=3)
        assert await store.batches.renew("worker-1", [batch], NOW + 30) == [batch]
        await store.batches.record(batch, "worker-1", 0, [a_success(items[0]), a_retry(items[1])], NOW)
        assert (await fetched(store, job)).counts == Counts(total=5, success=1, cancelled=4)
        assert await store.items.add(job.id, new_items(1, 9), 1, NOW) is None

    async def test_the_source_is_written_over(self, store: Store) -> None:
        job = await a_running_job(store, 1)
        assert await store.jobs.set_source(job.id, {"line": 7})
        assert (await fetched(store, job)).source == {"line": 7}


class TestDelete:
    async def test_only_a_final_job_and_all_of_it(self, store: Store) -> None:
        kept, job = await an_ended_job(store), await an_ended_job(store)
        assert not await store.jobs.delete(job.id)
        await store.jobs.cancel(job.id, False, NOW)
        assert await store.jobs.delete(job.id)
        assert not await store.jobs.delete(job.id)
        assert await store.jobs.get(job.id) is None
        letters, _ = await store.items.dead_letters(DeadLetterFilter(), None, 10)
        assert {job_id for job_id, _ in letters} == {kept.id}
        assert (await fetched(store, kept)).counts.total == 4
