"""How jobs stood over time, on SQLite and on PostgreSQL."""

from itertools import pairwise

import pytest

from scrapeyard.model.job import Counts, JobStatus
from scrapeyard.store.jobs.rules import ticks
from scrapeyard.store.jobs.rules.ticks import MAX_POINTS, TICK_SECONDS, ticks_apart
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import successes
from tests.contract.job_steps import a_running_job, fetched, taken
from tests.contract.nouns import NOW


async def test_running_jobs_are_noted_as_they_stand(store: Store) -> None:
    job, paused = await a_running_job(store, 4), await a_running_job(store, 1)
    await store.jobs.set_paused(paused.id, True, "by hand", NOW)
    await store.points.sample(NOW)
    batch, items = await taken(store, job, 2)
    await store.batches.record(batch, "worker-1", 0, successes(items), NOW)
    for moment in (1, TICK_SECONDS, TICK_SECONDS + 1):
        await store.points.sample(NOW + moment)
    first, second = await store.points.of_job(job.id)
    assert (first.at, first.counts) == (NOW, Counts(total=4, pending=4))
    assert (second.at, second.counts) == (NOW + TICK_SECONDS, Counts(total=4, pending=2, success=2))
    assert second.use == (await fetched(store, job)).use
    assert second.use.requests == 2
    assert await store.points.of_job(paused.id) == []
    assert await store.points.of_job("job_missing") == []


async def test_a_long_job_keeps_fewer_points(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 60
    monkeypatch.setattr(ticks, "MAX_POINTS", most)
    job = await a_running_job(store, 1)
    seconds = 0.0
    while seconds < 2.2 * most * TICK_SECONDS:
        await store.points.sample(NOW + seconds)
        seconds += TICK_SECONDS
    await store.points.thin(NOW + seconds)
    times = [point.at - NOW for point in await store.points.of_job(job.id)]
    assert most / 2 <= len(times) <= most
    assert times[0] == 0
    apart = {round(later - earlier) for earlier, later in pairwise(times)}
    assert apart == {4 * TICK_SECONDS}


def test_the_older_a_job_the_further_its_points_are_apart() -> None:
    assert [ticks_apart(MAX_POINTS * TICK_SECONDS * times) for times in (0.9, 1, 1.9, 2, 1000)] == [1, 2, 2, 4, 1024]


async def test_points_go_with_their_job(store: Store) -> None:
    job = await a_running_job(store, 1)
    await store.points.sample(NOW)
    await store.jobs.cancel(job.id, False, NOW)
    assert (await fetched(store, job)).status is JobStatus.CANCELLED
    assert await store.jobs.delete(job.id)
    assert await store.points.of_job(job.id) == []
