"""What retention asks of the store.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments. Times are Unix seconds, given by the caller.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from scrapeyard.model import Run
from scrapeyard.model.job import Job


class RunSweep(Struct, frozen=True, kw_only=True):
    """What is removed of one run, whose blobs are already gone."""

    id: str
    swept: dict[str, float]
    """All that was removed of it, now and before, by kind."""
    sweep_at: float | None
    """When to look at it next; None: when its own kind of run is removed."""


class SweepStore(Protocol):
    """Finds what is past its time. Callers remove blobs before rows: after a crash the rows are found again."""

    async def old_runs(self, finished_before: float, limit: int, *, failed_before: float | None = None) -> list[str]:
        """Final runs without a retention of their own, the oldest first. For runs that failed, `failed_before` counts
        instead, unless it is None."""

    async def runs_due(self, now: float, limit: int) -> list[Run]:
        """Final runs that are to be looked at now, without results."""

    async def unswept_runs(self, finished_after: float, finished_before: float, limit: int) -> list[Run]:
        """Final runs of which nothing was removed and that nobody looks at, the oldest first, without results."""

    async def sweep_runs(self, sweeps: Sequence[RunSweep]) -> None:
        """Clear the columns of what was removed, and write the next look."""

    async def delete_runs(self, run_ids: Sequence[str]) -> None:
        """Delete these runs."""

    async def known(self, ids: Sequence[str]) -> set[str]:
        """Which of these ids are runs or jobs that there are."""

    async def jobs_due(self, now: float, limit: int) -> list[Job]:
        """Final jobs that are to be looked at now: the longest waiting first. One that is being deleted or swept is
        among them until that is done."""

    async def put_off(self, job_ids: Sequence[str], until: float) -> None:
        """Look at these jobs no sooner."""

    async def begin_job(self, job_id: str, swept: dict[str, float]) -> Job | None:
        """Mark a final job as being swept, with what it loses: readers are told, and it cannot run again until
        `end_job`. None if there is none, it is not final, or its files or an export of it are being written."""

    async def clear_items(self, job: Job, first: int, last: int, *, results: bool, logs: bool) -> None:
        """Clear results or logs of the items from `first` to `last`, which had ended when the sweep began."""

    async def end_job(self, job_id: str, sweep_at: float) -> None:
        """The sweep is done; look again then."""

    async def baselines(self) -> frozenset[str]:
        """Jobs that exports to come compare with: those of unfinished exports, unfinished jobs and schedules."""

    async def old_scopes(self, job_before: str) -> list[str]:
        """Scopes of snapshots that were last written by a job with a smaller id."""

    async def drop_scope(self, scope: str, job_before: str, limit: int) -> int:
        """Delete snapshots of a scope that jobs with smaller ids wrote, at most `limit`; returns how many."""


class _Compared(Struct, frozen=True):
    against: str | None = ""


class _Template(Struct, frozen=True):
    """The part of a schedule's template that names jobs."""

    exports: tuple[_Compared, ...] | None = None


_TEMPLATE: Final = msgspec.json.Decoder(_Template)


def compared(template: bytes) -> Iterable[str]:
    """The jobs that a schedule's template compares with."""
    try:
        return [one.against or "" for one in _TEMPLATE.decode(template).exports or ()]
    except msgspec.MsgspecError:
        return ()
