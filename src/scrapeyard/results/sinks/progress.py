"""How far the items of a job were delivered to a sink: what is stored, and how it moves. Pure.

An item is passed when it was delivered, refused, or is unchanged since it was. Items end out of order, so progress is a
number below which all are passed, and a bitmap of later ones. The batch that is planned next stands beside it: after a
kill, the same batch is delivered again.
"""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

AHEAD: Final = 10_000
"""How far beyond the first item that is still open items are delivered, a batch aside: this bounds the bitmap."""
SLACK_SECONDS: Final = 60.0
"""How much the clocks of processes may differ."""


class ItemNumbers(Struct, frozen=True, array_like=True):
    """A set of items: all below `at`, and those whose bit is set, counted from `at`."""

    at: int = 0
    bits: bytes = b""

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int) or number < self.at:
            return isinstance(number, int)
        place = number - self.at
        return place < 8 * len(self.bits) and bool(self.bits[place // 8] >> place % 8 & 1)

    def set_bits(self) -> set[int]:
        """Those whose bit is set."""
        places = enumerate(self.bits)
        return {self.at + 8 * place + bit for place, byte in places if byte for bit in range(8) if byte >> bit & 1}

    @classmethod
    def of(cls, at: int, ahead: Collection[int]) -> "ItemNumbers":
        """All below `at`, and these."""
        bits = bytearray((max(ahead) - at) // 8 + 1 if ahead else 0)
        for number in ahead:
            bits[(number - at) // 8] |= 1 << (number - at) % 8
        return cls(at, bytes(bits))


class SinkProgress(Struct, frozen=True, kw_only=True):
    """The stored progress of a delivery."""

    redrives: int = 0
    """The job's number of redrives that this belongs to."""
    seen_at: float = 0.0
    """When the job was last seen with this number; Unix seconds."""
    passed: ItemNumbers = ItemNumbers()
    before: ItemNumbers = ItemNumbers()
    """Items passed before the last redrive. Those that ended by `unchanged_until` are unchanged."""
    unchanged_until: float = 0.0
    number: int = 0
    """Of the last batch that was planned."""
    batch: ItemNumbers | None = None
    """Its items, as set bits; None if it was delivered."""

    def after_redrive(self, redrives: int) -> "SinkProgress":
        """Begin anew at the first item. Of what a redrive may have changed, nothing ended before `seen_at`; after two
        redrives in short order, the earlier time counts."""
        was_between = self.before.at > self.passed.at
        until = self.seen_at - SLACK_SECONDS
        return replace(
            self,
            redrives=redrives,
            passed=ItemNumbers(),
            before=self.before if was_between else self.passed,
            unchanged_until=min(until, self.unchanged_until) if was_between else until,
        )

    def delivered(self, numbers: Iterable[int]) -> "SinkProgress":
        """The batch was delivered. `numbers` are those of its items that it had: others were redriven meanwhile."""
        passing = Passing(self.passed)
        passing.add(numbers)
        return replace(self, passed=passing.numbers(), batch=None)

    def from_first(self) -> "SinkProgress":
        """Deliver everything again. Batch numbers go on, so that no id is used for two batches."""
        return SinkProgress(redrives=self.redrives, seen_at=self.seen_at, number=self.number)

    def is_unchanged(self, number: int, finished_at: float) -> bool:
        """Whether this item was passed before the last redrive and has not run again."""
        return finished_at <= self.unchanged_until and number in self.before


def decode(stored: bytes) -> SinkProgress:
    """From a delivery's row; empty: not begun."""
    return msgspec.msgpack.decode(stored, type=SinkProgress) if stored else SinkProgress()


encode: Final = msgspec.msgpack.Encoder().encode


class Passing:
    """The set of passed items while it grows. Below `at` all are passed."""

    def __init__(self, passed: ItemNumbers) -> None:
        self.at = passed.at
        self._ahead = passed.set_bits()
        self._advance()

    def __contains__(self, number: int) -> bool:
        return number < self.at or number in self._ahead

    def add(self, numbers: Iterable[int]) -> None:
        """These are passed, too."""
        self._ahead.update(number for number in numbers if number >= self.at)
        self._advance()

    def skip_to(self, number: int) -> None:
        """Everything below is passed."""
        if number > self.at:
            self.at = number
            self._ahead = {each for each in self._ahead if each >= number}
            self._advance()

    def numbers(self) -> ItemNumbers:
        """As it is stored."""
        return ItemNumbers.of(self.at, self._ahead)

    def _advance(self) -> None:
        while self.at in self._ahead:
            self._ahead.remove(self.at)
            self.at += 1
