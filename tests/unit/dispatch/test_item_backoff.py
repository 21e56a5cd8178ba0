"""When a failed item is handed out again: the worker's rules, the store and the feeder, with a clock moved by hand."""

from pathlib import Path

import pytest

from scrapeyard.model import Backoff, ExitReason
from scrapeyard.model.job import BreakerPolicy, ItemOutcome
from scrapeyard.sandbox.port import Verdict
from scrapeyard.worker.attempts.retrying import RetryRules
from tests.services.job_yard import TICK, JobYard, feed, job_yard

TIMED_OUT = Verdict(exit_reason=ExitReason.FETCH_TIMEOUT)


async def fail(yard: JobYard, rules: RetryRules) -> float | None:
    """The item fails once more; seconds until its next attempt as its worker decided, None if there is none."""
    (delivery,) = await yard.queue.take(["default"], 1, ["low"], 0)
    now = yard.clock()
    taken = await yard.store.batches.take(delivery.run_id, "w1", now, now + 15)
    assert taken is not None
    batch, _, (item,) = taken
    again = rules.after(TIMED_OUT, item.attempt, jitter=lambda: 0.0)
    ended = ItemOutcome(
        seq=item.seq,
        attempt=item.attempt,
        exit_reason=TIMED_OUT.exit_reason,
        started_at=now,
        finished_at=now,
        not_before=now + again.seconds if again else None,
    )
    assert await yard.store.batches.record(batch.id, "w1", 0, [ended], now) is not None
    return again.seconds if again else None


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (Backoff(first_seconds=1, cap_seconds=60), [1, 2, 4, 8, 16, 32, 60, 60]),
        (Backoff(first_seconds=1, factor=3, cap_seconds=60), [1, 3, 9, 27, 60]),
        (Backoff(kind="linear", first_seconds=2, cap_seconds=60), [2, 4, 6, 8]),
        (Backoff(kind="linear", first_seconds=2, factor=1.5, cap_seconds=4.5), [2, 3, 4, 4.5]),
    ],
)
async def test_an_item_waits_as_its_policy_says(tmp_path: Path, backoff: Backoff, waits: list[float]) -> None:
    async with job_yard(tmp_path) as yard:
        await yard.beat()
        attempts = 1 + len(waits)
        policy = {"max_attempts": attempts, "backoff": backoff, "breaker": BreakerPolicy(enabled=False)}
        job_id = await yard.job(1, **policy)
        rules = RetryRules(max_attempts=attempts, backoff=(await yard.got(job_id)).policy.backoff)
        await feed(yard)
        for wait in waits:
            assert await fail(yard, rules) == wait
            yard.clock.now += wait - 3 * TICK
            await feed(yard)
            assert (await yard.got(job_id)).counts.queued == 0
            yard.clock.now += 3 * TICK
            await feed(yard)
            assert (await yard.got(job_id)).counts.queued == 1
        assert await fail(yard, rules) is None
        assert (await yard.got(job_id)).counts.error == 1
