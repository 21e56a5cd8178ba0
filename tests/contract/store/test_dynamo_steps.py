"""DynamoDB takes a hundred writes in a transaction, so much is written in steps there: whatever is cut off after any of
them adds up, and is done to its end by the next call."""

from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.model.job import Counts, ItemStatus, JobPolicy, JobStatus, NewItem
from scrapeyard.store.dynamo.store import DynamoStore
from scrapeyard.store.dynamo.table.values import size_of
from scrapeyard.store.ports.jobs import ItemFilter
from tests.contract.job_nouns import a_batch, a_job, a_retry, a_success, an_error, new_items, successes
from tests.contract.job_steps import a_running_job, fetched, taken
from tests.contract.nouns import NOW

pytestmark = pytest.mark.parametrize("migrated_url", ["dynamodb"], indirect=True)
COUNT = 130
"""Items that need more than one transaction, whatever is done to them."""


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
async def store(migrated_url: str) -> AsyncIterator[DynamoStore]:
    store = DynamoStore(migrated_url)
    await store.start()
    yield store
    await store.stop()


@contextmanager
def killed_after(store: DynamoStore, transactions: int) -> Iterator[None]:
    """The process ends before the transaction that follows so many."""
    ask = store._calls.ask

    async def mortal(operation: str, **given: Any) -> Any:
        nonlocal transactions
        transactions -= operation == "transact_write_items"
        if transactions < 0:
            raise Killed
        return await ask(operation, **given)

    store._calls.ask = mortal  # type: ignore[method-assign]
    try:
        with suppress(Killed):
            yield
    finally:
        store._calls.ask = ask  # type: ignore[method-assign]


async def refused(work: Awaitable[Any]) -> bool:
    return await work is None


async def test_a_block_that_was_added_in_part_is_added_to_its_end(store: DynamoStore) -> None:
    job = a_job()
    await store.jobs.create(job)
    for steps in (1, 0, 2):
        with killed_after(store, steps):
            await store.items.add(job.id, new_items(COUNT), 0, NOW)
        assert (await fetched(store, job)).counts.total in (0, *range(80, COUNT + 1))
    assert await store.items.add(job.id, new_items(COUNT), 0, NOW) == COUNT
    assert await store.items.add(job.id, new_items(COUNT + 5), 0, NOW) == COUNT
    assert await store.items.add(job.id, new_items(COUNT + 5), 1, NOW) == 5
    keys = [item.key for block in [block async for block in store.items.stream(job.id, ItemFilter())] for item in block]
    assert keys == [f"item-{number}" for number in range(COUNT + 5)]


async def test_large_inputs_are_kept_whole(store: DynamoStore) -> None:
    job = a_job()
    await store.jobs.create(job)
    large = [
        NewItem(key=f"k{number}", input=Raw(b'{"text": "%s"}' % (b"x" * 60_000)), referrer="http://a/" + "y" * number)
        for number in range(60)
    ]
    assert await store.items.add(job.id, large, 0, NOW) == 60
    _, items = await taken(store, job)
    assert [bytes(item.input) for item in items] == [bytes(item.input) for item in large]
    page = (await store.items.page(job.id, ItemFilter(first=50), None, 20)).items
    assert [item.referrer for item in page] == [item.referrer for item in large[50:]]


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_a_record_that_was_cut_off_is_neither_lost_nor_doubled(store: DynamoStore, steps: int) -> None:
    job = await a_running_job(store, COUNT)
    batch, items = await taken(store, job)
    ends = [
        *successes(items[:100]),
        *(an_error(item) for item in items[100:120]),
        *(a_retry(item, not_before=NOW + item.seq) for item in items[120:]),
    ]
    with killed_after(store, steps):
        await store.batches.record(batch, "worker-1", 0, ends, NOW, begun=COUNT)
    await fetched(store, job)
    recorded = await store.batches.record(batch, "worker-1", 0, ends, NOW, begun=COUNT)
    assert (recorded is None) == (steps == 2)
    now = await fetched(store, job)
    assert now.counts == Counts(total=COUNT, pending=10, success=100, error=20)
    assert now.use.requests == COUNT
    assert [event.number for event in await store.events.after(job.id, 0, 100)] == list(range(1, 21))


async def test_a_worker_that_was_cut_off_in_a_record_and_lost_leaves_the_rest(store: DynamoStore) -> None:
    job = await a_running_job(store, COUNT)
    batch, items = await taken(store, job)
    with killed_after(store, 1):
        await store.batches.record(batch, "worker-1", 0, successes(items), NOW, begun=COUNT)
    done = (await fetched(store, job)).counts.success
    assert 0 < done < COUNT
    assert await store.batches.expire(NOW + 16, 10) == [(job.id, COUNT - done, 0)]
    again = await store.batches.cut(a_batch(job), NOW + 16)
    assert again is not None
    assert again.again == tuple((seq, 2) for seq in range(done, COUNT))


async def test_a_lost_worker_s_items_end_once_each(store: DynamoStore) -> None:
    """While they are taken from it, the worker, which comes back, is refused."""
    job = await a_running_job(store, COUNT, policy=JobPolicy(max_attempts=1))
    batch, items = await taken(store, job)
    assert await store.batches.record(batch, "worker-1", 0, [], NOW, begun=COUNT - 10) is not None
    with killed_after(store, 1):
        await store.batches.expire(NOW + 16, 10)
    half = await fetched(store, job)
    assert 0 < half.counts.error < COUNT
    assert await refused(store.batches.record(batch, "worker-1", 1, successes(items), NOW))
    assert await store.batches.renew("worker-1", [batch], NOW + 99) == [batch]
    (told,) = await store.batches.expire(NOW + 16, 10)
    assert (await fetched(store, job)).counts == Counts(total=COUNT, pending=10, error=COUNT - 10)
    assert told == (job.id, 0, COUNT - 10 - half.counts.error)


async def test_a_redrive_that_was_cut_off_is_done_to_its_end(store: DynamoStore) -> None:
    job = await a_running_job(store, COUNT)
    batch, items = await taken(store, job)
    await store.batches.record(batch, "worker-1", 0, [an_error(item, http_status=503) for item in items], NOW)
    with killed_after(store, 1):
        await store.items.redrive(job.id, ItemFilter(), None, NOW)
    half = await fetched(store, job)
    assert half.counts.pending + half.counts.error == COUNT
    assert half.http_statuses == {503: half.counts.error}
    assert await store.items.redrive(job.id, ItemFilter(), None, NOW) == half.counts.error
    assert (await fetched(store, job)).counts == Counts(total=COUNT, pending=COUNT)
    assert await store.items.failures(job.id, 10) == []


async def test_items_found_twice_are_added_once(store: DynamoStore) -> None:
    job = await a_running_job(store, 1)
    batch, items = await taken(store, job)
    found = tuple(replace(item, depth=1) for item in new_items(COUNT, 10))
    with killed_after(store, 1):
        await store.batches.record(batch, "worker-1", 0, [a_success(items[0], found=found)], NOW)
    half = (await fetched(store, job)).counts
    assert 1 < half.total < COUNT + 1
    assert half.in_progress == 1
    recorded = await store.batches.record(batch, "worker-1", 0, [a_success(items[0], found=found)], NOW)
    assert recorded is not None
    assert recorded.counts == Counts(total=COUNT + 1, pending=COUNT, success=1)
    assert (await fetched(store, job)).counts == recorded.counts


async def test_items_found_by_a_batch_that_was_lost_meanwhile_are_left_at_once(
    store: DynamoStore, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch will never be this worker's again, so nobody waits for that."""
    job = await a_running_job(store, 1)
    batch, items = await taken(store, job)
    found = tuple(replace(item, depth=1) for item in new_items(3, 10))
    dispatcher = DynamoStore(migrated_url)
    await dispatcher.start()
    transact, tries = store.table.transact, 0

    async def late(writes: Any) -> None:
        nonlocal tries
        tries += 1
        await dispatcher.batches.expire(NOW + 16, 10)
        await transact(writes)

    try:
        monkeypatch.setattr(store.table, "transact", late)
        assert await refused(store.batches.record(batch, "worker-1", 0, [a_success(items[0], found=found)], NOW))
    finally:
        await dispatcher.stop()
    assert tries == 1
    assert (await fetched(store, job)).counts == Counts(total=1, pending=1)


async def test_a_source_too_large_for_a_row_is_kept_whole(store: DynamoStore) -> None:
    """DynamoDB refuses a row of more than 400 KB; the emulator does not look at rows that are changed."""
    job = a_job(webhook=Raw(b'{"url": "http://a/%s"}' % (b"w" * 30_000)))
    await store.jobs.create(job)
    for size in (10, 370_000, 390_000, 500_000, 300_000, 900_000, 10):
        assert await store.jobs.set_source(job.id, {"kind": "list", "told": "y" * size})
        row = await store.table.get((f"job/{job.id}", "job"))
        assert row is not None
        assert size_of(row) < 400_000
        found = await store.jobs.get(job.id)
        assert found is not None
        assert found.source == {"kind": "list", "told": "y" * size}
    await store.jobs.cancel(job.id, False, NOW)
    assert await store.jobs.delete(job.id)
    assert await store.table.count(f"part/job/{job.id}") == 0


async def test_content_of_ends_that_were_redriven_goes_with_the_job(store: DynamoStore) -> None:
    job = await a_running_job(store, 2)
    batch, items = await taken(store, job)
    large = [a_success(item, result=Raw(b'"' + b"r" * 500_000 + b'"')) for item in items]
    await store.batches.record(batch, "worker-1", 0, large, NOW)
    assert await store.items.redrive(job.id, ItemFilter(statuses=(ItemStatus.SUCCESS,)), None, NOW) == 2
    await store.jobs.cancel(job.id, False, NOW)
    assert await store.jobs.delete(job.id)
    answer, _ = await store._calls.ask("scan", TableName=store._calls.table)
    assert {item["pk"]["S"] for item in answer["Items"]} == {"jobs/last"}


async def test_results_that_retention_removes_leave_nothing_of_earlier_ends(store: DynamoStore) -> None:
    job = await a_running_job(store, 2)
    batch, items = await taken(store, job)
    large = Raw(b'"' + b"r" * 500_000 + b'"')
    await store.batches.record(batch, "worker-1", 0, [a_success(item, result=large) for item in items], NOW)
    first = ItemFilter(statuses=(ItemStatus.SUCCESS,), keys=("item-0",))
    assert await store.items.redrive(job.id, first, None, NOW) == 1
    batch, items = await taken(store, job)
    await store.batches.record(batch, "worker-1", 0, successes(items), NOW)
    for leave, to in ((JobStatus.RUNNING, JobStatus.FINISHING), (JobStatus.FINISHING, JobStatus.COMPLETED)):
        assert await store.jobs.move(job.id, leave, to, NOW)
    swept = await store.sweeps.begin_job(job.id, {"results": NOW})
    assert swept is not None
    await store.sweeps.clear_items(swept, 0, 0, results=True, logs=False)
    page = await store.items.page(job.id, ItemFilter(), None, 10)
    assert [bytes(item.result or b"") for item in page.items] == [b"", bytes(large)]
    assert await store.table.count(f"part/job/{job.id}/ends/0") == 2
    await store.sweeps.clear_items(swept, 0, 1, results=True, logs=False)
    assert await store.table.count(f"part/job/{job.id}/ends/0") == 0


async def test_a_job_that_was_deleted_in_part_is_deleted_to_its_end(store: DynamoStore) -> None:
    job = await a_running_job(store, COUNT)
    batch, items = await taken(store, job)
    await store.batches.record(batch, "worker-1", 0, [an_error(item) for item in items], NOW)
    await store.jobs.cancel(job.id, False, NOW)
    with killed_after(store, 1):
        await store.jobs.delete(job.id)
    assert (await store.jobs.get(job.id)) is not None
    assert await store.jobs.delete(job.id)
    answer, _ = await store._calls.ask("scan", TableName=store._calls.table)
    assert {item["pk"]["S"] for item in answer["Items"]} == {"jobs/last"}


async def test_two_stores_that_change_one_job_at_once_lose_nothing(store: DynamoStore, migrated_url: str) -> None:
    other = DynamoStore(migrated_url)
    await other.start()
    try:
        job = await a_running_job(store, 40)
        cuts = [await taken(one, job, 10, f"worker-{n}") for n, one in enumerate((store, other, store, other))]
        for n, (batch, items) in enumerate(cuts):
            one = (store, other, store, other)[n]
            assert await one.batches.record(batch, f"worker-{n}", 0, successes(items), NOW) is not None
        assert (await fetched(store, job)).counts == Counts(total=40, success=40)
        found = await other.items.page(job.id, ItemFilter(statuses=(ItemStatus.SUCCESS,)), None, 100)
        assert len(found.items) == 40
    finally:
        await other.stop()
