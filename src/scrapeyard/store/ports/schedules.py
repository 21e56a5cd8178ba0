"""Schedules and their firings.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments: nothing is done twice. Times are Unix seconds, given by the caller.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.model.schedule import Firing, FiringState, Schedule

HISTORY = 100
"""Settled firings stored per schedule, and the maximum of waiting ones."""


def if_room(firing: Firing, waiting: int) -> Firing:
    """A firing as it is written where so many of its schedule wait: beyond HISTORY it is skipped."""
    if firing.state is not FiringState.WAITING or waiting < HISTORY:
        return firing
    reason = f"{HISTORY} earlier ones wait already"
    return replace(firing, state=FiringState.SKIPPED, reason=reason, settled_at=firing.created_at)


class SchedulePage(Struct, frozen=True, kw_only=True):
    """Newest first. `next_cursor` is None on the last page."""

    schedules: tuple[Schedule, ...]
    next_cursor: str | None = None


class ScheduleStore(Protocol):
    """Schedules."""

    async def add(self, schedule: Schedule, most: int) -> bool:
        """Write a new one. False, and nothing is written, if there are already `most`."""

    async def get(self, schedule_id: str) -> Schedule | None:
        """One schedule; None if there is none."""

    async def page(self, cursor: str | None, limit: int, *, owner: str | None = None) -> SchedulePage:
        """Those of one owner, or all. Raises BadRequest for an invalid cursor."""

    async def change(self, before: Schedule, after: Schedule) -> Schedule | None:
        """Replace it, at the next version; fields written by the last firing stay. None if it is gone, was changed or
        has moved on since `before` was read: read it again."""

    async def delete(self, schedule_id: str) -> bool:
        """Delete it with its history; what it started continues. False if there is none."""

    async def due(self, now: float, limit: int) -> list[Schedule]:
        """Schedules whose next time has come, the longest due first."""

    async def fire(
        self, schedule: Schedule, firings: Sequence[Firing], next_due: float | None, next_at: float | None
    ) -> bool:
        """Move a schedule on and write the firings, atomically. False if another process did, or it was changed."""


class FiringStore(Protocol):
    """Firings of schedules."""

    async def add(self, firing: Firing) -> bool:
        """Write a waiting one. False if there is no such schedule or HISTORY of its firings already wait; one of the
        same time is left as it is."""

    async def waiting(self, now: float, limit: int) -> list[Firing]:
        """For every schedule the oldest waiting firing that nobody has claimed."""

    async def claim(self, firing: Firing, holder: str, now: float, lease_until: float) -> bool:
        """Claim the decision. False if another has claimed it, or it is decided."""

    async def settle(self, firing: Firing) -> bool:
        """Write the decision on a claimed one, or WAITING with a reason to release it. STARTED is also recorded in its
        schedule, and history beyond HISTORY is dropped. False if it is no longer this holder's."""

    async def recent(self, schedule_id: str, limit: int) -> list[Firing]:
        """Newest first."""
