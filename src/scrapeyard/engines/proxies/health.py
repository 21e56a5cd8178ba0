"""Which exits rest because they failed. In memory: each process learns for itself."""

from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

FAILURES = 2
"""In a row, before an exit rests. One may be chance."""
LONGEST_SECONDS = 3600.0
KEPT = 20_000
"""Exits remembered; the one that failed longest ago is forgotten."""


class _Record(Struct):
    failures: int = 0
    rests: int = 0
    until: float = 0.0


class Health:
    """Exits by name. One that never failed, or has done well since, is not kept."""

    def __init__(self, cooldown_seconds: float, clock: Callable[[], float]) -> None:
        self._cooldown = cooldown_seconds
        self._longest = max(cooldown_seconds, LONGEST_SECONDS)
        self._clock = clock
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def rests(self, name: str) -> bool:
        """Whether it is better left alone now."""
        record = self._records.get(name)
        return record is not None and record.until > self._clock()

    def rests_until(self, name: str) -> float:
        """When its rest ends, by the clock given; 0 if it does not rest."""
        return self._records[name].until if self.rests(name) else 0.0

    def resting(self) -> list[str]:
        """All that rest now."""
        return [name for name in self._records if self.rests(name)]

    def good(self, name: str) -> bool:
        """It served: whatever was held against it is forgotten. True if there was something."""
        record = self._records.pop(name, None)
        return record is not None and record.rests > 0

    def bad(self, name: str) -> float:
        """It failed. How long it rests from now on, if this sends it to rest; otherwise 0.

        After a rest one more failure is enough, and each rest is twice as long as the one before, up to an hour. What
        was already under way when a rest began does not make it longer.
        """
        record = self._records.setdefault(name, _Record())
        self._records.move_to_end(name)
        if len(self._records) > KEPT:
            self._records.popitem(last=False)
        if self.rests(name):
            return 0.0
        record.failures += 1
        if record.failures < FAILURES:
            return 0.0
        seconds = min(self._cooldown * 2.0 ** min(record.rests, 30), self._longest)
        record.rests += 1
        record.until = self._clock() + seconds
        return seconds
