"""Jobs whose rows lie in the blob store instead of the database.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments.
"""

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec import Struct

from scrapeyard.model.job import Job


class RowBlock(Struct, frozen=True, array_like=True):
    """Some rows of one table. The columns are named, so that a later version can restore what an earlier one wrote."""

    table: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class ArchiveStore(Protocol):
    """Moves the rows of ended jobs out and back in. The job's own row stays, with its counters."""

    async def begin(self, job_id: str) -> Job | None:
        """Mark a job for archiving: a final one whose files are written. Any other job stays as it is. None if there is
        no such job."""

    async def begin_restore(self, job_id: str) -> Job | None:
        """Mark an archived job for restoring. Any other job stays as it is. None if there is no such job."""

    async def due(self, limit: int) -> list[Job]:
        """Jobs marked for archiving or restoring, the oldest first."""

    async def older(self, finished_before: float, limit: int) -> list[str]:
        """Ids of jobs that could be archived and ended before this time, the oldest first."""

    def rows(self, job: Job) -> AsyncIterator[RowBlock]:
        """Every row that an archive holds."""

    async def written(self, job: Job, key: str) -> Job | None:
        """All rows lie in this archive: the job is REMOVING. None if it is not ARCHIVING."""

    async def remove_rows(self, job: Job) -> bool:
        """Remove them, in pieces; the job is then ARCHIVED. False if it is not REMOVING."""

    async def add_rows(self, job: Job, block: RowBlock) -> None:
        """Put rows back; those that are there stay. Raises ValueError for a table or columns that we do not know."""

    async def end_restore(self, job: Job, is_restored: bool) -> bool:
        """The job is as it was before it was archived, or ARCHIVED again. False if it is not being restored."""
