"""Sizes of batches, and the rate of a job, by the clock."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from scrapeyard.dispatch.feeding.pace import FIRST_ITEMS, SLACK_SECONDS, BatchPace, TokenBucket, batch_items
from scrapeyard.model import Usage
from scrapeyard.model.job import Counts, Job, JobPolicy, JobStatus


def a_job(*, done: int = 0, wall_ms: float = 0.0, **policy: Any) -> Job:
    return Job(
        id="job_1",
        status=JobStatus.RUNNING,
        scraper="s/t",
        pinned="s/t@1.0.0",
        created_at=0.0,
        policy=JobPolicy(**policy),
        counts=Counts(total=done, success=done),
        use=Usage(wall_ms=wall_ms),
    )


def paced(seconds: float) -> BatchPace:
    """After thousands of items that took so long each."""
    pace = BatchPace()
    for done in range(0, 20_000, 2000):
        pace.hear(a_job(done=done, wall_ms=done * seconds * 1000), 1000)
    return pace


def size(pace: BatchPace, pending: int = 10**6, slots: int = 6, **policy: Any) -> int:
    return batch_items(a_job(**policy), pace, pending=pending, slots=slots, batch_seconds=1.0)


@pytest.mark.parametrize(("seconds", "items"), [(0.00001, 1000), (0.002, 500), (0.1, 10), (0.9, 1), (30.0, 1)])
def test_a_batch_takes_about_a_second(seconds: float, items: int) -> None:
    assert size(paced(seconds)) == pytest.approx(items, abs=1)


def test_an_unknown_job_begins_with_a_few_items_for_each_slot() -> None:
    assert size(BatchPace()) == FIRST_ITEMS
    assert size(BatchPace(), pending=12, slots=6) == 2


def test_sizes_grow_only_as_items_end() -> None:
    pace = BatchPace()
    pace.hear(a_job(done=3, wall_ms=0.03), 1000)
    assert size(pace) == FIRST_ITEMS
    pace.hear(a_job(done=13, wall_ms=0.13), 1000)
    assert size(pace) == 4 * FIRST_ITEMS


def test_items_that_become_slow_make_batches_small_within_some_looks() -> None:
    pace = paced(0.001)
    for look in range(1, 15):
        pace.hear(a_job(done=18_000 + look, wall_ms=18_000 + look * 2000.0), 1000)
    assert size(pace) == 1


def test_a_redriven_job_is_measured_on() -> None:
    pace = paced(0.01)
    pace.hear(a_job(done=0, wall_ms=180_000), 1000)
    pace.hear(a_job(done=100, wall_ms=181_000), 1000)
    assert pace.seconds == pytest.approx(0.01)


def test_the_last_items_are_spread_over_the_slots() -> None:
    assert size(paced(0.01), pending=60, slots=6) == 5
    assert size(paced(0.01), pending=3, slots=6) == 5  # 50 ms: less would cost more than it takes


def test_built_in_scrapers_run_many_items_of_a_batch_at_once() -> None:
    pace = BatchPace()
    for done in range(0, 20_000, 2000):
        job = replace(a_job(done=done, wall_ms=done * 500.0), pinned="builtin/page@1.0.0")
        pace.hear(job, 1000)
    assert size(pace) == 32


def test_rate_and_concurrency_bound_a_batch() -> None:
    assert size(paced(0.001), rate=100) == 10
    assert size(paced(0.001), rate=0.5) == 1
    assert size(paced(0.001), concurrency=12) == 2
    assert size(paced(0.001), concurrency=3) == 1


@given(st.lists(st.floats(0.01, 0.3), min_size=20, max_size=60), st.floats(0.5, 500), st.integers(1, 20))
def test_the_rate_holds_whatever_the_ticks(ticks: list[float], rate: float, burst: int) -> None:
    bucket, now, handed = TokenBucket(burst, 0.0), 0.0, 0
    for tick in ticks:
        now += tick
        tokens = bucket.fill(rate, burst, now)
        bucket.take(tokens)
        handed += tokens
        assert handed <= burst + rate * now + 1e-6
    late = sum(max(0.0, tick - SLACK_SECONDS) for tick in ticks)
    assert handed >= rate * (now - late) - 1 - burst


def test_a_hundred_a_second_in_ticks_of_fifty_milliseconds() -> None:
    bucket, handed = TokenBucket(0, 0.0), 0
    for tick in range(1, 201):
        tokens = bucket.fill(100.0, 1, tick * 0.05)
        bucket.take(tokens)
        handed += tokens
    assert handed == pytest.approx(1000, rel=0.05)


def test_a_rest_gives_no_more_than_the_burst_and_a_clock_set_back_gives_none() -> None:
    bucket = TokenBucket(0, 1000.0)
    assert bucket.fill(10.0, 5, 2000.0) == 5 + int(10 * SLACK_SECONDS)
    bucket.take(10)
    assert bucket.fill(10.0, 5, 500.0) == 0
