"""Whether a run that ended badly is tried again, and when.

    the script raised Retry                     another attempt, when the script says
    the fault was ours                          another attempt, almost at once
    the web ended it, and later may be better   another attempt, after what the site says or the policy's back-off
    the site's turn comes too late              the same attempt again, when its turn comes

The run waits in the store meanwhile, not in a slot.
"""

import random
from collections.abc import Callable

from msgspec.structs import replace

from scrapeyard.model import Delivery, ExitReason, Outcome, may_help_later

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
    match outcome.exit_reason:
        case ExitReason.RETRY:
            return replace(outcome, retry_after=after or 0.0)
        case ExitReason.INTERNAL_ERROR:
            return replace(outcome, retry_after=after or OURS_SECONDS)
        case reason if reason.is_fetch and may_help_later(reason, outcome.error.site_status if outcome.error else None):
            return _later(outcome, delivery, after, jitter)
        case _:
            return outcome


def postponed(outcome: Outcome, delivery: Delivery, after: float | None, now: float) -> Outcome | None:
    """The same attempt again, `after` seconds later; None when the run did not end for want of its turn, or when it has
    waited long enough."""
    if outcome.exit_reason is not ExitReason.FETCH_RATE_LIMITED or after is None:
        return None
    seconds = max(after, LEAST_SECONDS)
    if now + seconds > delivery.created_at + MOST_SECONDS:
        return None
    return replace(outcome, retry_after=seconds, postponed=True)


def _later(outcome: Outcome, delivery: Delivery, after: float | None, jitter: Callable[[], float]) -> Outcome:
    if after is not None:
        return outcome if after > MOST_SECONDS else replace(outcome, retry_after=after)
    seconds = delivery.fetching.backoff.seconds(delivery.attempt)
    return replace(outcome, retry_after=seconds * (1 + JITTER * jitter()))
