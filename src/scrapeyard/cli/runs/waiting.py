"""What a job at a prompt waits for, and how long that is worth it."""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from scrapeyard.cli.common.output import span
from scrapeyard.model import ExitReason
from scrapeyard.model.job import Item, ItemOutcome, Job

HOPELESS_SECONDS = 60.0
"""The default for breakers as long as no item has succeeded: the site may be down, or the scraper wrong."""
HOPEFUL_SECONDS = 900.0
"""The default for breakers after a success."""
_TOLD_SECONDS = 5.0
"""Shorter waits are shown beside the bar only."""


class JobWait(Struct, frozen=True, kw_only=True):
    """Why no item of a job runs now."""

    until: float
    why: str
    is_breaker: bool
    """Whether the job's breaker or the site's is open; otherwise items wait for their next attempt."""
    failure: str = ""
    """How the last attempt failed."""
    is_no_name: bool = False
    """Whether it failed because the name of a host does not resolve."""

    @property
    def at(self) -> str:
        """The end of the wait as the time of day here."""
        return time.strftime("%H:%M:%S", time.localtime(self.until))


class LastFailure:
    """Remembers how the last attempt of an item failed: the store does not, while the item is to be tried again."""

    def __init__(self) -> None:
        self._last: ItemOutcome | None = None

    def hear(self, outcome: ItemOutcome) -> None:
        """Take note of an attempt."""
        if not outcome.exit_reason.is_good:
            self._last = outcome

    def wait(self, job: Job, pending: Sequence[Item], now: float) -> JobWait | None:
        """Why a job of which nothing runs waits; None if it goes on at once. `pending` are some of its items."""
        breaker = job.breaker
        if breaker.state == "open" and breaker.opened_at is not None:
            until = breaker.opened_at + job.policy.breaker.cooldown_seconds
            return JobWait(until=until, why=f"the breaker is open: {breaker.reason}{self._words()}", is_breaker=True)
        until = min((item.not_before or 0.0 for item in pending), default=0.0)
        if until <= now:
            return None
        last = self._last.exit_reason if self._last else None
        return JobWait(
            until=until,
            why=f"failed items wait for their next attempt{self._words()}",
            is_breaker=last is ExitReason.FETCH_SITE_DOWN,
            failure=self._failure(),
            is_no_name=last is ExitReason.FETCH_DNS,
        )

    def _words(self) -> str:
        return f"; the last failure is {self._failure()}" if self._last else ""

    def _failure(self) -> str:
        last = self._last
        return f"{last.exit_reason}{f': {last.error.message}' if last.error else ''}" if last else ""


class Patience:
    """`seconds` is how long a job may wait without a success. None: HOPELESS_SECONDS or HOPEFUL_SECONDS for a breaker,
    and as long as the policy says for the next attempt of an item. With `needs_name`, a job whose first host has a
    name that does not resolve is given up at once."""

    def __init__(
        self, seconds: float | None, clock: Callable[[], float] = time.time, *, needs_name: bool = False
    ) -> None:
        self._seconds = seconds
        self._needs_name = needs_name
        self._clock = clock
        self._good = 0
        self._since = clock()
        self._told = 0.0
        self.ended_by: JobWait | None = None
        """The wait that took too long."""

    def is_over(self, job: Job, wait: JobWait | None) -> bool:
        """Whether to give the job up now: also when the wait has only begun, and would end too late."""
        if job.counts.success != self._good:
            self._good, self._since = job.counts.success, self._clock()
        if wait is None or wait.until - self._since <= self._limit(wait):
            return False
        self.ended_by = wait
        return True

    def news(self, wait: JobWait | None) -> str:
        """A sentence about a wait, once; empty if there is nothing new to tell."""
        left = wait.until - self._clock() if wait else 0.0
        if wait is None or wait.until == self._told or left < _TOLD_SECONDS:
            return ""
        self._told = wait.until
        return f"waits until {wait.at} ({span(left)}): {wait.why}"

    def _limit(self, wait: JobWait) -> float:
        if self._seconds is not None:
            return self._seconds
        if self._needs_name and wait.is_no_name and not self._good:
            return 0.0
        if not wait.is_breaker:
            return float("inf")
        return HOPEFUL_SECONDS if self._good else HOPELESS_SECONDS
