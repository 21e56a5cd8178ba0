"""How many items go into a batch, and how many a job may start."""

import math

from scrapeyard.model.job import Job

FIRST_ITEMS = 10
"""Batch size while a job's speed is unknown."""
GROWTH = 4
RATE_SECONDS = 0.1
"""A batch holds at most what the job's rate allows in this time."""
LEAST_SECONDS = 0.05
"""Expected duration below which batches are not split further, since each would cost more than it saves."""
_BUILTIN = "builtin/"
_MEMORY = 0.7


class BatchPace:
    """Slot time per item of one job, measured from its counters since the last call.

    Time is summed over all attempts and divided by items that ended, so retries make items look slower and batches take
    less time than intended.
    """

    def __init__(self) -> None:
        self.seconds: float | None = None
        """Per item; None before the first has ended."""
        self.most = FIRST_ITEMS
        """Grows only as items end: a few quick items must not lock a thousand slow ones into one slot."""
        self._done = 0
        self._wall_ms = 0.0
        self._unproven = FIRST_ITEMS

    def hear(self, job: Job, most: int) -> None:
        """Update from the job's counters. `most` is the maximum batch size."""
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
        """Expected slot seconds of this many items; before the first measurement, FIRST_ITEMS count as a full batch."""
        if self.seconds is None:
            return batch_seconds * items / FIRST_ITEMS
        return max(items * self.seconds, 0.001)


def batch_items(job: Job, pace: BatchPace, *, pending: int, slots: int, batch_seconds: float) -> int:
    """How many items to cut, at least one, before other limits apply.

    `pending` are the items still to be handed out, `slots` the slots that may run them.
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
    """Spread the last items of a job over the slots in ever smaller batches, so that all end at about the same time."""
    if seconds is None:
        return math.ceil(pending / slots)
    seconds = max(seconds, 1e-9)
    share = max(math.ceil(pending / (2 * slots)), LEAST_SECONDS / seconds)
    return min(batch_seconds / seconds, share)


SLACK_SECONDS = 0.5
"""Seconds of tokens allowed on top of the burst, since the feeder runs in steps and is sometimes late."""


class TokenBucket:
    """Held by the leader alone. A new leader starts without tokens, so that a change of leader grants nothing extra."""

    def __init__(self, tokens: float, now: float) -> None:
        self._tokens = tokens
        self._filled_at = now

    def fill(self, rate: float, burst: int, now: float) -> int:
        """Whole tokens available now. The rate may differ on each call; a clock set back adds none."""
        gained = rate * max(0.0, now - self._filled_at)
        self._filled_at = now
        self._tokens = min(self._tokens + gained, max(1.0, burst + rate * SLACK_SECONDS))
        return int(self._tokens + 1e-9)

    def take(self, count: int) -> None:
        """Spend tokens for items handed out."""
        self._tokens -= count
