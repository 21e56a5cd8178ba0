"""Notices that this process stood still: stopped by a debugger, starved, moved to another machine."""

import time
from collections.abc import Callable

from scrapeyard.telemetry.events import get_log

log = get_log("worker")


class Standstill:
    """After a standstill of a lease, runs held before it may be another's until the store was asked again.

    `look` must be called more often than every `lease_seconds`. A clock that stands still with the process hides it.
    """

    def __init__(self, lease_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease = lease_seconds
        self._clock = clock
        self._looked_at = clock()
        self._stops = 0
        self._asked = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing of the kind happened since the store was last asked about the runs held."""
        return self.look() == self._asked

    def look(self) -> int:
        """Look at the clock. Returns how often the process has stood still so far."""
        now = self._clock()
        gone, self._looked_at = now - self._looked_at, now
        if gone > self._lease:
            self._stops += 1
            log.warning("worker.stood_still", seconds=round(gone, 1))
        return self._stops

    def asked(self, stops: int) -> None:
        """The store was asked about the runs held; `stops` is what `look` told before."""
        self._asked = stops
