"""How many items travel together, and how many a job may begin."""

import math

from scrapeyard.model.job import Job

FIRST_ITEMS = 10
"""While nothing is known of a job."""
GROWTH = 4
RATE_SECONDS = 0.1
"""A batch is at most what the job's rate allows in so long."""
LEAST_SECONDS = 0.05
"""Smaller batches would cost more than they take; towards the end of a job they are not split further."""
_BUILTIN = "builtin/"
_MEMORY = 0.7


class BatchPace:
    """How much of a slot's time an item of one job takes, from what its counters gained since the last look.

    Time is summed over all attempts and divided by items that ended, so retries make items look slower: batches then
    take less than was aimed at.
    """

    def __init__(self) -> None:
        self.seconds: float | None = None
        """For one item; None before the first has ended."""
        self.most = FIRST_ITEMS
        """Grows only as items end: a first few quick ones must not lock a thousand slow ones into one slot."""
        self._done = 0
        self._wall_ms = 0.0
        self._unproven = FIRST_ITEMS

    def hear(self, job: Job, most: int) -> None:
        """Look at its counters. `most` is the largest batch there may be."""
        done = job.counts.success + job.counts.error
        gained, wall_ms = done - self._done, job.use.wall_ms - self._wall_ms
        if gained < 0:  # redriven
            self._done, self._wall_ms = done, job.use.wall_ms
        if gained <= 0:
            return
        self._done, self._wall_ms = done, job.use.wall_ms
        sample = max(0.0, wall_ms) / 1000 / gained / _abreast(job)
        self.seconds = sample if self.seconds is None else _MEMORY * self.seconds + (1 - _MEMORY) * sample
        self._unproven -= gained
        if self._unproven <= 0:
            self.most = min(most, self.most * GROWTH)
            self._unproven = self.most

    def cost(self, items: int, batch_seconds: float) -> float:
        """Seconds of a slot that so many are expected to take; what is not known counts as a whole batch."""
        if self.seconds is None:
            return batch_seconds * items / FIRST_ITEMS
        return max(items * self.seconds, 0.001)


def batch_items(job: Job, pace: BatchPace, *, pending: int, slots: int, batch_seconds: float) -> int:
    """How many to cut, at least one, before what is allowed now is looked at.

    `pending` are the items still to be handed out, `slots` those that may take them.
    """
    size = min(pace.most, _by_time(pace.seconds, pending, slots, batch_seconds))
    if job.policy.rate is not None:
        size = min(size, job.policy.rate * RATE_SECONDS)
    if job.policy.concurrency is not None:
        size = min(size, job.policy.concurrency / slots)
    return max(1, int(size))


def _abreast(job: Job) -> int:
    if not job.pinned.startswith(_BUILTIN):
        return 1
    return job.policy.abreast


def _by_time(seconds: float | None, pending: int, slots: int, batch_seconds: float) -> float:
    """The last items of a job are spread over the slots, in ever smaller batches, so that all end at about one time."""
    if seconds is None:
        return math.ceil(pending / slots)
    seconds = max(seconds, 1e-9)
    share = max(math.ceil(pending / (2 * slots)), LEAST_SECONDS / seconds)
    return min(batch_seconds / seconds, share)


SLACK_SECONDS = 0.5
"""Tokens of so much time are kept beside the burst: the feeder comes by in steps, and now and then late."""


class TokenBucket:
    """Kept by the leader alone. Another leader begins without tokens, so that a change of leader gives nobody more."""

    def __init__(self, tokens: float, now: float) -> None:
        self._tokens = tokens
        self._filled_at = now

    def fill(self, rate: float, burst: int, now: float) -> int:
        """Whole tokens at hand. The rate may be another each time; a clock set back gives none."""
        gained = rate * max(0.0, now - self._filled_at)
        self._filled_at = now
        self._tokens = min(self._tokens + gained, max(1.0, burst + rate * SLACK_SECONDS))
        return int(self._tokens + 1e-9)

    def take(self, count: int) -> None:
        """They were handed out."""
        self._tokens -= count
