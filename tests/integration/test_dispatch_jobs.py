"""Dispatchers as real processes on Valkey and PostgreSQL, killed while they feed; the test itself plays the worker."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.dispatcher import LEAD_SECONDS, Dispatcher
from scrapeyard.model import Priority
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.queues.redis import RedisQueue
from scrapeyard.settings import Settings
from scrapeyard.store.job_port import ItemFilter
from scrapeyard.store.sql import SqlStore
from tests.leaks import until
from tests.programs import Cluster
from tests.services.job_yard import JobYard

PATIENCE = 60.0


class RealClock:
    """Time as it is, where JobYard wants a clock."""

    def __call__(self) -> float:
        return time.time()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(gateways=0, workers=0, dispatchers=2) as cluster:
        yield cluster


@pytest.fixture
async def yard(cluster: Cluster, tmp_path: Path) -> AsyncIterator[JobYard]:
    """Connected to the cluster. Its own dispatcher is never started."""
    queue, store = RedisQueue(cluster.valkey.url), SqlStore(cluster.postgres.url)
    async with AsyncExitStack() as stack:
        for part in (store, queue):
            await part.start()
            stack.push_async_callback(part.stop)
        unused = Dispatcher(Settings(), store, queue, ObjectBlobs.in_folder(tmp_path / "blobs"))
        yield JobYard(clock=RealClock(), queue=queue, store=store, dispatcher=unused)  # type: ignore[arg-type]


async def work_until(yard: JobYard, there: Callable[[], Awaitable[bool]], **how: float) -> None:
    """Do a worker's work until it is so. Heartbeats are sent, as those of eight slots."""
    deadline = time.monotonic() + PATIENCE
    while not await there():
        assert time.monotonic() < deadline, "the job stands still"
        await yard.beat()
        if not await yard.work(4, **how):  # type: ignore[arg-type]
            await asyncio.sleep(0.01)


async def test_items_flow_on_though_the_leader_is_killed_again_and_again(cluster: Cluster, yard: JobYard) -> None:
    job_id = await yard.job(20_000)
    for share in (0.1, 0.5):
        await work_until(yard, at_least(yard, job_id, share))
        leader = cluster.leader()
        assert leader is not None
        leader.kill()
        began = time.monotonic()
        cluster.add_dispatcher()
        done = (await yard.got(job_id)).counts.done
        queued = (await yard.got(job_id)).counts.queued
        await work_until(yard, at_least(yard, job_id, (done + queued + 500) / 20_000))
        assert time.monotonic() - began < LEAD_SECONDS + 5
    await work_until(yard, is_completed(yard, job_id))
    job = await yard.got(job_id)
    assert (job.counts.success, job.counts.total) == (20_000, 20_000)
    assert await yard.store.recount(job_id) == job.counts
    times = Counter[int]()
    for batch in yard.taken:
        times.update(range(batch.first, batch.last + 1))
    assert len(times) == 20_000
    assert set(times.values()) == {1}
    seen = [item.seq async for items in yard.store.stream_items(job_id, ItemFilter(), data=False) for item in items]
    assert seen == list(range(20_000))


async def test_what_valkey_forgets_is_published_again(cluster: Cluster, yard: JobYard) -> None:
    job_id = await yard.job(2000, rate=None)
    await work_until(yard, at_least(yard, job_id, 0.1))
    await asyncio.to_thread(cluster.valkey.stop)
    await asyncio.to_thread(cluster.valkey.start)
    await work_until(yard, is_completed(yard, job_id))
    counts = (await yard.got(job_id)).counts
    assert (counts.success, counts.error) == (2000, 0)


async def test_a_rate_holds_across_processes(yard: JobYard) -> None:
    job_id = await yard.job(1000, rate=100.0)
    await work_until(yard, at_least(yard, job_id, 0.05), seconds=0.001)
    began, before = time.monotonic(), (await yard.got(job_id)).counts.success
    await work_until(yard, at_least(yard, job_id, 0.85), seconds=0.001)
    done = (await yard.got(job_id)).counts.success - before
    assert done / (time.monotonic() - began) == pytest.approx(100, rel=0.05)
    await yard.store.cancel_job(job_id, True, time.time())


async def test_a_paused_job_hands_out_nothing_within_a_second(yard: JobYard) -> None:
    job_id = await yard.job(100_000)
    await work_until(yard, at_least(yard, job_id, 0.01))
    await yard.store.set_paused(job_id, True, "by hand", time.time())
    began = time.monotonic()
    while time.monotonic() - began < 1:
        await yard.work(4)
        await asyncio.sleep(0.01)
    done = (await yard.got(job_id)).counts
    assert (done.queued, done.in_progress) == (0, 0)
    assert (await yard.queue.depth()).get(("default", Priority.LOW), 0) == 0
    await yard.store.cancel_job(job_id, True, time.time())


async def test_a_new_job_is_begun_within_a_second(cluster: Cluster, yard: JobYard) -> None:
    until(cluster.leader, "a dispatcher leads")
    began = time.monotonic()
    job_id = await yard.job(10)
    while (await yard.got(job_id)).started_at is None:
        assert time.monotonic() - began < 2
        await asyncio.sleep(0.01)
    await work_until(yard, is_completed(yard, job_id))


def at_least(yard: JobYard, job_id: str, share: float) -> Callable[[], Awaitable[bool]]:
    """So much of it is done."""

    async def there() -> bool:
        counts = (await yard.got(job_id)).counts
        return counts.done >= share * counts.total

    return there


def is_completed(yard: JobYard, job_id: str) -> Callable[[], Awaitable[bool]]:
    """It has ended, with its files."""

    async def there() -> bool:
        job: Job = await yard.got(job_id)
        return job.status is JobStatus.COMPLETED

    return there
