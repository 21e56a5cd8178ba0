"""Deliveries to sinks in the store, on every database."""

import asyncio

from msgspec.structs import replace

from scrapeyard.model.export import ITEMS_SINK, SinkDelivery, SinkState
from scrapeyard.model.job import JobStatus
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import a_job


async def a_delivery(store: Store, sink: str = "one", **given: float) -> SinkDelivery:
    job = a_job(sinks=(sink,), **given)
    assert await store.jobs.create(job)
    return (await store.sinks.of_jobs([job.id]))[0]


async def test_a_job_is_created_with_its_deliveries(store: Store) -> None:
    job = a_job(sinks=("one", "two"), created_at=10.0)
    assert await store.jobs.create(job)
    assert not await store.jobs.create(replace(job, sinks=("three",)))
    found = await store.jobs.get(job.id)
    assert found is not None
    assert found.sinks == ("one", "two")
    deliveries = await store.sinks.of_jobs([job.id, "job_unknown", "a\x00"])
    assert [(each.sink, each.state, each.due_at) for each in deliveries] == [
        ("one", SinkState.ACTIVE, 10.0),
        ("two", SinkState.ACTIVE, 10.0),
    ]
    assert deliveries[0] == SinkDelivery(job_id=job.id, sink="one", created_at=10.0, due_at=10.0)
    assert await store.sinks.of_jobs([]) == ()


async def test_due_ones_come_in_order_without_those_of_busy_sinks(store: Store) -> None:
    late = await a_delivery(store, "one", created_at=20.0)
    early = await a_delivery(store, "two", created_at=10.0)
    assert [each.job_id for each in await store.sinks.due(20.0, 10, ())] == [early.job_id, late.job_id]
    assert [each.job_id for each in await store.sinks.due(20.0, 10, ["two", "other"])] == [late.job_id]
    assert [each.job_id for each in await store.sinks.due(20.0, 1, ())] == [early.job_id]
    assert await store.sinks.due(9.0, 10, ()) == ()


async def test_of_two_who_write_one_succeeds(store: Store) -> None:
    before = await a_delivery(store)
    change = replace(before, due_at=50.0, delivered=3, covered=4, failed=1, last_error="no", progress=b"\x00\xff")
    written = await asyncio.gather(*(store.sinks.put(change) for _ in range(4)))
    assert [each for each in written if each is not None] == [replace(change, revision=before.revision + 1)]
    assert (await store.sinks.of_jobs([before.job_id]))[0] == replace(change, revision=before.revision + 1)


async def test_one_that_ended_is_not_due_and_wakes_with_its_job(store: Store) -> None:
    one = await a_delivery(store)
    done = await store.sinks.put(replace(one, state=SinkState.DONE, due_at=None))
    assert done is not None
    assert await store.sinks.due(1e12, 10, ()) == ()
    await store.sinks.wake(one.job_id, 30.0, 90.0)
    awake = (await store.sinks.of_jobs([one.job_id]))[0]
    assert (awake.state, awake.due_at, awake.open_until) == (SinkState.ACTIVE, 30.0, 90.0)
    assert awake.woken_at == 30.0
    await store.sinks.wake(one.job_id, 40.0, 100.0)
    again = (await store.sinks.of_jobs([one.job_id]))[0]
    assert (again.woken_at, again.open_until) == (30.0, 100.0), "nobody has looked at it since"
    assert await store.sinks.put(done) is None, "who read it before it woke must read it again"


async def test_one_that_failed_sleeps_on(store: Store) -> None:
    one = await a_delivery(store)
    assert await store.sinks.put(replace(one, state=SinkState.FAILED, due_at=None))
    await store.sinks.wake(one.job_id, 30.0, 90.0)
    assert (await store.sinks.of_jobs([one.job_id]))[0].state is SinkState.FAILED


async def test_the_items_of_a_webhook_wake_although_they_were_given_up(store: Store) -> None:
    job = a_job(sinks=(ITEMS_SINK,))
    assert await store.jobs.create(job)
    (one,) = await store.sinks.of_jobs([job.id])
    assert await store.sinks.put(replace(one, state=SinkState.FAILED, due_at=None))
    await store.sinks.wake(job.id, 30.0, 90.0)
    (awake,) = await store.sinks.of_jobs([job.id])
    assert (awake.state, awake.due_at, awake.woken_at) == (SinkState.ACTIVE, 30.0, None)


async def test_a_sink_is_added_to_a_job_once(store: Store) -> None:
    job = a_job(sinks=("one",))
    assert await store.jobs.create(job)
    for _ in range(2):
        assert await store.sinks.add(job.id, "two", 77.0)
    assert [each.sink for each in await store.sinks.of_jobs([job.id])] == ["one", "two"]
    found = await store.jobs.get(job.id)
    assert found is not None
    assert found.sinks == ("one", "two")
    assert not await store.sinks.add("job_unknown", "two", 77.0)


async def test_deliveries_go_with_their_job(store: Store) -> None:
    one = await a_delivery(store)
    await store.jobs.end_reading(one.job_id, 0, "no list", 100.0)
    job = await store.jobs.get(one.job_id)
    assert job is not None
    assert job.status is JobStatus.FAILED
    assert await store.jobs.begin_delete(one.job_id)
    assert not await store.sinks.add(one.job_id, "two", 100.0)
    assert await store.jobs.delete(one.job_id)
    assert await store.sinks.of_jobs([one.job_id]) == ()
    assert await store.sinks.put(one) is None


async def test_they_are_counted_by_sink_and_state(store: Store) -> None:
    await a_delivery(store, "one")
    failed = await a_delivery(store, "one")
    await a_delivery(store, "two")
    assert await store.sinks.put(replace(failed, state=SinkState.FAILED, due_at=None))
    assert await store.sinks.standing() == {
        ("one", SinkState.ACTIVE): 1,
        ("one", SinkState.FAILED): 1,
        ("two", SinkState.ACTIVE): 1,
    }
