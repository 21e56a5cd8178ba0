"""Schedules and the times of theirs that came.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments: nothing is done twice. Times are Unix seconds, given by the caller.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from scrapeyard.model.schedule import Firing, Schedule

HISTORY = 100
"""Settled firings that are kept of each schedule, and firings that may wait."""


class SchedulePage(Struct, frozen=True, kw_only=True):
    """Newest first. `next_cursor` is None on the last page."""

    schedules: tuple[Schedule, ...]
    next_cursor: str | None = None


class ScheduleStore(Protocol):
    """What is started when."""

    async def add_schedule(self, schedule: Schedule, most: int) -> bool:
        """Write a new one. False when there are `most` already; nothing is then written."""

    async def schedule(self, schedule_id: str) -> Schedule | None:
        """None means no such schedule."""

    async def schedules(self, cursor: str | None, limit: int) -> SchedulePage:
        """Raises BadRequest when the cursor is not one of ours."""

    async def change_schedule(self, before: Schedule, after: Schedule) -> Schedule | None:
        """Write it whole, at the next version; what the last firing left stays. None: it is gone, was changed or has
        moved on since `before` was read; read it again."""

    async def delete_schedule(self, schedule_id: str) -> bool:
        """Remove it with its history; what it started goes on. False when there is none."""

    async def due_schedules(self, now: float, limit: int) -> list[Schedule]:
        """Those whose next time has come, the longest due first."""

    async def fire(
        self, schedule: Schedule, firings: Sequence[Firing], next_due: float | None, next_at: float | None
    ) -> bool:
        """Move a schedule on and write the firings, all or nothing. False: another did, or it was changed."""

    async def add_firing(self, firing: Firing) -> bool:
        """Write one that waits. False when there is no such schedule or HISTORY of its firings wait already; one of
        the same time is left as it is."""

    async def waiting_firings(self, now: float, limit: int) -> list[Firing]:
        """Of every schedule the oldest that waits and that nobody is at."""

    async def claim_firing(self, firing: Firing, holder: str, now: float, lease_until: float) -> bool:
        """Be the one who decides it. False: another is at it, or it is decided."""

    async def settle_firing(self, firing: Firing) -> bool:
        """Write what became of a claimed one, or WAITING with a reason to let it go. STARTED is also noted in its
        schedule, and history beyond HISTORY is dropped. False: it is not this holder's any more."""

    async def firings(self, schedule_id: str, limit: int) -> list[Firing]:
        """Newest first."""
