"""An export: a file made of a job.

queued ──► running ──► done | failed
   ▲          │
   └──────────┘  whoever made it was lost
"""

from enum import StrEnum

from msgspec import Struct

from scrapeyard.model.job import ExportWish


class ExportState(StrEnum):
    """Where an export stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether it no longer changes, unless it is written again."""
        return self in (ExportState.DONE, ExportState.FAILED)


class Export(Struct, frozen=True, kw_only=True):
    """An export as stored."""

    id: str
    job_id: str
    wish: ExportWish
    state: ExportState = ExportState.QUEUED
    progress: float = 0.0
    """Share of the job's items that were read, 0 to 1."""
    rows: int = 0
    """Rows written so far, without the header."""
    bytes: int = 0
    digest: str = ""
    """SHA-256 of the file, in hex."""
    key: str = ""
    """Blob key; empty until it is done."""
    error: str = ""
    """Why it failed."""
    notes: tuple[str, ...] = ()
    """What a reader of the file must know: columns that no item gave, parts of the source that were not read."""
    attempt: int = 0
    """How often it was started."""
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None
    holder: str = ""
    lease_until: float | None = None

    @property
    def name(self) -> str:
        """File name for browsers."""
        return f"{self.job_id}-{self.wish.type}.{self.wish.format}"
