"""What happened to runs and jobs, in the order of time: for the stream of lifecycle events.

Every method raises StoreUnavailable when the database does not answer. Times are Unix seconds. A row may be written
some time after the moment that it tells of, so callers look at the last minutes more than once.
"""

from collections.abc import Sequence
from typing import Protocol

from scrapeyard.model import Run
from scrapeyard.model.job import Job
from scrapeyard.store.ports.jobs import JobEvent


class LifecycleStore(Protocol):
    """Feeds of changes, oldest first. Not every database has them."""

    async def runs_created(self, since: float, after: str, limit: int) -> Sequence[Run]:
        """Runs created later than `since`, or then and with an id above `after`; without results."""

    async def runs_running(self, limit: int) -> Sequence[Run]:
        """Runs that are running, the oldest first; without results."""

    async def runs_ended(self, since: float, after: str, limit: int) -> Sequence[Run]:
        """Runs that ended later than `since`, or then and with an id above `after`; without results."""

    async def jobs_created(self, after: str, limit: int) -> Sequence[Job]:
        """Jobs whose id is higher. Ids sort by the time of creation."""

    async def jobs_changed(self, since: float, limit: int) -> Sequence[tuple[Job, JobEvent | None]]:
        """Jobs with an event of their status or archive at `since` or later; then those that ended from then, with
        None, since a process may have been killed between an end and its event."""
