"""Dispatchers as real processes on Valkey and PostgreSQL, killed while they feed; the test itself plays the worker."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.feeding.pace import SLACK_SECONDS
from scrapeyard.dispatch.leader import Dispatcher
from scrapeyard.model import Priority
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.queues.redis.queue import RedisQueue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.sql import SqlStore
from tests.leaks import PATIENCE, until
from tests.programs import Cluster
from tests.services.job_yard import JobYard

ITEMS = 3000


class RealClock:
    """Time as it is, where JobYard wants a clock."""

    def __call__(self) -> float:
        return time.time()


@dataclass(kw_only=True)
class Yard(JobYard):
    """One that knows its jobs, so that none is left for the next test's worker."""

    made: list[str] = field(default_factory=list)

    async def job(self, items: int, **more: Any) -> str:
        self.made.append(await super().job(items, **more))
        return self.made[-1]

    async def close(self) -> None:
        for job_id in self.made:
            await self.store.jobs.cancel(job_id, True, time.time())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(gateways=0, workers=0, dispatchers=2) as cluster:
        yield cluster


@pytest.fixture
async def yard(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Yard]:
    """Connected to the cluster. Its own dispatcher is never started."""
    queue, store = RedisQueue(cluster.broker.url, patience_seconds=PATIENCE), SqlStore(cluster.postgres.url)
    async with AsyncExitStack() as stack:
        for part in (store, queue):
            await part.start()
            stack.push_async_callback(part.stop)
        unused = Dispatcher(Settings(), store, queue, ObjectBlobs.in_folder(tmp_path / "blobs"))
        yard = Yard(clock=RealClock(), queue=queue, store=store, dispatcher=unused)  # type: ignore[arg-type]
        stack.push_async_callback(yard.close)
        yield yard


async def work_until(yard: JobYard, there: Callable[[], Awaitable[bool]], **how: float) -> None:
    """Do a worker's work until it is so. Heartbeats are sent, as those of eight slots."""
    deadline = time.monotonic() + PATIENCE
    while not await there():
        assert time.monotonic() < deadline, "the job stands still"
        await yard.beat()
        if not await yard.work(4, **how):  # type: ignore[arg-type]
            await asyncio.sleep(0.01)


async def test_items_flow_on_though_the_leader_is_killed_again_and_again(cluster: Cluster, yard: JobYard) -> None:
    job_id = await yard.job(ITEMS)
    for share in (0.1, 0.5):
        await work_until(yard, at_least(yard, job_id, share))
        leader = await asyncio.to_thread(until, cluster.leader, "a dispatcher leads")
        leader.kill()
        cluster.add_dispatcher()
        counts = (await yard.got(job_id)).counts
        await work_until(yard, at_least(yard, job_id, (counts.done + counts.queued + 500) / ITEMS))
    await work_until(yard, is_completed(yard, job_id))
    job = await yard.got(job_id)
    assert (job.counts.success, job.counts.total) == (ITEMS, ITEMS)
    assert await yard.store.items.recount(job_id) == job.counts
    times = Counter[int]()
    for batch in yard.taken:
        times.update(range(batch.first, batch.last + 1))
    assert len(times) == ITEMS
    assert set(times.values()) == {1}
    seen = [item.seq async for items in yard.store.items.stream(job_id, ItemFilter(), data=False) for item in items]
    assert seen == list(range(ITEMS))


async def test_what_valkey_forgets_is_published_again(cluster: Cluster, yard: JobYard) -> None:
    job_id = await yard.job(1000, rate=None)
    await work_until(yard, at_least(yard, job_id, 0.1))
    try:
        await asyncio.to_thread(cluster.broker.stop)
    finally:
        await asyncio.to_thread(cluster.broker.start)
    await work_until(yard, is_completed(yard, job_id))
    counts = (await yard.got(job_id)).counts
    assert (counts.success, counts.error) == (1000, 0)


async def test_a_rate_holds_across_processes(yard: JobYard) -> None:
    """By the times at which they were handed out, whenever that was; that a rate is reached is for a clock moved by
    hand to show."""
    rate = 100.0
    job_id = await yard.job(500, rate=rate)
    await work_until(yard, is_completed(yard, job_id), seconds=0.001)
    cuts = sorted((batch.queued_at, batch.last - batch.first + 1) for batch in yard.taken if batch.job_id == job_id)
    assert sum(items for _, items in cuts) == 500
    # what a round may hand out at once, and as much again for one that was held up after it had counted its tokens
    at_once = (await yard.got(job_id)).policy.burst + rate * SLACK_SECONDS
    for number, (began, _) in enumerate(cuts):
        handed = 0
        for at, items in cuts[number:]:
            handed += items
            assert handed <= rate * (at - began) + 2 * at_once, cuts


async def test_a_paused_job_hands_out_nothing_within_a_second(yard: JobYard) -> None:
    job_id = await yard.job(2000)
    await work_until(yard, at_least(yard, job_id, 0.01))
    await yard.store.jobs.set_paused(job_id, True, "by hand", time.time())
    done, taken = (await yard.got(job_id)).counts.done, len(yard.taken)

    async def nothing_is_out() -> bool:
        counts = (await yard.got(job_id)).counts
        waiting = (await yard.queue.depth()).get(("default", Priority.LOW), 0)
        return (counts.queued, counts.in_progress, waiting) == (0, 0, 0)

    await work_until(yard, nothing_is_out)
    began = time.monotonic()
    while time.monotonic() - began < 1:
        assert await nothing_is_out()
        await yard.work(4)
        await asyncio.sleep(0.01)
    assert (len(yard.taken), (await yard.got(job_id)).counts.done) == (taken, done)
    assert done < 2000


async def test_a_new_job_is_begun_within_a_second(cluster: Cluster, yard: JobYard) -> None:
    """Nobody tells the dispatchers of it. How soon they look is the machine's affair, but look they do."""
    until(cluster.leader, "a dispatcher leads")
    job_id = await yard.job(10)
    async with asyncio.timeout(PATIENCE):
        while (await yard.got(job_id)).started_at is None:
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
