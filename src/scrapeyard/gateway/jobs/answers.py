"""What the API answers about jobs: the models behind the OpenAPI document. `job_documents` builds the answers."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from scrapeyard.gateway.http.patterns import EXAMPLE_JOB, EXPORT_ID, JOB_ID
from scrapeyard.gateway.runs.schemas import ArtifactDocument, ErrorDocument, LogLineDocument, UsageDocument
from scrapeyard.model import ExitReason, Priority
from scrapeyard.model.export import ExportState
from scrapeyard.model.job import ItemStatus, JobStatus

_NEXT = "Give it as `cursor` for the next page; null on the last."


class CountsDocument(BaseModel):
    """Items by status; they add up to `total` at every moment."""

    total: int
    pending: int
    queued: int
    in_progress: int
    success: int
    error: int
    cancelled: int


class BreakerDocument(BaseModel):
    """How the job's breaker stands."""

    state: Literal["closed", "open", "half_open"]
    reason: str
    in_a_row: int = Field(description="Failures in a row.")
    recent_failures: int = Field(description="Failures among the last outcomes.")
    recent: int = Field(description="How many last outcomes are looked at.")
    trips: int = Field(description="How often it opened.")
    opened_at: str | None
    probes_at: str | None = Field(description="When items probe again; null unless it is open.")


class JobLinks(BaseModel):
    """Where to go from here."""

    self: str
    items: str
    results: str
    exports: str
    stream: str
    ws: str


class WishDocument(BaseModel):
    """A file that is made when the job has ended."""

    type: str
    format: str
    bom: bool


class WebhookDocument(BaseModel):
    """Who is told of what happens."""

    url: str
    events: list[str]
    signed: bool


class JobDocument(BaseModel):
    """A job."""

    id: str = Field(pattern=JOB_ID, examples=[EXAMPLE_JOB])
    status: JobStatus
    name: str
    owner: str
    scraper: str
    version: str | None = Field(description="Pinned when the job was made; null for a built-in scraper.")
    asked_for: str = Field(description="The scraper as the call named it.")
    lane: str
    priority: Priority
    counts: CountsDocument
    progress: float = Field(ge=0, le=1, description="Share of the items known so far that have ended.")
    items_per_second: float | None = Field(description="Ended lately; null while none were handed out.")
    eta_seconds: float | None = Field(description="Until the end, if it goes on like this; null: cannot be told.")
    reading: bool = Field(description="Whether items are still being added by its source.")
    skipped_rows: int = Field(description="Rows of its list that were not usable, or there twice.")
    source: dict[str, Any]
    policy: dict[str, Any]
    breaker: BreakerDocument
    pause_reason: str
    error: ErrorDocument | None
    usage: UsageDocument = Field(description="Of all its items together.")
    exports: list[WishDocument]
    files_pending: bool = Field(
        description="Whether manifests and exports are still being written: while the job is `finishing`, and for a "
        "while after it was `cancelled`."
    )
    webhook: WebhookDocument | None
    schedule_id: str | None
    created_at: str = Field(examples=["2026-01-31T09:30:00.125Z"])
    started_at: str | None
    finished_at: str | None
    links: JobLinks


class BadRowDocument(BaseModel):
    """A row that cannot be used."""

    line: int = Field(description="Counted from 1; of `items` in a body: its place.")
    reason: str
    file: str


class RowsDocument(BaseModel):
    """What became of the list that came with the call."""

    taken: int
    bad: int
    first_bad: list[BadRowDocument] = Field(description="At most 100.")


class CreatedJobDocument(JobDocument):
    """A job that was made."""

    rows: RowsDocument | None = Field(description="Null: its source is read from now on.")


class JobPageDocument(BaseModel):
    """One page of the listing, newest first."""

    jobs: list[JobDocument]
    next_cursor: str | None = Field(description=_NEXT)


class RedrivenDocument(BaseModel):
    """What is run again."""

    items: int
    job: JobDocument


class AppendedDocument(BaseModel):
    """What became of more items."""

    added: int
    twice: int = Field(description="Those that the job has already.")
    bad: int
    first_bad: list[BadRowDocument]


class ItemLinks(BaseModel):
    """Where to go from here."""

    self: str
    job: str


class ItemDocument(BaseModel):
    """An item."""

    id: str
    number: int = Field(description="Its place in the job, from 0.")
    status: ItemStatus
    input: dict[str, Any]
    attempt: int = Field(description="Attempts begun.")
    not_before: str | None = Field(description="When it is tried again.")
    exit_reason: ExitReason | None
    error: ErrorDocument | None
    site: str | None
    usage: UsageDocument | None
    started_at: str | None
    finished_at: str | None
    result: Any = Field(description="Null before the end and where the data is an object: `artifacts` has it.")
    result_bytes: int
    artifacts: list[ArtifactDocument]
    links: ItemLinks


class WholeItemDocument(ItemDocument):
    """An item with what it wrote."""

    logs: list[LogLineDocument] = Field(description="The last lines, of items that failed.")


class ItemPageDocument(BaseModel):
    """One page of the items, in the order of the list."""

    items: list[ItemDocument]
    next_cursor: str | None = Field(description=_NEXT)


class DeadLetterDocument(ItemDocument):
    """An item that ended as an error."""

    job_id: str


class DeadLetterPageDocument(BaseModel):
    """One page of the dead letters, those of the newest job first."""

    items: list[DeadLetterDocument]
    next_cursor: str | None = Field(description=_NEXT)


class PartDocument(BaseModel):
    """One part of a manifest."""

    part: int
    items: int
    bytes: int
    sha256: str
    href: str


class ManifestDocument(BaseModel):
    """The parts of one manifest."""

    items: int
    parts: list[PartDocument]


class ResultsDocument(BaseModel):
    """What a job came to."""

    id: str
    status: JobStatus
    counts: CountsDocument
    exit_reasons: dict[str, int] | None = Field(description="Null until the manifests are written.")
    duration_seconds: float | None
    manifests: dict[str, ManifestDocument] = Field(description="Those that exist: `full`, `success`, `errors`.")


class ManifestPartDocument(BaseModel):
    """One part of a manifest, as it is kept."""

    job_id: str
    manifest: str
    part: int
    items: int
    counts: dict[str, int]
    digest: str = Field(description="SHA-256 of the array `entries` as it stands here.")
    entries: list[dict[str, Any]]


class ExportLinks(BaseModel):
    """Where to go from here."""

    self: str
    job: str
    download: str | None = Field(description="Null until it is done.")


class ExportDocument(BaseModel):
    """A file made of a job."""

    id: str = Field(pattern=EXPORT_ID)
    job_id: str
    type: str
    format: str
    bom: bool
    state: ExportState
    progress: float = Field(ge=0, le=1)
    rows: int
    bytes: int
    sha256: str | None
    filename: str
    error: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    links: ExportLinks


class ExportsDocument(BaseModel):
    """The exports of a job, the oldest first."""

    exports: list[ExportDocument]


class WorkersCount(BaseModel):
    """Workers whose heartbeat is fresh."""

    count: int
    slots: int
    busy: int


class LaneDocument(BaseModel):
    """What waits in one lane of the queue."""

    lane: str
    priority: Priority
    waiting: int


class JobsCount(BaseModel):
    """Jobs that are not final."""

    by_status: dict[str, int]
    items: CountsDocument = Field(description="Of all of them together.")
    more: bool = Field(description="Whether there are more than were counted.")


class StatsDocument(BaseModel):
    """How busy the platform is."""

    runs: dict[str, int] = Field(description="Runs that are not final, by status.")
    jobs: JobsCount
    queue: list[LaneDocument]
    workers: WorkersCount
