"""Feeding jobs, on real embedded backends, with a clock moved by hand."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.leader import Dispatcher
from scrapeyard.dispatch.upkeep.lost_deliveries import GRACE_SECONDS
from scrapeyard.model import BudgetLimits, ExitReason, Priority, Usage
from scrapeyard.model.job import BreakerPolicy, ItemOutcome, JobStatus
from scrapeyard.settings import Settings
from tests.services.job_yard import JobYard, always_badly, feed, job_yard, run_out, settle


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[JobYard]:
    async with job_yard(tmp_path) as yard:
        yield yard


async def waiting(yard: JobYard, lane: str = "default") -> int:
    return (await yard.queue.depth()).get((lane, Priority.LOW), 0)


async def test_a_small_window_waits_and_no_more(yard: JobYard) -> None:
    await yard.beat(slots=16)
    job_id = await yard.job(5000)
    for _ in range(10):
        await feed(yard)
    assert await waiting(yard) == 6  # half of the twelve slots that are open to batches
    counts = (await yard.got(job_id)).counts
    assert (counts.queued, counts.pending) == (60, 4940)
    await yard.take(2)
    await feed(yard)
    assert await waiting(yard) == 6


async def test_without_a_worker_some_batches_wait_for_the_first(yard: JobYard) -> None:
    await yard.job(5000)
    for _ in range(3):
        await feed(yard)
    assert await waiting(yard) == 2


async def test_every_item_is_handed_out_once_in_ever_larger_batches(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(20_000)
    assert await run_out(yard, seconds=0.0001) == 20_000
    sizes = [batch.last - batch.first + 1 for batch in yard.taken]
    assert sum(sizes) == 20_000
    assert 900 <= max(sizes) <= 1000
    assert sorted(batch.first for batch in yard.taken) == [batch.first for batch in yard.taken]
    assert (await yard.got(job_id)).counts.success == 20_000


async def test_lanes_are_filled_each_for_itself(yard: JobYard) -> None:
    await yard.beat(slots=8, lanes=("default",))
    await yard.beat(slots=40, lanes=("bulk",), id="worker_2")
    await yard.job(5000)
    await yard.job(5000, lane="bulk")
    await feed(yard)
    assert (await waiting(yard), await waiting(yard, "bulk")) == (3, 15)


async def test_jobs_of_different_size_share_evenly(yard: JobYard) -> None:
    await yard.beat()
    large = await yard.job(4000)
    small = await yard.job(1000)
    shared: Counter[str] = Counter()
    while (await yard.got(small)).counts.pending > 300:
        await feed(yard)
        await yard.work()
    for job_id in (large, small):
        shared[job_id] = (await yard.got(job_id)).counts.success
    assert shared[large] == pytest.approx(shared[small], rel=0.15)


async def test_a_rate_of_a_hundred_holds(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(3000, rate=100.0)
    begun = yard.clock.now
    for _ in range(200):
        await feed(yard)
        await yard.work(seconds=0.001)
    done = (await yard.got(job_id)).counts.success
    assert done / (yard.clock.now - begun) == pytest.approx(100, rel=0.05)
    assert max(batch.last - batch.first + 1 for batch in yard.taken) <= 10


async def test_with_a_rate_little_waits_though_no_worker_takes(yard: JobYard) -> None:
    await yard.beat(slots=1000)
    job_id = await yard.job(3000, rate=100.0)
    for _ in range(200):
        await feed(yard)
    assert (await yard.got(job_id)).counts.queued <= 100


async def test_concurrency_bounds_what_is_out(yard: JobYard) -> None:
    await yard.beat(slots=100)
    job_id = await yard.job(500, concurrency=7)
    for _ in range(5):
        await feed(yard)
    counts = (await yard.got(job_id)).counts
    assert counts.queued == 7
    assert len(await yard.take()) == 7


async def test_a_paused_job_is_handed_nothing_and_what_waited_is_put_back(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(1000)
    await feed(yard)
    await yard.store.jobs.set_paused(job_id, True, "by hand", yard.clock())
    await feed(yard)
    assert await yard.work() == 0
    counts = (await yard.got(job_id)).counts
    assert (counts.pending, counts.queued, counts.in_progress) == (1000, 0, 0)
    await yard.store.jobs.set_paused(job_id, False, "", yard.clock())
    assert await run_out(yard) == 1000


async def test_a_breaker_pauses_probes_and_closes_by_itself(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(500, max_attempts=1)
    await feed(yard)
    assert await yard.work(3, ends=always_badly) == 30
    await feed(yard)
    job = await yard.got(job_id)
    assert (job.status, job.pause_reason, job.breaker.state) == (JobStatus.PAUSED, "breaker", "open")
    await yard.work()
    yard.clock.now += 200
    await feed(yard)
    assert await waiting(yard) == 0
    yard.clock.now += 101
    await feed(yard)
    job = await yard.got(job_id)
    assert (job.status, job.breaker.state, job.counts.queued) == (JobStatus.RUNNING, "half_open", 3)
    await feed(yard)
    assert (await yard.got(job_id)).counts.queued == 3
    await yard.work()
    await feed(yard)
    assert (await yard.got(job_id)).breaker.state == "closed"
    assert (await yard.got(job_id)).counts.queued > 3
    told = await yard.told(job_id, "breaker")
    assert [each["state"] for each in told] == ["open", "half_open", "closed"]
    assert told[0]["until"].endswith("Z"), "a time as everywhere else"


async def test_probes_that_fail_open_the_breaker_again(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(500, max_attempts=1)
    for _ in range(2):
        await feed(yard)
        await yard.work(ends=always_badly)
        await feed(yard)
        assert (await yard.got(job_id)).status is JobStatus.PAUSED
        yard.clock.now += 301
    assert (await yard.got(job_id)).breaker.trips == 2


async def test_another_leader_goes_on_with_an_open_breaker(yard: JobYard, tmp_path: Path) -> None:
    await yard.beat()
    job_id = await yard.job(500, max_attempts=1)
    await feed(yard)
    await yard.work(ends=always_badly)
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    other = Dispatcher(Settings(), yard.store, yard.queue, blobs, yard.clock)
    await other.feeder.feed()
    assert (await yard.got(job_id)).status is JobStatus.PAUSED
    assert await waiting(yard) == 0


async def test_probes_lost_with_their_worker_are_sent_again(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(500, max_attempts=2)
    await feed(yard)
    await yard.work(ends=always_badly)
    await feed(yard)
    yard.clock.now += 301
    await feed(yard)
    await yard.take()
    yard.clock.now += 16
    await yard.dispatcher.round()
    await feed(yard)
    job = await yard.got(job_id)
    assert (job.breaker.state, job.counts.queued, job.counts.in_progress) == ("half_open", 3, 0)


async def test_a_breaker_that_opens_with_the_last_items_does_not_hold_the_end(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(60, max_attempts=1)
    await feed(yard)
    first = await yard.take(1)
    await yard.work(ends=always_badly)
    for _ in range(5):
        await feed(yard)
        await yard.work(ends=always_badly)
    assert first
    yard.clock.now += 16
    for _ in range(3):
        await yard.dispatcher.round()
        yard.clock.now += 301
        await feed(yard)
        await yard.work()
    await settle(yard)
    assert (await yard.got(job_id)).status is JobStatus.COMPLETED


async def test_a_breaker_switched_off_is_not_heeded(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(300, max_attempts=1, breaker=BreakerPolicy(enabled=False))
    assert await run_out(yard, ends=always_badly) == 300
    assert (await yard.got(job_id)).counts.error == 300


async def test_a_budget_warns_once_then_pauses_until_it_is_raised(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(1000, budget=BudgetLimits(requests=100), concurrency=6)
    for _ in range(200):
        await feed(yard)
        if not await yard.work(1, usage=Usage(requests=1)):
            break
    job = await yard.got(job_id)
    assert (job.status, job.pause_reason) == (JobStatus.PAUSED, "budget")
    told = await yard.told(job_id, "budget")
    assert [(one["state"], one["budget"]) for one in told] == [("nearly_used", "requests"), ("used_up", "requests")]
    await yard.store.jobs.set_paused(job_id, False, "", yard.clock())
    await feed(yard)
    assert (await yard.got(job_id)).status is JobStatus.PAUSED
    assert len(await yard.told(job_id, "budget")) == 2


async def test_a_job_that_may_use_no_dear_proxies_goes_on(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(10, budget=BudgetLimits(residential_megabytes=0.0))
    assert await run_out(yard) == 10
    assert (await yard.got(job_id)).status is JobStatus.RUNNING
    assert await yard.told(job_id, "budget") == []


async def test_bytes_through_dear_proxies_have_a_budget_of_their_own(yard: JobYard) -> None:
    await yard.beat()
    cheap = Usage(bytes_received=2**20, bytes_by_class={"datacenter": 2**20})
    job_id = await yard.job(100, budget=BudgetLimits(residential_megabytes=20.0))
    await feed(yard)
    await yard.work(2, usage=cheap)
    await feed(yard)
    assert (await yard.got(job_id)).status is JobStatus.RUNNING
    dear = Usage(bytes_received=2**20, bytes_by_class={"residential": 2**19, "unlocker": 2**19})
    await yard.work(3, usage=dear)
    await feed(yard)
    assert (await yard.got(job_id)).status is JobStatus.PAUSED


async def test_a_batch_that_was_cut_but_not_published_is_published_later(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(3)
    await feed(yard)
    lost = await yard.queue.take(["default"], 100, list(Priority), 0)
    assert lost
    await yard.dispatcher.round()
    assert await waiting(yard) == 0
    yard.clock.now += GRACE_SECONDS + 1
    await yard.dispatcher.round()
    await yard.dispatcher.round()
    assert await waiting(yard) == len(lost)
    await yard.queue.publish(lost)
    assert await yard.work() == 3
    assert (await yard.got(job_id)).counts.success == 3


async def test_a_lost_worker_costs_an_attempt_and_then_the_item(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(3, max_attempts=2)
    for _ in range(2):
        await feed(yard)
        for batch in await yard.take():
            assert await yard.store.batches.record(batch.id, "w1", 0, [], yard.clock(), begun=batch.left)
        yard.clock.now += 16
        await yard.dispatcher.round()
    counts = (await yard.got(job_id)).counts
    assert (counts.error, counts.pending, counts.in_progress) == (3, 0, 0)


async def test_a_delayed_retry_is_handed_out_when_it_is_due(yard: JobYard) -> None:
    await yard.beat()
    job_id = await yard.job(1)
    await feed(yard)
    (batch,) = await yard.take()
    later = yard.clock() + 30
    times = {"started_at": yard.clock(), "finished_at": yard.clock(), "not_before": later}
    outcome = ItemOutcome(seq=0, attempt=1, exit_reason=ExitReason.RETRY, **times)
    await yard.store.batches.record(batch.id, "w1", 0, [outcome], yard.clock())
    await feed(yard)
    assert await waiting(yard) == 0
    yard.clock.now += 30
    attempts: list[int] = []
    await feed(yard)
    await yard.work(ends=lambda item: attempts.append(item.attempt) or ExitReason.SUCCEEDED)
    assert attempts == [2]
    assert (await yard.got(job_id)).counts.success == 1
