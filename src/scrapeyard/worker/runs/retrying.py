"""Whether a run that ended badly is tried again, and when.

    the script raised Retry                     another attempt, when the script says
    an internal error                           another attempt, almost at once
    a web error that may pass                   another attempt, after the site's delay or the policy's back-off
    an item of a job was blocked, crashed or    the same, because nobody waits for it; the caller of a single run is
    timed out                                   told at once and may call again
    the site's turn comes too late              the same attempt again, when its turn comes

The run waits in the store meanwhile, not in a slot.
"""

import random
from collections.abc import Callable

from msgspec.structs import replace

from scrapeyard.model import Backoff, Delivery, ExitReason, Outcome, may_help_later

OURS_SECONDS = 0.5
MOST_SECONDS = 3600.0
"""A longer `Retry-After` of the site ends the run; so does a longer total wait for its turn."""
LEAST_SECONDS = 1.0
JITTER = 0.2
"""Back-offs grow by up to this fraction, so that runs which failed together do not retry together."""


def with_retry(
    outcome: Outcome, delivery: Delivery, after: float | None, *, jitter: Callable[[], float] = random.random
) -> Outcome:
    """The outcome with another attempt scheduled, if one remains. `after` is the delay that the script, the site or the
    unavailable part asked for; None if none did."""
    if delivery.attempt >= delivery.max_attempts:
        return outcome
    site_status = outcome.error.site_status if outcome.error else None
    backoff = delivery.fetching.backoff
    seconds = retry_seconds(outcome.exit_reason, site_status, backoff, delivery.attempt, after, jitter=jitter)
    return outcome if seconds is None else replace(outcome, retry_after=seconds)


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
            return after or 0.0
        case ExitReason.INTERNAL_ERROR:
            return after or OURS_SECONDS
        case _ if (reason.is_fetch or not awaited) and may_help_later(reason, site_status):
            if after is not None:
                return None if after > MOST_SECONDS else after
            return backoff.seconds(attempt) * (1 + JITTER * jitter())
        case _:
            return None


def postponed(outcome: Outcome, delivery: Delivery, after: float | None, now: float) -> Outcome | None:
    """The same attempt again, `after` seconds later; None if the run did not end because its turn came too late, or if
    it has waited long enough."""
    if outcome.exit_reason is not ExitReason.FETCH_RATE_LIMITED or after is None:
        return None
    seconds = max(after, LEAST_SECONDS)
    if now + seconds > delivery.created_at + MOST_SECONDS:
        return None
    return replace(outcome, retry_after=seconds, postponed=True)
