"""Steps that many tests of jobs begin with."""

from typing import Any

from scrapeyard.model import ExitReason
from scrapeyard.model.job import BatchItem, Job
from scrapeyard.store.ports.jobs import ITEM_BLOCK
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import a_batch, a_job, an_error, new_items, successes
from tests.contract.nouns import NOW


async def a_running_job(store: Store, count: int = 10, **given: Any) -> Job:
    """A job whose items were all read."""
    job = a_job(**given)
    assert await store.jobs.create(job)
    for block, first in enumerate(range(0, count, ITEM_BLOCK)):
        await store.items.add(job.id, new_items(min(ITEM_BLOCK, count - first), first), block, NOW)
    ready = await store.jobs.end_reading(job.id, 0, "", NOW)
    assert ready is not None
    return ready


async def fetched(store: Store, job: Job) -> Job:
    """The job as it stands; its counters are those of its rows."""
    found = await store.jobs.get(job.id)
    assert found is not None
    assert found.counts == await store.items.recount(job.id)
    return found


async def taken(
    store: Store, job: Job, left: int = 500, worker: str = "worker-1", now: float = NOW
) -> tuple[str, list[BatchItem]]:
    """A batch in the hands of a worker, for 15 seconds: its id and items."""
    batch = await store.batches.cut(a_batch(job, left), now)
    assert batch is not None
    got = await store.batches.take(batch.id, worker, now, now + 15)
    assert got is not None
    return batch.id, got[2]


async def an_ended_job(store: Store, **given: Any) -> Job:
    """Four items: two successes, then two errors of different reasons and sites."""
    job = await a_running_job(store, 4, **given)
    batch, items = await taken(store, job)
    ends = [
        *successes(items[:2]),
        an_error(items[2]),
        an_error(items[3], exit_reason=ExitReason.TIMEOUT, site="b.test"),
    ]
    await store.batches.record(batch, "worker-1", 0, ends, NOW)
    return job
