"""Whether a run that ended badly is tried again, and when.

    the script raised Retry                     another attempt, when the script says
    the fault was ours                          another attempt, almost at once
    the web ended it, and later may be better   another attempt, after what the site says or the policy's back-off
    an item of a job was blocked, crashed or    the same: nobody waits for it, while a caller is told at once and may
    took too long                               call again
    the site's turn comes too late              the same attempt again, when its turn comes

The run waits in the store meanwhile, not in a slot.
"""

import random
from collections.abc import Callable

from msgspec.structs import replace

from scrapeyard.model import Backoff, Delivery, ExitReason, Outcome, may_help_later

OURS_SECONDS = 0.5
MOST_SECONDS = 3600.0
"""A site that wants to be left alone for longer ends the run; so does waiting for its turn for so long altogether."""
LEAST_SECONDS = 1.0
JITTER = 0.2
"""Back-offs grow by up to this share of themselves, so that runs which failed together do not return together."""


def with_retry(
    outcome: Outcome, delivery: Delivery, after: float | None, *, jitter: Callable[[], float] = random.random
) -> Outcome:
    """The same outcome, followed by another attempt where one remains. `after` is what the script, the site or the part
    that was away says; None: nothing."""
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
    """Until the attempt after this one; None: there should be none. Where nobody waits for the end, another attempt
    follows whenever it may help."""
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
    """The same attempt again, `after` seconds later; None when the run did not end for want of its turn, or when it has
    waited long enough."""
    if outcome.exit_reason is not ExitReason.FETCH_RATE_LIMITED or after is None:
        return None
    seconds = max(after, LEAST_SECONDS)
    if now + seconds > delivery.created_at + MOST_SECONDS:
        return None
    return replace(outcome, retry_after=seconds, postponed=True)
