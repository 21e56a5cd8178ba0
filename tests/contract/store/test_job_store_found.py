"""Items that scripts add to their job while it runs, on SQLite and on PostgreSQL."""

from typing import Any

from msgspec import Raw

from scrapeyard.model.job import Counts, JobPolicy, JobStatus, NewItem
from scrapeyard.store.ports.jobs import ITEM_BLOCK, ItemFilter
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import a_success, an_error, new_items
from tests.contract.job_steps import a_running_job, fetched, taken
from tests.contract.nouns import NOW


def found(*names: str, depth: int = 1) -> tuple[NewItem, ...]:
    return tuple(NewItem(key=name, input=Raw(b'{"url":"x"}'), depth=depth, referrer="http://a.test/") for name in names)


async def keys(store: Store, job: Any) -> list[str]:
    return [item.key for item in (await store.items.page(job.id, ItemFilter(), None, ITEM_BLOCK)).items]


async def test_found_items_are_added_with_the_outcome_each_key_once(store: Store) -> None:
    job = await a_running_job(store, 2)
    known = new_items(2)[1].key
    batch, items = await taken(store, job)
    ends = [a_success(items[0], found=found("a", known, "b", "a")), an_error(items[1], found=found("b", "c"))]
    recorded = await store.batches.record(batch, "worker-1", 0, ends, NOW)
    assert recorded is not None
    assert recorded.counts == Counts(total=5, pending=3, success=1, error=1)
    assert (await fetched(store, job)).counts == recorded.counts
    assert (await keys(store, job))[2:] == ["a", "b", "c"]
    again = await store.batches.record(batch, "worker-1", 0, ends, NOW)
    assert again is None
    assert (await fetched(store, job)).counts.total == 5
    item = await store.items.get(job.id, "a")
    assert item is not None
    assert (item.depth, item.referrer) == (1, "http://a.test/")


async def test_a_found_item_tells_its_depth_to_the_worker_and_the_job_waits_for_it(store: Store) -> None:
    job = await a_running_job(store, 1)
    batch, items = await taken(store, job)
    assert items[0].depth is None
    await store.batches.record(batch, "worker-1", 0, [a_success(items[0], found=found("a"))], NOW)
    assert await store.jobs.settled(10) == []
    batch, items = await taken(store, job)
    assert [(item.key, item.depth) for item in items] == [("a", 1)]
    await store.batches.record(batch, "worker-1", 0, [a_success(items[0])], NOW)
    assert [each.id for each in await store.jobs.settled(10)] == [job.id]


async def test_what_a_lost_worker_found_is_found_again_and_added_once(store: Store) -> None:
    job = await a_running_job(store, 1)
    lost, items = await taken(store, job)
    await store.batches.expire(NOW + 20, 10)
    late = await store.batches.record(lost, "worker-1", 0, [a_success(items[0], found=found("a", "b"))], NOW + 20)
    assert late is None
    assert (await fetched(store, job)).counts.total == 1
    batch, items = await taken(store, job, now=NOW + 21)
    ends = [a_success(items[0], found=found("a", "b"))]
    await store.batches.record(batch, "worker-1", 0, ends, NOW + 21)
    assert (await fetched(store, job)).counts == Counts(total=3, pending=2, success=1)


async def test_the_limits_of_the_job_hold_and_are_told(store: Store) -> None:
    job = await a_running_job(store, 2, policy=JobPolicy(max_items=4, max_depth=2))
    batch, items = await taken(store, job)
    first = [a_success(items[0], found=(*found("deep", depth=3), *found("a", depth=2)))]
    await store.batches.record(batch, "worker-1", 0, first, NOW)
    second = [a_success(items[1], found=found(new_items(1)[0].key, "a", "b", "c", depth=2))]
    await store.batches.record(batch, "worker-1", 1, second, NOW)
    now = await fetched(store, job)
    assert (await keys(store, job))[2:] == ["a", "b"]
    assert now.gaps == (
        "items that scripts found at a depth of more than 2 were not added",
        "the limit of 4 items was reached, and items that scripts found beyond it were not added",
    )


async def test_many_found_items_keep_their_numbers_without_gaps(store: Store) -> None:
    job = await a_running_job(store, 1)
    batch, items = await taken(store, job)
    many = found(*(f"k{number:05}" for number in range(2 * ITEM_BLOCK + 5)), new_items(1)[0].key)
    await store.batches.record(batch, "worker-1", 0, [a_success(items[0], found=many)], NOW)
    now = await fetched(store, job)
    assert now.counts == Counts(total=2 * ITEM_BLOCK + 6, pending=2 * ITEM_BLOCK + 5, success=1)
    numbers: list[int] = []
    async for block in store.items.stream(job.id, ItemFilter(), data=False):
        numbers += [item.seq for item in block]
    assert numbers == list(range(2 * ITEM_BLOCK + 6))


async def test_a_job_that_is_cancelled_takes_none(store: Store) -> None:
    job = await a_running_job(store, 2)
    batch, items = await taken(store, job)
    await store.jobs.cancel(job.id, False, NOW)
    await store.batches.record(batch, "worker-1", 0, [a_success(items[0], found=found("a"))], NOW)
    now = await fetched(store, job)
    assert (now.status, now.counts.total) == (JobStatus.CANCELLING, 2)
