"""How long a job at a prompt waits for a site that fails, and what it says of it."""

import time

import pytest
from msgspec import Raw

from scrapeyard.cli.runs.waiting import JobWait, LastFailure, Patience
from scrapeyard.model import ExitReason, RunError
from scrapeyard.model.job import BreakerState, Counts, Item, ItemOutcome, ItemStatus, Job, JobPolicy, JobStatus


class Clock:
    """A time that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def job(*, success: int = 0, breaker: BreakerState | None = None) -> Job:
    return Job(
        id="job_1",
        status=JobStatus.RUNNING,
        scraper="shop/product",
        pinned="shop/product@1.0.0",
        policy=JobPolicy(),
        counts=Counts(total=10, pending=10 - success, success=success),
        breaker=breaker or BreakerState(),
        created_at=0.0,
    )


def pending(not_before: float | None) -> Item:
    return Item(seq=0, key="0", input=Raw(b"{}"), status=ItemStatus.PENDING, not_before=not_before)


def failed(reason: ExitReason, message: str) -> ItemOutcome:
    error = RunError(type="FetchFailed", message=message)
    return ItemOutcome(seq=0, attempt=1, exit_reason=reason, error=error, started_at=0.0, finished_at=0.0)


def waits(until: float, *, is_breaker: bool = True) -> JobWait:
    return JobWait(until=until, why="it fails", is_breaker=is_breaker)


@pytest.mark.parametrize(
    ("seconds", "success", "is_breaker", "longest"),
    [
        (None, 0, True, 60),
        (None, 1, True, 900),
        (None, 0, False, 10**9),
        (5, 0, False, 5),
        (5, 1, True, 5),
        (0, 0, True, 0),
    ],
)
def test_a_wait_that_ends_too_late_is_given_up_at_its_beginning(
    seconds: float | None, success: int, is_breaker: bool, longest: float
) -> None:
    clock = Clock()
    patience = Patience(seconds, clock)
    assert not patience.is_over(job(success=success), waits(clock.now + longest, is_breaker=is_breaker))
    assert patience.ended_by is None
    if longest < 10**9:
        late = waits(clock.now + longest + 1, is_breaker=is_breaker)
        assert patience.is_over(job(success=success), late)
        assert patience.ended_by == late


def test_time_is_counted_from_the_last_success() -> None:
    clock = Clock()
    patience = Patience(100, clock)
    clock.now += 90
    assert patience.is_over(job(), waits(clock.now + 20))
    assert not patience.is_over(job(success=1), waits(clock.now + 20))
    clock.now += 90
    assert not patience.is_over(job(success=1), None)
    assert patience.is_over(job(success=1), waits(clock.now + 20))


def test_each_wait_is_told_once_and_a_short_one_never() -> None:
    clock = Clock()
    patience = Patience(None, clock)
    assert patience.news(None) == ""
    assert patience.news(waits(clock.now + 1)) == ""
    until = clock.now + 300
    at = time.strftime("%H:%M:%S", time.localtime(until))
    assert patience.news(waits(until)) == f"waits until {at} (5:00 min): it fails"
    clock.now += 10
    assert patience.news(waits(until)) == ""
    assert "it fails" in patience.news(waits(until + 300))


def test_an_open_breaker_is_why_with_the_last_failure() -> None:
    failure = LastFailure()
    state = BreakerState(state="open", opened_at=50.0, reason="20 attempts in a row failed")
    wait = failure.wait(job(breaker=state), (), 60.0)
    assert wait == JobWait(until=350.0, why="the breaker is open: 20 attempts in a row failed", is_breaker=True)
    failure.hear(failed(ExitReason.FETCH_CONNECT, "refused"))
    failure.hear(ItemOutcome(seq=1, attempt=1, exit_reason=ExitReason.SUCCEEDED, started_at=0.0, finished_at=0.0))
    wait = failure.wait(job(breaker=state), (), 60.0)
    assert wait is not None
    assert wait.why.endswith("; the last failure is fetch_connect: refused")


def test_items_that_wait_for_their_next_attempt_are_why() -> None:
    failure = LastFailure()
    assert failure.wait(job(), (), 60.0) is None
    assert failure.wait(job(), (pending(70.0), pending(None)), 60.0) is None, "a fresh item starts at once"
    assert failure.wait(job(), (pending(70.0), pending(59.0)), 60.0) is None
    wait = failure.wait(job(), (pending(90.0), pending(70.0)), 60.0)
    assert wait is not None
    assert (wait.until, wait.is_breaker) == (70.0, False)
    failure.hear(failed(ExitReason.FETCH_SITE_DOWN, "left alone"))
    wait = failure.wait(job(), (pending(70.0),), 60.0)
    assert wait is not None
    assert wait.is_breaker, "the site's own breaker is open"
