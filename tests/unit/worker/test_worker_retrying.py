"""Which runs are tried again, and when."""

import pytest

from scrapeyard.model import Backoff, ExitReason, RunError
from scrapeyard.sandbox.port import Verdict
from scrapeyard.worker.attempts.retrying import LEAST_SECONDS, MOST_SECONDS, NextAttempt, RetryRules, postponement

LEFT = MOST_SECONDS


def ended(reason: ExitReason, site_status: int | None = None, after: float | None = None) -> Verdict:
    return Verdict(exit_reason=reason, error=RunError(message="no", site_status=site_status), retry_after=after)


def waits(verdict: Verdict, attempt: int = 1, backoff: Backoff | None = None, jitter: float = 0.0) -> float | None:
    rules = RetryRules(max_attempts=4, backoff=backoff or Backoff())
    retry = rules.after(verdict, attempt, jitter=lambda: jitter)
    return None if retry is None else retry.seconds


def test_a_script_that_names_no_time_waits_as_policy_says() -> None:
    retried = ended(ExitReason.RETRY)
    assert [waits(retried, attempt) for attempt in (1, 2, 3)] == [5, 10, 20]
    linear = Backoff(kind="linear", first_seconds=3, cap_seconds=7)
    assert [waits(retried, attempt, linear) for attempt in (1, 2, 3)] == [3, 6, 7]
    assert waits(retried, jitter=1.0) == 6


def test_a_scripts_own_time_is_kept_but_for_the_policys_cap() -> None:
    assert waits(ended(ExitReason.RETRY, after=30)) == 30
    assert waits(ended(ExitReason.RETRY, after=0)) == 0
    assert waits(ended(ExitReason.RETRY, after=30), backoff=Backoff(cap_seconds=3)) == 3


AGAIN = {
    *(ExitReason.FETCH_CONNECT, ExitReason.FETCH_TIMEOUT, ExitReason.FETCH_PROTOCOL),
    *(ExitReason.FETCH_RATE_LIMITED, ExitReason.FETCH_SITE_DOWN, ExitReason.FETCH_BLOCKED, ExitReason.FETCH_CAPTCHA),
    *(ExitReason.FETCH_PROXY, ExitReason.BROWSER_TIMEOUT, ExitReason.BROWSER_CRASHED, ExitReason.AI_UNAVAILABLE),
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
    failed = ended(ExitReason.FETCH_CONNECT)
    assert [waits(failed, attempt) for attempt in (1, 2, 3)] == [5, 10, 20]
    linear = Backoff(kind="linear", first_seconds=3)
    assert [waits(failed, attempt, linear) for attempt in (1, 2, 3)] == [3, 6, 9]
    capped = Backoff(kind="exponential", first_seconds=8, cap_seconds=12)
    assert [waits(failed, attempt, capped) for attempt in (1, 2, 3)] == [8, 12, 12]


def test_jitter_only_adds() -> None:
    assert waits(ended(ExitReason.FETCH_CONNECT), jitter=1.0) == 6


def test_what_the_site_says_comes_first() -> None:
    assert waits(ended(ExitReason.FETCH_STATUS, 503, 120)) == 120
    assert waits(ended(ExitReason.FETCH_STATUS, 503, 0)) == 0
    assert waits(ended(ExitReason.FETCH_STATUS, 503, MOST_SECONDS + 1)) is None


@pytest.mark.parametrize("reason", [ExitReason.RETRY, ExitReason.INTERNAL_ERROR, ExitReason.FETCH_CONNECT])
def test_no_attempt_remains(reason: ExitReason) -> None:
    assert waits(ended(reason, after=1), 4) is None


@pytest.mark.parametrize(
    "reason", [ExitReason.SUCCEEDED, ExitReason.SCRIPT_ERROR, ExitReason.TIMEOUT, ExitReason.FAILED]
)
def test_other_ends_are_final(reason: ExitReason) -> None:
    assert waits(ended(reason, after=1)) is None


def test_a_run_whose_turn_comes_late_waits_at_the_same_attempt() -> None:
    limited = ended(ExitReason.FETCH_RATE_LIMITED)
    assert postponement(limited, 90.0, LEFT - 10) == NextAttempt(seconds=90.0, postponed=True)
    assert postponement(limited, 0.0, LEFT) == NextAttempt(seconds=LEAST_SECONDS, postponed=True)


@pytest.mark.parametrize(
    ("reason", "site_status", "turn_in", "left"),
    [
        (ExitReason.FETCH_RATE_LIMITED, None, None, LEFT),
        (ExitReason.FETCH_CONNECT, None, 5.0, LEFT),
        (ExitReason.FETCH_RATE_LIMITED, None, 60.0, 59.0),
        (ExitReason.FETCH_RATE_LIMITED, None, MOST_SECONDS + 1, LEFT),
        (ExitReason.FETCH_RATE_LIMITED, 429, 60.0, LEFT),
    ],
)
def test_what_is_not_postponed(reason: ExitReason, site_status: int | None, turn_in: float | None, left: float) -> None:
    assert postponement(ended(reason, site_status), turn_in, left) is None


@pytest.mark.parametrize("reason", ExitReason)
def test_an_item_that_nobody_waits_for_is_tried_again_where_that_may_help(reason: ExitReason) -> None:
    rules = RetryRules(max_attempts=4, backoff=Backoff(), awaited=False)
    assert (rules.after(ended(reason), 1) is not None) is reason.retryable
