"""Handing out and recording, on SQLite and on PostgreSQL."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw
from sqlalchemy import update
from sqlalchemy.exc import DBAPIError

from scrapeyard.model import ExitReason, Usage
from scrapeyard.model.job import Counts, ItemStatus, JobPolicy, JobStatus
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.store.dynamo.store import DynamoStore
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.store.sql import SqlStore
from scrapeyard.store.tables.jobs import BATCHES
from tests.contract.job_nouns import a_batch, a_job, a_retry, a_success, an_error, new_items, successes
from tests.contract.job_steps import a_running_job, fetched, taken
from tests.contract.nouns import NOW, a_run, begun
from tests.contract.store.conftest import of_sql


class TestBatches:
    async def test_fresh_items_in_order_then_nothing(self, store: Store) -> None:
        job = await a_running_job(store, 5)
        first = await store.batches.cut(a_batch(job, 3), NOW)
        second = await store.batches.cut(a_batch(job, 3), NOW)
        assert first is not None
        assert second is not None
        assert [(b.first, b.last, b.left) for b in (first, second)] == [(0, 2, 3), (3, 4, 2)]
        assert await store.batches.cut(a_batch(job), NOW) is None
        assert await store.batches.cut(first, NOW) == first
        assert sorted(await store.batches.out(job.id), key=lambda batch: batch.first) == [first, second]
        now = await fetched(store, job)
        assert (now.counts, now.cursor, now.started_at) == (Counts(total=5, queued=5), 5, NOW)

    async def test_a_batch_is_taken_once(self, store: Store) -> None:
        job = await a_running_job(store, 5)
        batch = await store.batches.cut(a_batch(job), NOW)
        assert batch is not None
        got = await asyncio.gather(*(store.batches.take(batch.id, f"worker-{n}", NOW, NOW + 15) for n in range(4)))
        winners = [one for one in got if one is not None]
        assert len(winners) == 1
        held, told, items = winners[0]
        assert held.state == "running"
        assert told.counts == Counts(total=5, in_progress=5)
        assert [item.seq for item in items] == list(range(5))
        assert await store.batches.take(batch.id, held.worker_id, NOW, NOW + 15) is None

    async def test_parts_are_recorded_once_and_by_the_holder_alone(self, store: Store) -> None:
        job = await a_running_job(store, 4)
        batch, items = await taken(store, job)
        assert await store.batches.record(batch, "worker-2", 0, successes(items), NOW) is None
        assert await store.batches.record(batch, "worker-1", 1, successes(items), NOW) is None
        done = await store.batches.record(
            batch, "worker-1", 0, [*successes(items[:2]), a_success(items[0]), a_success(99)], NOW
        )
        assert done is not None
        assert (done.left, done.counts) == (2, Counts(total=4, in_progress=2, success=2))
        assert await store.batches.record(batch, "worker-1", 0, successes(items[:2]), NOW) is None
        last = await store.batches.record(batch, "worker-1", 1, [an_error(items[2]), a_retry(items[3])], NOW)
        assert last is not None
        assert (last.left, last.counts) == (0, Counts(total=4, pending=1, success=2, error=1))
        assert await store.batches.out(job.id) == []
        assert (await fetched(store, job)).use == Usage(
            wall_ms=50.0, requests=4, bytes_received=4000, bytes_by_class={"direct": 4000}
        )

    @of_sql
    async def test_ended_leases_are_taken_over_at_once(self, store: SqlStore) -> None:
        """By a process that is alone with its database: the one that held them was killed."""
        job = await a_running_job(store, 6)
        await taken(store, job, 2)
        queued = await store.batches.cut(a_batch(job, 2), NOW)
        run = a_run()
        await store.runs.begin([begun(run, lease_until=NOW + 15)])
        assert await store.leaders.claim("dispatcher", "killed", NOW, NOW + 5)
        assert await store.batches.queued(NOW - 5, 10) == []
        await store.end_leases(NOW)
        assert await store.leaders.claim("dispatcher", "new", NOW, NOW + 5)
        assert await store.batches.expire(NOW + 0.1, 10) == [(job.id, 2, 0)]
        assert [each.id for each in await store.runs.expired(NOW + 0.1, 10)] == [run.id]
        assert queued is not None
        assert [each.id for each in await store.batches.queued(NOW - 5, 10)] == [queued.id]

    async def test_waiting_items_go_first_when_they_are_due(self, store: Store) -> None:
        job = await a_running_job(store, 3)
        batch, items = await taken(store, job, 2)
        ends = [a_retry(items[0], not_before=NOW + 5), a_retry(items[1], not_before=NOW + 6, postponed=True)]
        await store.batches.record(batch, "worker-1", 0, ends, NOW)
        fresh = await store.batches.cut(a_batch(job, 1), NOW)
        assert fresh is not None
        assert (fresh.first, fresh.last) == (2, 2)
        assert [one.id for one in await store.jobs.runnable(NOW)] == []
        assert [one.id for one in await store.jobs.runnable(NOW + 5)] == [job.id]
        assert await store.batches.cut(a_batch(job), NOW) is None
        again = await store.batches.cut(a_batch(job), NOW + 6)
        assert again is not None
        assert again.again == ((0, 2), (1, 1))
        got = await store.batches.take(again.id, "worker-1", NOW, NOW + 15)
        assert got is not None
        assert [(item.key, item.attempt) for item in got[2]] == [("item-0", 2), ("item-1", 1)]

    async def test_an_item_that_travels_again_is_not_its_first_batch_any_more(self, store: Store) -> None:
        job = await a_running_job(store, 2)
        batch, items = await taken(store, job)
        await store.batches.record(batch, "worker-1", 0, [a_retry(items[0])], NOW, begun=2)
        second, again = await taken(store, job, worker="worker-2")
        assert await store.batches.expire(NOW + 16, 1) == [(job.id, 1, 0)]
        await store.batches.record(second, "worker-2", 0, successes(again), NOW)
        assert (await fetched(store, job)).counts == Counts(total=2, pending=1, success=1)

    async def test_a_lost_worker_costs_an_attempt_and_the_last_one_ends_it(self, store: Store) -> None:
        job = await a_running_job(store, 2, policy=JobPolicy(max_attempts=2))
        batch, items = await taken(store, job)
        await store.batches.record(batch, "worker-1", 0, successes(items[:1]), NOW, begun=2)
        assert await store.batches.expire(NOW + 15, 10) == []
        assert await store.batches.expire(NOW + 16, 10) == [(job.id, 1, 0)]
        assert await store.batches.record(batch, "worker-1", 1, successes(items[1:]), NOW) is None
        second = await store.batches.cut(a_batch(job), NOW + 16)
        assert second is not None
        await store.batches.take(second.id, "worker-2", NOW, NOW + 15)
        assert await store.batches.expire(NOW + 16, 10) == [(job.id, 0, 1)]
        item = await store.items.get(job.id, "item-1")
        assert item is not None
        assert (item.status, item.exit_reason, item.attempt) == (ItemStatus.ERROR, ExitReason.LOST_WORKER, 2)

    async def test_only_items_that_had_begun_are_charged_for_a_lost_worker(self, store: Store) -> None:
        """Items end in any order: which have begun is told by their place in the batch."""
        job = await a_running_job(store, 5, policy=JobPolicy(max_attempts=1))
        batch, items = await taken(store, job)
        told = await store.batches.record(batch, "worker-1", 0, [a_success(items[1])], NOW, begun=3)
        assert told is not None
        assert await store.batches.record(batch, "worker-1", 1, [], NOW) is not None
        assert await store.batches.expire(NOW + 16, 10) == [(job.id, 2, 2)]
        assert (await fetched(store, job)).counts == Counts(total=5, pending=2, success=1, error=2)
        shown = (await store.items.page(job.id, ItemFilter(), None, 10)).items
        lost, succeeded = ExitReason.LOST_WORKER, ExitReason.SUCCEEDED
        assert [item.exit_reason for item in shown] == [lost, succeeded, lost, None, None]
        assert [item.attempt for item in shown] == [1, 1, 1, 0, 0]
        again = await store.batches.cut(a_batch(job), NOW + 16)
        assert again is not None
        assert (again.again, again.lost_before) == (((3, 1), (4, 1)), True)

    async def test_a_worker_that_is_lost_before_an_item_began_costs_nothing(self, store: Store) -> None:
        job = await a_running_job(store, 3)
        await taken(store, job)
        assert await store.batches.expire(NOW + 16, 10) == [(job.id, 3, 0)]
        again = await store.batches.cut(a_batch(job), NOW + 16)
        assert again is not None
        assert again.again == ((0, 1), (1, 1), (2, 1))

    async def test_every_further_loss_costs_an_attempt(self, store: Store) -> None:
        """The first item of a batch that was lost before counts as begun when it is taken, so a scraper that kills its
        worker each time does not go on for ever."""
        job = await a_running_job(store, 2, policy=JobPolicy(max_attempts=2))
        await taken(store, job)
        await store.batches.expire(NOW + 16, 10)
        given_back, _ = await taken(store, job, now=NOW + 16)
        await store.batches.give_back(given_back, "worker-1", NOW)
        for losses in range(1, 5):
            lost = await store.batches.cut(a_batch(job), NOW + 16)
            assert lost is not None
            assert lost.lost_before
            got = await store.batches.take(lost.id, "worker-1", NOW, NOW + 15)
            assert got is not None
            assert got[0].begun == 1
            await store.batches.expire(NOW + 16, 10)
            items = (await store.items.page(job.id, ItemFilter(), None, 10)).items
            assert sum(item.attempt for item in items) == losses
        assert (await fetched(store, job)).counts == Counts(total=2, error=2)

    async def test_a_retry_that_a_worker_recorded_was_not_lost(self, store: Store) -> None:
        job = await a_running_job(store, 1)
        await taken(store, job)
        await store.batches.expire(NOW + 16, 10)
        batch, items = await taken(store, job, now=NOW + 16)
        await store.batches.record(batch, "worker-1", 0, [a_retry(items[0])], NOW)
        again = await store.batches.cut(a_batch(job), NOW)
        assert again is not None
        assert (again.again, again.lost_before) == (((0, 2),), False)

    @of_sql
    async def test_items_of_a_batch_taken_by_an_older_version_count_as_begun(self, store: SqlStore) -> None:
        job = await a_running_job(store, 2)
        batch, _ = await taken(store, job)
        await store._database.change(update(BATCHES).where(BATCHES.c.id == batch).values(begun=None))
        await store.batches.expire(NOW + 16, 10)
        again = await store.batches.cut(a_batch(job), NOW + 16)
        assert again is not None
        assert again.again == ((0, 2), (1, 2))

    async def test_items_are_given_in_the_order_of_their_batch(self, store: Store) -> None:
        job = await a_running_job(store, 3)
        batch, items = await taken(store, job)
        ends = [a_retry(item, not_before=NOW + 3 - item.seq) for item in items]
        await store.batches.record(batch, "worker-1", 0, ends, NOW)
        again = await store.batches.cut(a_batch(job), NOW + 3)
        assert again is not None
        got = await store.batches.take(again.id, "worker-1", NOW, NOW + 15)
        assert got is not None
        assert [(item.seq, item.key) for item in got[2]] == [(2, "item-2"), (1, "item-1"), (0, "item-0")]

    async def test_renewing_tells_what_to_stop(self, store: Store) -> None:
        job = await a_running_job(store, 4)
        mine, _ = await taken(store, job, 2)
        theirs, _ = await taken(store, job, 2, worker="worker-2")
        assert await store.batches.renew("worker-1", [mine, theirs, "batch_gone"], NOW + 60) == [theirs, "batch_gone"]
        assert [one[0] for one in await store.batches.expire(NOW + 30, 10)] == [job.id]
        assert [batch.id for batch in await store.batches.out(job.id)] == [mine]

    async def test_batches_that_nobody_took_are_found_again(self, store: Store) -> None:
        job = await a_running_job(store, 4)
        old = await store.batches.cut(a_batch(job, 2), NOW)
        await taken(store, job, 2)
        assert old is not None
        assert await store.batches.queued(NOW, 10) == []
        assert await store.batches.queued(NOW + 1, 10) == [old]
        await store.batches.requeued([old.id, "batch_gone"], NOW + 5)
        assert await store.batches.queued(NOW + 1, 10) == []

    async def test_what_is_given_back_keeps_its_attempt(self, store: Store) -> None:
        job = await a_running_job(store, 3)
        batch, items = await taken(store, job)
        await store.batches.record(batch, "worker-1", 0, successes(items[:1]), NOW)
        await store.batches.give_back(batch, "worker-2", NOW)
        await store.batches.give_back(batch, "worker-1", NOW)
        await store.batches.give_back(batch, "worker-1", NOW)
        assert (await fetched(store, job)).counts == Counts(total=3, pending=2, success=1)
        again = await store.batches.cut(a_batch(job), NOW)
        assert again is not None
        assert again.again == ((1, 1), (2, 1))

    async def test_many_workers_at_once_lose_nothing(self, store: Store) -> None:
        job = await a_running_job(store, 300)
        batches = [await taken(store, job, 10, f"worker-{n}") for n in range(30)]
        records = [
            store.batches.record(batch, f"worker-{n}", 0, [*successes(items[1:]), an_error(items[0])], NOW)
            for n, (batch, items) in enumerate(batches)
        ]
        assert all(await asyncio.gather(*records))
        assert (await fetched(store, job)).counts == Counts(total=300, success=270, error=30)
        assert [event.number for event in await store.events.after(job.id, 0, 100)] == list(range(1, 31))


class TestHttpStatuses:
    async def test_items_are_counted_by_the_status_that_they_ended_with(self, store: Store) -> None:
        job = await a_running_job(store, 6)
        batch, items = await taken(store, job)
        ends = [a_success(item, http_status=200) for item in items[:2]]
        ends += [an_error(items[2], http_status=404), an_error(items[3]), a_retry(items[4], http_status=503)]
        await store.batches.record(batch, "worker-1", 0, ends, NOW)
        assert (await fetched(store, job)).http_statuses == {200: 2, 404: 1}
        await store.batches.record(batch, "worker-1", 1, [an_error(items[5], http_status=404)], NOW)
        again, items = await taken(store, job)
        await store.batches.record(again, "worker-1", 0, [a_success(items[0], http_status=200)], NOW)
        assert (await fetched(store, job)).http_statuses == {200: 3, 404: 2}
        shown = (await store.items.page(job.id, ItemFilter(), None, 10)).items
        assert [item.http_status for item in shown] == [200, 200, 404, None, 200, 404]

    async def test_items_that_run_again_are_counted_no_more(self, store: Store) -> None:
        job = await a_running_job(store, 4)
        batch, items = await taken(store, job)
        ends = [a_success(items[0], http_status=200), an_error(items[1], http_status=503), an_error(items[2])]
        await store.batches.record(batch, "worker-1", 0, [*ends, an_error(items[3], http_status=503)], NOW)
        assert await store.items.redrive(job.id, ItemFilter(keys=("item-1", "item-2")), None, NOW) == 2
        assert (await fetched(store, job)).http_statuses == {200: 1, 503: 1}
        assert await store.items.redrive(job.id, ItemFilter(), None, NOW) == 1
        assert (await fetched(store, job)).http_statuses == {200: 1}


def lose_every_other_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of transactions, after they were done."""
    if isinstance(store, SqlStore):
        owner, name = store._database.backend, "play"
        fault: Exception = DBAPIError("a script", (), OSError("gone"), connection_invalidated=True)
    else:
        assert isinstance(store, DynamoStore)
        owner, name, fault = store._calls._client, "transact_write_items", OSError("gone")
    work, lost = getattr(owner, name), 0

    async def work_and_lose(*given: Any, **named: Any) -> Any:
        nonlocal lost
        answer = await work(*given, **named)
        lost += 1
        if lost % 2:
            raise fault
        return answer

    monkeypatch.setattr(owner, name, work_and_lose)


class TestLostAnswers:
    """The connection goes after the commit: the work is done again, and must find itself done."""

    async def test_nothing_is_done_twice_and_the_answer_is_the_first(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lose_every_other_answer(store, monkeypatch)
        job = a_job()
        assert await store.jobs.create(job)
        assert await store.items.add(job.id, new_items(3), 0, NOW) == 3
        await store.jobs.end_reading(job.id, 0, "", NOW)
        batch, items = await taken(store, job)
        first = await store.batches.record(batch, "worker-1", 0, [an_error(items[0])], NOW)
        assert first is not None
        assert (first.left, first.counts) == (2, Counts(total=3, in_progress=2, error=1))
        await store.events.add(job.id, JobEventKind.STATUS, Raw(b"{}"), NOW)
        await store.batches.give_back(batch, "worker-1", NOW)
        batch, items = await taken(store, job)
        await store.batches.record(batch, "worker-1", 0, successes(items), NOW)
        assert await store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, NOW)
        assert (await fetched(store, job)).counts == Counts(total=3, success=2, error=1)
        assert [event.number for event in await store.events.after(job.id, 0, 10)] == [1, 2]
