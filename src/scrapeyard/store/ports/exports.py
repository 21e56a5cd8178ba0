"""Exports of jobs, deliveries of jobs to sinks, and snapshots of pages between crawls.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments. Times are Unix seconds, given by the caller.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from scrapeyard.model.export import Export, SinkDelivery, SinkState


class ExportStore(Protocol):
    """Exports, from the request to the file."""

    async def add(self, export: Export) -> bool:
        """Write it as QUEUED. One of the same id is replaced if it is final (its job ran again), else left as it is.
        False if there is no such job, or retention has removed its results."""

    async def get(self, export_id: str) -> Export | None:
        """One export; None if there is none."""

    async def of_job(self, job_id: str) -> list[Export]:
        """The exports of one job, the oldest first."""

    async def claim(self, export_id: str | None, holder: str, now: float, lease_until: float) -> Export | None:
        """Claim one that is QUEUED, or RUNNING with an expired lease: this one, or the oldest if None is given. It is
        then RUNNING under this holder, at the next attempt. None if there is none, or another was faster."""

    async def renew(self, export: Export) -> bool:
        """Write progress, rows and lease. False if it is no longer this holder's: the holder must stop."""

    async def end(self, export: Export) -> bool:
        """Write a final state with its fields, or QUEUED to give it back: the attempt then does not count. False, and
        nothing changes, if it is no longer this holder's."""


class SinkStore(Protocol):
    """Deliveries to sinks. `JobStore.create` adds those that a job is created with; they go with their job."""

    async def add(self, job_id: str, sink: str, now: float) -> bool:
        """Deliver the job to one more sink, from its first item on; the job's `sinks` then name it, too. A delivery
        that exists stays as it is. False if there is no such job, or it is being deleted."""

    async def of_jobs(self, job_ids: Sequence[str]) -> tuple[SinkDelivery, ...]:
        """Every delivery of these jobs, at most 1,000, by job and sink."""

    async def due(self, now: float, limit: int, but_sinks: Sequence[str]) -> tuple[SinkDelivery, ...]:
        """Active ones to none of these sinks whose `due_at` has come, the longest due first."""

    async def put(self, delivery: SinkDelivery) -> SinkDelivery | None:
        """Write a delivery whose `revision` is the one last seen. Returns it as written; None, and nothing is changed,
        if another was faster or it is gone: read it again."""

    async def wake(self, job_id: str, now: float, open_until: float) -> None:
        """Items of this job are about to run again: its deliveries are active, due now, and not done before
        `open_until`. Those that were done have `woken_at` now. One that failed stays so, unless it is that of a
        webhook's items: the next end of the job is told with it."""

    async def standing(self) -> dict[tuple[str, SinkState], int]:
        """How many deliveries there are, by sink and state."""


class PageState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of a page as known to a crawl."""

    fields: dict[str, Any] = field(default_factory=dict)
    """The compared values; long texts as a digest."""
    hash: str = ""
    """Hash of the fields."""
    crawled_at: float = 0.0
    """When it was last read successfully."""
    gone: bool = False
    missing: int = 0
    """Consecutive crawls that did not find it."""
    pending: str = ""
    """Hash of a change that is not confirmed yet."""
    pending_crawls: int = 0
    """Consecutive crawls that saw that change."""
    parts: tuple[str, ...] = ()
    """Groups of fields that were extracted; those that only one of two crawls extracted are not compared."""
    source: str = ""
    """Digest of the listing that it was last on; empty if unknown."""
    depth: int | None = None
    """Links from a start to it, in that listing."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """A stored page of one scope."""

    page: str
    """Digest of its identity."""
    url: str
    job_id: str
    """The job that wrote it last."""
    seq: int
    """Its item in that job; -1 if it was not on the list."""
    state: PageState
    before: PageState | None = None
    """The state before that job, so that its comparison can be repeated. None if the page was unknown."""


class SnapshotStore(Protocol):
    """Snapshots of pages between crawls. Crawls of one scope are compared with each other."""

    async def get(self, scope: str, pages: Sequence[str]) -> dict[str, Snapshot]:
        """The known snapshots of these pages (at most 1,000)."""

    async def put(self, scope: str, snapshots: Sequence[Snapshot]) -> None:
        """Write them, replacing existing ones. At most 1,000, each page once."""

    async def missing(self, scope: str, job_id: str, after: str, limit: int) -> list[Snapshot]:
        """Pages not on this crawl's list: it did not write them, or wrote that they are missing. Starts after `after`,
        in the order of `page`."""

    async def drop(self, scope: str, pages: Sequence[str]) -> None:
        """Delete the snapshots of these pages, at most 1,000."""
