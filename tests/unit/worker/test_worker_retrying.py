"""Which runs are tried again, and when."""

from typing import Any

import pytest
from msgspec import Raw

from scrapeyard.model import Backoff, Delivery, ExitReason, FetchPolicy, Outcome, RunError
from scrapeyard.worker.runs.retrying import LEAST_SECONDS, MOST_SECONDS, postponed, retry_seconds, with_retry

NOW = 1_800_000_000.0


def delivery(attempt: int = 1, backoff: Backoff | None = None, **given: Any) -> Delivery:
    plain = {"run_id": "r", "scraper": "a/b", "input": Raw(b"{}"), "created_at": NOW, "queued_at": NOW}
    fetching = FetchPolicy(backoff=backoff or Backoff())
    return Delivery(**(plain | {"attempt": attempt, "max_attempts": 4, "fetching": fetching} | given))


def ended(reason: ExitReason, site_status: int | None = None, attempt: int = 1) -> Outcome:
    error = RunError(message="no", site_status=site_status)
    return Outcome(run_id="r", attempt=attempt, exit_reason=reason, error=error)


def waits(outcome: Outcome, after: float | None = None, jitter: float = 0.0, **given: Any) -> float | None:
    return with_retry(outcome, delivery(outcome.attempt, **given), after, jitter=lambda: jitter).retry_after


AGAIN = {
    *(ExitReason.FETCH_DNS, ExitReason.FETCH_CONNECT, ExitReason.FETCH_TIMEOUT, ExitReason.FETCH_PROTOCOL),
    *(ExitReason.FETCH_RATE_LIMITED, ExitReason.FETCH_SITE_DOWN, ExitReason.FETCH_BLOCKED, ExitReason.FETCH_CAPTCHA),
    ExitReason.FETCH_PROXY,
}


@pytest.mark.parametrize("reason", [reason for reason in ExitReason if reason.is_fetch])
def test_each_class_decides(reason: ExitReason) -> None:
    assert (waits(ended(reason)) is not None) is (reason in AGAIN)


@pytest.mark.parametrize(
    ("status", "again"),
    [
        *((status, False) for status in (None, 400, 401, 403, 404, 410)),
        *((status, True) for status in (408, 425, 429, 500, 502, 503, 504)),
    ],
)
def test_the_sites_status_decides(status: int | None, again: bool) -> None:
    assert (waits(ended(ExitReason.FETCH_STATUS, status)) is not None) is again


def test_the_back_off_is_five_ten_twenty_seconds_unless_policy_says() -> None:
    failed = [ended(ExitReason.FETCH_CONNECT, attempt=attempt) for attempt in (1, 2, 3)]
    assert [waits(outcome) for outcome in failed] == [5, 10, 20]
    linear = Backoff(kind="linear", first_seconds=3)
    assert [waits(outcome, backoff=linear) for outcome in failed] == [3, 6, 9]
    capped = Backoff(kind="exponential", first_seconds=8, cap_seconds=12)
    assert [waits(outcome, backoff=capped) for outcome in failed] == [8, 12, 12]


def test_jitter_only_adds() -> None:
    assert waits(ended(ExitReason.FETCH_CONNECT), jitter=1.0) == 6


def test_what_the_site_says_comes_first() -> None:
    assert waits(ended(ExitReason.FETCH_STATUS, 503), after=120) == 120
    assert waits(ended(ExitReason.FETCH_STATUS, 503), after=0) == 0
    assert waits(ended(ExitReason.FETCH_STATUS, 503), after=MOST_SECONDS + 1) is None


@pytest.mark.parametrize("reason", [ExitReason.RETRY, ExitReason.INTERNAL_ERROR, ExitReason.FETCH_CONNECT])
def test_no_attempt_remains(reason: ExitReason) -> None:
    assert waits(ended(reason, attempt=4), after=1) is None


@pytest.mark.parametrize(
    "reason", [ExitReason.SUCCEEDED, ExitReason.SCRIPT_ERROR, ExitReason.TIMEOUT, ExitReason.FAILED]
)
def test_other_ends_are_final(reason: ExitReason) -> None:
    assert waits(ended(reason), after=1) is None


def test_a_run_whose_turn_comes_late_waits_at_the_same_attempt() -> None:
    limited = ended(ExitReason.FETCH_RATE_LIMITED, attempt=4)
    later = postponed(limited, delivery(4), 90.0, NOW + 10)
    assert later is not None
    assert (later.retry_after, later.postponed, later.attempt) == (90.0, True, 4)
    quick = postponed(limited, delivery(4), 0.0, NOW)
    assert quick is not None
    assert quick.retry_after == LEAST_SECONDS


@pytest.mark.parametrize(
    ("reason", "after", "now"),
    [
        (ExitReason.FETCH_RATE_LIMITED, None, NOW),
        (ExitReason.FETCH_CONNECT, 5.0, NOW),
        (ExitReason.FETCH_RATE_LIMITED, 60.0, NOW + MOST_SECONDS - 59),
        (ExitReason.FETCH_RATE_LIMITED, MOST_SECONDS + 1, NOW),
    ],
)
def test_what_is_not_postponed(reason: ExitReason, after: float | None, now: float) -> None:
    assert postponed(ended(reason), delivery(), after, now) is None


@pytest.mark.parametrize("reason", ExitReason)
def test_an_item_that_nobody_waits_for_is_tried_again_where_that_may_help(reason: ExitReason) -> None:
    seconds = retry_seconds(reason, None, Backoff(), 1, None, awaited=False)
    assert (seconds is not None) is reason.retryable
