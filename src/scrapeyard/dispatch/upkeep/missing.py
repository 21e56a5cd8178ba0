"""What should wait in the queue and is not there.

A queue hands out each (lane, priority) in order, so what was published before the oldest that still waits is gone.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from scrapeyard.model import Priority
from scrapeyard.queues.port import Queue

GRACE_SECONDS = 5.0
"""What is younger may be on its way from the queue to a row that says running."""
_LEAST = 500
_MOST = 16_000


class Published(Protocol):
    """A run or a batch that was handed to the queue."""

    @property
    def lane(self) -> str: ...

    @property
    def priority(self) -> Priority: ...

    @property
    def queued_at(self) -> float: ...


P = TypeVar("P", bound=Published)


async def missing(queue: Queue, published: Sequence[P]) -> list[P]:
    """Those of them that the queue does not hold any more."""
    oldest: dict[tuple[str, Priority], float | None] = {}
    found = []
    for one in published:
        place = (one.lane, one.priority)
        if place not in oldest:
            oldest[place] = await queue.oldest(*place)
        first = oldest[place]
        if first is None or one.queued_at < first:
            found.append(one)
    return found


class Page:
    """How many rows are looked at in one round. A full page may hold only what still waits in one busy lane, so the
    next looks further, until the lost are seen."""

    def __init__(self) -> None:
        self.limit = _LEAST

    def seen(self, count: int) -> None:
        """A round found so many."""
        self.limit = min(2 * self.limit, _MOST) if count >= self.limit else _LEAST
