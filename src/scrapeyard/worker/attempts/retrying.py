"""Whether a run that ended badly is tried again, and when.

    the script raised Retry                     another attempt, when the script says, or after the policy's back-off
    an internal error                           another attempt, almost at once
    its files or packages could not be had      another attempt, soon; an item of a job after the policy's back-off
    a web error that may pass                   another attempt, after the site's delay or the policy's back-off
    a name does not resolve                     the same for an item of a job; a single run ends at once: the name is
                                                most often misspelt
    an item of a job was blocked, crashed or    the same, because nobody waits for it; the caller of a single run is
    timed out                                   told at once and may call again
    the site's turn comes too late              the same attempt again, when its turn comes
    the site is left alone, or the job's        the same for an item of a job: it asked the site for nothing
    budget is used up

The run waits in the store meanwhile, not in a slot.
"""

import random
from collections.abc import Callable

from msgspec import Struct

from scrapeyard.model import Backoff, ExitReason, may_help_later
from scrapeyard.sandbox.port import Verdict

OURS_SECONDS = 0.5
MOST_SECONDS = 3600.0
"""A longer `NextAttempt-After` of the site ends the run; so does a longer total wait for its turn."""
LEAST_SECONDS = 1.0
JITTER = 0.2
"""Back-offs grow by up to this fraction, so that runs which failed together do not retry together."""


def retry_seconds(
    reason: ExitReason,
    site_status: int | None,
    backoff: Backoff,
    attempt: int,
    after: float | None,
    *,
    awaited: bool = True,
    jitter: Callable[[], float] = random.random,
) -> float | None:
    """Seconds until the next attempt; None if there should be none. If nobody waits for the end (`awaited` is False),
    there is another attempt whenever it may help."""
    match reason:
        case ExitReason.RETRY:
            return _back_off(backoff, attempt, jitter) if after is None else _capped(backoff, after)
        case ExitReason.INTERNAL_ERROR:
            return after or OURS_SECONDS
        case ExitReason.SOURCE_UNAVAILABLE:
            return max(after or OURS_SECONDS, 0.0 if awaited else _back_off(backoff, attempt, jitter))
        case ExitReason.FETCH_DNS if awaited:
            return None
        case _ if (reason.is_fetch or not awaited) and may_help_later(reason, site_status):
            if after is not None:
                return None if after > MOST_SECONDS else after
            return _back_off(backoff, attempt, jitter)
        case _:
            return None


def _back_off(backoff: Backoff, attempt: int, jitter: Callable[[], float]) -> float:
    return backoff.seconds(attempt) * (1 + JITTER * jitter())


def _capped(backoff: Backoff, after: float) -> float:
    """What a script asks for, but no more than the policy's cap where it has one."""
    return after if backoff.cap_seconds is None else min(after, backoff.cap_seconds)


_NO_TURN = frozenset({ExitReason.FETCH_RATE_LIMITED, ExitReason.FETCH_SITE_DOWN, ExitReason.FETCH_BUDGET})
"""Ends of an attempt that asked the site for nothing."""


class NextAttempt(Struct, frozen=True, kw_only=True):
    """That an attempt is not the last."""

    seconds: float
    """Until the next one."""
    postponed: bool = False
    """The next one counts as this one: it only waited for its turn."""


class RetryRules(Struct, frozen=True, kw_only=True):
    """How often a run, or an item of a job, is tried."""

    max_attempts: int
    backoff: Backoff
    awaited: bool = True

    def after(
        self, verdict: Verdict, attempt: int, *, jitter: Callable[[], float] = random.random
    ) -> NextAttempt | None:
        """What follows this attempt; None if it was the last. `verdict.retry_after` is the delay that the script, the
        site or the unavailable part asked for."""
        if attempt >= self.max_attempts:
            return None
        seconds = retry_seconds(
            verdict.exit_reason,
            _site_status(verdict),
            self.backoff,
            attempt,
            verdict.retry_after,
            awaited=self.awaited,
            jitter=jitter,
        )
        return None if seconds is None else NextAttempt(seconds=seconds)


def postponement(verdict: Verdict, turn_in: float | None, most_seconds: float) -> NextAttempt | None:
    """The same attempt again, in `turn_in` seconds; None if it did not end because its turn came too late, or if that
    is longer than `most_seconds`."""
    if verdict.exit_reason not in _NO_TURN or turn_in is None or _site_status(verdict) is not None:
        return None
    seconds = max(turn_in, LEAST_SECONDS)
    return None if seconds > most_seconds else NextAttempt(seconds=seconds, postponed=True)


def _site_status(verdict: Verdict) -> int | None:
    return verdict.error.site_status if verdict.error else None
