"""Pausing, cancelling, ending and redriving jobs, on SQLite and on PostgreSQL."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw, structs

from scrapeyard.model import ExitReason
from scrapeyard.model.job import (
    BreakerPolicy,
    BreakerState,
    Counts,
    ItemStatus,
    JobPolicy,
    JobStatus,
)
from scrapeyard.store.ports.jobs import ItemFilter, JobFilter
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import a_batch, a_job, a_retry, a_success, an_error, new_items, successes
from tests.contract.job_steps import a_running_job, an_ended_job, fetched, taken
from tests.contract.nouns import NOW
from tests.contract.store.conftest import of_sql


class TestControl:
    async def test_a_paused_job_hands_nothing_out_and_takes_back_what_nobody_holds(self, store: Store) -> None:
        job = await a_running_job(store, 4)
        batch = await store.batches.cut(a_batch(job, 2), NOW)
        assert batch is not None
        paused = await store.jobs.set_paused(job.id, True, "a person", NOW)
        assert paused is not None
        assert (paused.status, paused.pause_reason) == (JobStatus.PAUSED, "a person")
        assert await store.batches.cut(a_batch(job), NOW) is None
        assert await store.batches.take(batch.id, "worker-1", NOW, NOW + 15) is None
        assert (await fetched(store, job)).counts == Counts(total=4, pending=4)
        assert await store.jobs.runnable(NOW) == []
        resumed = await store.jobs.set_paused(job.id, False, "", NOW)
        assert resumed is not None
        assert (resumed.status, resumed.pause_reason) == (JobStatus.RUNNING, "")
        assert [one.id for one in await store.jobs.runnable(NOW)] == [job.id]

    async def test_of_several_who_pause_it_at_once_one_tells(self, store: Store) -> None:
        job = await a_running_job(store, 4)
        told = [Raw(b'{"by":%d}' % number) for number in range(5)]
        done = await asyncio.gather(
            *(store.jobs.pause_and_tell(job.id, "budget", "budget", data, NOW + 1) for data in told)
        )
        assert sorted(done) == [False] * 4 + [True]
        events = [event for event in await store.events.after(job.id, 0, 100) if event.kind == "budget"]
        assert [bytes(event.data) for event in events] == [bytes(told[done.index(True)])]
        paused = await fetched(store, job)
        assert (paused.status, paused.pause_reason) == (JobStatus.PAUSED, "budget")
        assert not await store.jobs.pause_and_tell("job_unknown", "budget", "budget", told[0], NOW)

    async def test_cancel_drains(self, store: Store) -> None:
        job = await a_running_job(store, 6)
        batch, items = await taken(store, job, 2)
        queued = await store.batches.cut(a_batch(job, 2), NOW)
        cancelled = await store.jobs.cancel(job.id, False, NOW)
        assert cancelled is not None
        assert queued is not None
        assert cancelled.status is JobStatus.CANCELLING
        assert cancelled.counts == Counts(total=6, queued=2, in_progress=2, cancelled=2)
        assert await store.jobs.settled(10) == []
        await store.batches.record(batch, "worker-1", 0, [a_success(items[0]), a_retry(items[1])], NOW)
        got = await store.batches.take(queued.id, "worker-1", NOW, NOW + 15)
        assert got is not None
        await store.batches.record(queued.id, "worker-1", 0, successes(got[2]), NOW)
        assert [one.id for one in await store.jobs.settled(10)] == [job.id]
        assert await store.jobs.move(job.id, JobStatus.CANCELLING, JobStatus.CANCELLED, NOW + 9)
        ended = await fetched(store, job)
        assert (ended.status, ended.finished_at) == (JobStatus.CANCELLED, NOW + 9)
        assert ended.counts == Counts(total=6, success=3, cancelled=3)

    async def test_cancel_kills(self, store: Store) -> None:
        job = await a_running_job(store, 6)
        batch, _ = await taken(store, job, 2)
        await store.batches.cut(a_batch(job, 2), NOW)
        killed = await store.jobs.cancel(job.id, True, NOW)
        assert killed is not None
        assert (killed.status, killed.kill) == (JobStatus.CANCELLING, True)
        assert killed.counts == Counts(total=6, in_progress=2, cancelled=4)
        assert await store.batches.renew("worker-1", [batch], NOW + 30) == [batch]
        await store.batches.give_back(batch, "worker-1", NOW)
        assert (await fetched(store, job)).counts == Counts(total=6, cancelled=6)
        ended = await store.jobs.cancel(job.id, True, NOW)
        assert ended is not None
        assert ended.status is JobStatus.CANCELLED

    async def test_the_files_of_a_cancelled_job_are_pending_until_they_are_written(self, store: Store) -> None:
        job = await a_running_job(store, 2)
        await store.jobs.cancel(job.id, False, NOW)
        first = await fetched(store, job)
        assert (first.status, first.files_pending) == (JobStatus.CANCELLED, True)
        await store.items.redrive(job.id, ItemFilter(), None, NOW + 1)
        assert not (await fetched(store, job)).files_pending
        await store.jobs.cancel(job.id, False, NOW + 2)
        assert not await store.jobs.files_written(first)  # those are of another end
        again = await fetched(store, job)
        assert [one.id for one in (await store.jobs.page(JobFilter(files_pending=True), None, 10)).jobs] == [job.id]
        assert await store.jobs.files_written(again)
        assert not await store.jobs.files_written(again)
        assert (await store.jobs.page(JobFilter(files_pending=True), None, 10)).jobs == ()
        assert not (await fetched(store, job)).files_pending

    async def test_a_job_is_open_until_it_has_ended_and_its_files_are_written(self, store: Store) -> None:
        assert not await store.jobs.any_open()
        await an_ended_job(store)
        assert await store.jobs.any_open()
        (settled,) = await store.jobs.settled(10)
        await store.jobs.move(settled.id, JobStatus.RUNNING, JobStatus.FINISHING, NOW)
        assert await store.jobs.any_open()
        await store.jobs.move(settled.id, JobStatus.FINISHING, JobStatus.COMPLETED, NOW)
        assert not await store.jobs.any_open()
        other = await a_running_job(store, 1)
        await store.jobs.set_paused(other.id, True, "a person", NOW)
        assert await store.jobs.any_open()
        await store.jobs.cancel(other.id, False, NOW)
        assert await store.jobs.any_open()
        assert await store.jobs.files_written(await fetched(store, other))
        assert not await store.jobs.any_open()

    async def test_a_job_whose_time_is_over_is_found_and_says_why_it_ended(self, store: Store) -> None:
        job = await a_running_job(store, 6, policy=JobPolicy(max_seconds=10))
        other = await a_running_job(store, 1)
        batch, items = await taken(store, job, 2)
        await store.batches.cut(a_batch(job, 2), NOW + 5)
        await store.batches.cut(a_batch(other), NOW)
        assert (await fetched(store, job)).deadline == NOW + 10
        assert await store.jobs.overdue(NOW + 9, 10) == []
        assert [one.id for one in await store.jobs.overdue(NOW + 10, 10)] == [job.id]
        ended = await store.jobs.cancel(job.id, False, NOW + 10, fault="its time is over")
        assert ended is not None
        assert (ended.status, ended.counts.in_progress, ended.counts.cancelled) == (JobStatus.CANCELLING, 2, 4)
        assert ended.error is not None
        assert ended.error.message == "its time is over"
        assert await store.jobs.overdue(NOW + 99, 10) == []
        await store.batches.record(batch, "worker-1", 0, successes(items), NOW + 11)
        assert (await fetched(store, job)).counts == Counts(total=6, success=2, cancelled=4)

    async def test_a_cancelled_job_goes_on_where_it_was(self, store: Store) -> None:
        job = await a_running_job(store, 6)
        batch, items = await taken(store, job, 3)
        ends = [a_success(items[0]), an_error(items[1]), a_retry(items[2])]
        await store.batches.record(batch, "worker-1", 0, ends, NOW)
        cancelled = await store.jobs.cancel(job.id, True, NOW + 1)
        assert cancelled is not None
        assert (cancelled.status, cancelled.counts.cancelled) == (JobStatus.CANCELLED, 4)
        for _ in range(2):
            opened = await store.jobs.reopen(job.id, NOW + 2)
            assert opened is not None
            assert opened == await fetched(store, job)
            assert (opened.status, opened.kill, opened.finished_at) == (JobStatus.RUNNING, False, None)
            assert opened.counts == Counts(total=6, pending=4, success=1, error=1)
            assert (opened.reading, opened.files_pending) == (False, False)
        assert await store.items.recount(job.id) == opened.counts
        _, again = await taken(store, job)
        _, fresh = await taken(store, job)
        assert [(item.seq, item.attempt) for item in (*again, *fresh)] == [(2, 2), (3, 1), (4, 1), (5, 1)]

    async def test_a_job_cancelled_while_its_source_was_read_reads_on(self, store: Store) -> None:
        job = a_job()
        await store.jobs.create(job)
        await store.items.add(job.id, new_items(2), 0, NOW)
        cancelled = await store.jobs.cancel(job.id, False, NOW)
        assert cancelled is not None
        assert (cancelled.reading, cancelled.unread) == (False, True)
        opened = await store.jobs.reopen(job.id, NOW)
        assert opened is not None
        assert (opened.status, opened.reading, opened.unread) == (JobStatus.RUNNING, True, False)
        assert await store.items.add(job.id, new_items(2), 0, NOW) == 2
        assert await store.items.add(job.id, new_items(1, 2), 1, NOW) == 1
        await store.jobs.end_reading(job.id, 0, "", NOW)
        assert (await fetched(store, job)).counts == Counts(total=3, pending=3)

    async def test_only_a_cancelled_job_is_opened_again(self, store: Store) -> None:
        job = await a_running_job(store, 2)
        running = await fetched(store, job)
        assert await store.jobs.reopen(job.id, NOW) == running
        await store.jobs.cancel(job.id, False, NOW)
        await store.jobs.begin_delete(job.id)
        marked = await store.jobs.reopen(job.id, NOW)
        assert marked is not None
        assert (marked.status, marked.deleting) == (JobStatus.CANCELLED, True)
        assert await store.jobs.reopen("job_missing", NOW) is None

    async def test_a_job_that_is_being_removed_is_not_run_again(self, store: Store) -> None:
        job = await a_running_job(store, 2)
        assert not await store.jobs.begin_delete(job.id)
        await store.jobs.cancel(job.id, False, NOW)
        assert await store.jobs.begin_delete(job.id)
        assert await store.jobs.begin_delete(job.id)
        marked = await fetched(store, job)
        assert (marked.deleting, marked.files_pending) == (True, False)
        assert await store.items.redrive(job.id, ItemFilter(), None, NOW) is None
        assert [one.id for one in await store.sweeps.jobs_due(0.0, 10)] == [job.id]
        assert await store.jobs.delete(job.id)
        assert not await store.jobs.begin_delete(job.id)
        assert not await store.jobs.begin_delete("no\x00job")

    async def test_the_breaker_hears_what_is_recorded(self, store: Store) -> None:
        policy = JobPolicy(breaker=BreakerPolicy(failures=2, cooldown_seconds=60))
        job = await a_running_job(store, 4, policy=policy)
        batch, items = await taken(store, job, 2)
        await store.batches.record(batch, "worker-1", 0, [an_error(item) for item in items], NOW)
        state = (await fetched(store, job)).breaker
        assert (state.state, state.opened_at, state.trips) == ("open", NOW, 1)
        await store.jobs.set_breaker(job.id, state, JobStatus.PAUSED, "2 attempts in a row failed")
        assert (await fetched(store, job)).status is JobStatus.PAUSED
        assert await store.jobs.runnable(NOW + 59) == []
        assert [one.id for one in await store.jobs.runnable(NOW + 60)] == [job.id]
        await store.jobs.set_breaker(job.id, structs.replace(state, state="half_open"), JobStatus.RUNNING, "")
        assert (await fetched(store, job)).status is JobStatus.RUNNING

    async def test_the_breaker_does_not_wake_what_a_person_paused(self, store: Store) -> None:
        job = await a_running_job(store, 4)
        await store.jobs.set_breaker(job.id, BreakerState(state="open", opened_at=NOW), JobStatus.PAUSED, "")
        await store.jobs.set_paused(job.id, True, "a person", NOW)
        assert await store.jobs.runnable(NOW + 1e6) == []
        await store.jobs.set_breaker(job.id, BreakerState(state="half_open"), JobStatus.RUNNING, "")
        assert (await fetched(store, job)).status is JobStatus.PAUSED
        resumed = await store.jobs.set_paused(job.id, False, "", NOW)
        assert resumed is not None
        assert resumed.breaker.state == "closed"

    async def test_a_job_ends_when_all_its_items_did(self, store: Store) -> None:
        job = await an_ended_job(store)
        assert [one.id for one in await store.jobs.settled(10)] == [job.id]
        assert not await store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, NOW)
        assert await store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, NOW)
        assert await store.items.add(job.id, new_items(1, 50), 1, NOW) is None
        assert await store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, NOW + 5)
        assert [one.id for one in await store.sweeps.jobs_due(NOW, 10)] == [job.id]
        await store.sweeps.put_off([job.id], NOW + 6)
        assert await store.sweeps.jobs_due(NOW + 5, 10) == []

    async def test_a_job_that_is_read_does_not_end(self, store: Store) -> None:
        job = a_job()
        await store.jobs.create(job)
        assert await store.jobs.settled(10) == []
        assert not await store.jobs.move(job.id, JobStatus.CREATING, JobStatus.FINISHING, NOW)


class TestRedrive:
    @pytest.mark.parametrize(
        ("where", "count"),
        [
            ({}, 2),
            ({"exit_reasons": (ExitReason.TIMEOUT,)}, 1),
            ({"sites": ("b.test", "\x00")}, 1),
            ({"keys": ("item-2", "item-0", "no\x00key")}, 1),
            ({"keys": ("item-0",), "statuses": (ItemStatus.SUCCESS,)}, 1),
            ({"statuses": (ItemStatus.SUCCESS, ItemStatus.ERROR)}, 4),
            ({"statuses": (ItemStatus.CANCELLED,)}, 0),
            ({"first": 3}, 1),
        ],
    )
    async def test_matching_items_are_handed_out_again(self, store: Store, where: dict[str, Any], count: int) -> None:
        job = await an_ended_job(store)
        await store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, NOW)
        await store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, NOW)
        assert await store.items.redrive(job.id, ItemFilter(**where), None, NOW) == count
        now = await fetched(store, job)
        assert now.status is (JobStatus.RUNNING if count else JobStatus.COMPLETED)
        assert now.counts.pending == count
        batch = await store.batches.cut(a_batch(job), NOW)
        assert (batch and [attempt for _, attempt in batch.again]) == ([1] * count or None)

    async def test_with_another_version(self, store: Store) -> None:
        job = await an_ended_job(store)
        other = structs.replace(job, pinned="shop/product@2.0.0", policy=JobPolicy(max_attempts=9))
        assert await store.items.redrive(job.id, ItemFilter(), other, NOW) == 2
        now = await fetched(store, job)
        assert (now.pinned, now.policy.max_attempts) == ("shop/product@2.0.0", 9)

    async def test_cancelled_items_come_back(self, store: Store) -> None:
        job = await a_running_job(store, 3)
        await store.jobs.cancel(job.id, False, NOW)
        assert await store.items.redrive(job.id, ItemFilter(), None, NOW) == 3
        now = await fetched(store, job)
        assert (now.status, now.finished_at, now.counts) == (JobStatus.RUNNING, None, Counts(total=3, pending=3))

    @of_sql
    async def test_more_than_one_piece(self, store: Store) -> None:
        job = await a_running_job(store, 5200)
        while (batch := await store.batches.cut(a_batch(job, 2000), NOW)) is not None:
            got = await store.batches.take(batch.id, "worker-1", NOW, NOW + 15)
            assert got is not None
            await store.batches.record(batch.id, "worker-1", 0, [an_error(item) for item in got[2]], NOW)
        assert await store.items.redrive(job.id, ItemFilter(), None, NOW) == 5200
        assert (await fetched(store, job)).counts == Counts(total=5200, pending=5200)
        assert len(await store.events.after(job.id, 0, 10_000)) == 1000

    async def test_not_while_it_is_read_or_cancelled(self, store: Store) -> None:
        job = a_job()
        await store.jobs.create(job)
        await store.items.add(job.id, new_items(1), 0, NOW)
        assert await store.items.redrive(job.id, ItemFilter(), None, NOW) is None
        await taken(store, job)
        await store.jobs.cancel(job.id, False, NOW)
        assert await store.items.redrive(job.id, ItemFilter(), None, NOW) is None

    async def test_not_while_its_files_are_written(self, store: Store) -> None:
        job = await an_ended_job(store)
        assert await store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, NOW)
        assert await store.items.redrive(job.id, ItemFilter(), None, NOW) is None
        assert await store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, NOW)
        assert await store.items.redrive(job.id, ItemFilter(), None, NOW) is not None
