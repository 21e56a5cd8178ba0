"""What leaves a job: exports, which are files made of it, and deliveries to sinks.

export     queued ──► running ──► done | failed
              ▲          │
              └──────────┘  whoever made it was lost

delivery   active ──► done | failed
              ▲          │
              └──────────┘  the job is redriven, or somebody asks for it
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


SINK_NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
MAX_SINKS = 10
"""Sinks of one job."""
ITEMS_SINK = "webhook-items"
"""The sink of jobs whose webhook wants `item.ended`: no operator defines it, and no call names it."""
SINK_OPEN_SECONDS = 60.0
"""How long before a redrive its deliveries are woken at the earliest: they are not done meanwhile."""


class SinkState(StrEnum):
    """How a delivery stands."""

    ACTIVE = "active"
    DONE = "done"
    """The job has ended, and every ended item was delivered or refused."""
    FAILED = "failed"
    """Given up: the sink took nothing for too long."""


class SinkDelivery(Struct, frozen=True, kw_only=True):
    """What one sink has of one job."""

    job_id: str
    sink: str
    state: SinkState = SinkState.ACTIVE
    created_at: float
    due_at: float | None
    """When it is looked at next; None unless it is active."""
    open_until: float = 0.0
    """It is not done before then, since more may come: the job is about to be redriven."""
    woken_at: float | None = None
    """When it was woken after it was done, before anything was redriven; None once it was looked at."""
    covered: int = 0
    """Ended items that were delivered, refused, or are unchanged since they were. The others are behind."""
    delivered: int = 0
    """Records that the sink took; those of redriven items count again."""
    failed: int = 0
    """Records that the sink can never take."""
    attempts: int = 0
    """Failed attempts in a row."""
    failing_since: float | None = None
    delivered_at: float | None = None
    """When the sink took something last."""
    last_error: str = ""
    """Of the attempt or record that failed last; stays after a success."""
    progress: bytes = b""
    """How far the job's items were delivered, as the delivery encodes it; a few kilobytes at most."""
    revision: int = 0
    """Counts changes: who changes it must have seen the last one."""
