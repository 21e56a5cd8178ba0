"""Exports of jobs, and what is remembered of pages between crawls.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments. Times are Unix seconds, given by the caller.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from scrapeyard.model.export import Export


class ExportStore(Protocol):
    """Exports, from the wish to the file."""

    async def add_export(self, export: Export) -> bool:
        """Write it, QUEUED. One of the same id is written over if it is final (its job ran again), else left as it is.
        False when there is no such job."""

    async def export(self, export_id: str) -> Export | None:
        """None means no such export."""

    async def exports(self, job_id: str) -> list[Export]:
        """Of one job, the oldest first."""

    async def claim_export(self, export_id: str | None, holder: str, now: float, lease_until: float) -> Export | None:
        """Take one that is QUEUED, or RUNNING with its lease ended: this one, or the oldest if None is named. It is
        then RUNNING under this holder, at the next attempt. None: there is nothing to take, or another was quicker."""

    async def renew_export(self, export: Export) -> bool:
        """Write progress, rows and lease. False: it is not this holder's any more, who must stop."""

    async def end_export(self, export: Export) -> bool:
        """Write a final state with what belongs to it, or QUEUED to give it back: the attempt then does not count.
        False: it is not this holder's any more; nothing changes."""


class PageState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a crawl knew of a page."""

    fields: dict[str, Any] = field(default_factory=dict)
    """What is compared; long texts as a digest."""
    hash: str = ""
    """Of the fields."""
    crawled_at: float = 0.0
    """When it was last read well."""
    gone: bool = False
    missing: int = 0
    """Crawls in a row that did not find it."""
    pending: str = ""
    """Hash of a change that is not confirmed yet."""
    pending_crawls: int = 0
    """How many crawls in a row saw that change."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """A page as one scope remembers it."""

    page: str
    """Digest of what identifies it."""
    url: str
    job_id: str
    """The crawl that wrote it last."""
    seq: int
    """Its item there; -1: it was not on the list."""
    state: PageState
    before: PageState | None = None
    """As it was before that crawl, so that the crawl's comparison can be made again. None: it was not known."""


class SnapshotStore(Protocol):
    """Pages between crawls. Crawls of one scope are compared with each other."""

    async def snapshots(self, scope: str, pages: Sequence[str]) -> dict[str, Snapshot]:
        """Those of these pages (at most 1,000) that are known."""

    async def put_snapshots(self, scope: str, snapshots: Sequence[Snapshot]) -> None:
        """Write them whole, over what was there. At most 1,000, each page once."""

    async def missing_snapshots(self, scope: str, job_id: str, after: str, limit: int) -> list[Snapshot]:
        """Pages that are not on the list of this crawl: it did not write them, or wrote that they are missing. From the
        one after `after` on, in the order of `page`."""

    async def drop_snapshots(self, scope: str, pages: Sequence[str]) -> None:
        """Forget these pages, at most 1,000."""
