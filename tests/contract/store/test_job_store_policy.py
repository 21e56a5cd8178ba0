"""Another policy for a job that is under way."""

from msgspec.structs import replace

from scrapeyard.model import Priority
from scrapeyard.model.fetching import BudgetLimits
from scrapeyard.model.job import JobPolicy
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import a_batch, a_job, new_items
from tests.contract.nouns import NOW

WIDER = JobPolicy(rate=9.0, budget=BudgetLimits(megabytes=7.5))


async def test_what_is_handed_out_from_then_on_has_the_new_policy(store: Store) -> None:
    job = a_job(policy=JobPolicy(rate=1.0))
    await store.jobs.create(job)
    await store.items.add(job.id, new_items(1), 0, NOW)
    changed = await store.jobs.set_policy(job.id, WIDER)
    assert changed is not None
    assert changed == await store.jobs.get(job.id)
    assert changed == replace(job, policy=WIDER, counts=changed.counts)
    batch = await store.batches.cut(a_batch(job), NOW)
    assert batch is not None
    taken = await store.batches.take(batch.id, "w1", NOW, NOW + 15)
    assert taken is not None
    assert taken[1].policy == WIDER


async def test_name_and_priority_change_only_if_given(store: Store) -> None:
    job = a_job(name="before", priority=Priority.LOW)
    await store.jobs.create(job)
    changed = await store.jobs.set_policy(job.id, WIDER, name="", priority=Priority.HIGH)
    assert changed == replace(job, policy=WIDER, name="", priority=Priority.HIGH)
    assert await store.jobs.set_policy(job.id, WIDER) == changed


async def test_a_final_job_keeps_its_policy(store: Store) -> None:
    job = a_job()
    await store.jobs.create(job)
    await store.jobs.cancel(job.id, False, NOW)
    kept = await store.jobs.set_policy(job.id, WIDER)
    assert kept is not None
    assert kept.policy == job.policy
    assert await store.jobs.set_policy("job_none", WIDER) is None
