"""A job: many items for one pinned scraper, under one policy. docs/design/jobs.md has the whole machine.

creating ──► running ◄──► paused          creating ──► failed
                │                          running, paused ──► cancelling ──► cancelled
                ▼
            finishing ──► completed        completed, cancelled ──► running   (redrive; resume)

an item: pending ──► queued ──► in_progress ──► success | error
            ▲                        │
            └────────────────────────┘  another attempt;  pending, in_progress ──► cancelled with its job
"""

from enum import StrEnum
from typing import Any, Literal

from msgspec import Raw, Struct, field

from scrapeyard.model.exit_reasons import ExitReason
from scrapeyard.model.fetching import Backoff, BudgetLimits, FetchPolicy
from scrapeyard.model.run import Artifact, LogLine, Priority, RunError, Usage

ITEM_KEY = r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$"
"""Pattern of item keys: they become parts of blob keys and URLs."""
ABREAST = 16
"""Maximum items of one batch that run concurrently; fewer if the job's concurrency is lower."""
BY_BUDGET = "budget"
"""Value of `pause_reason` for a job whose budget is used up."""
MAX_GAPS = 20
MAX_ITEM_INPUT = 64 * 1024
"""Maximum bytes of one item's input as JSON."""


class JobStatus(StrEnum):
    """Where a job stands."""

    CREATING = "creating"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    FINISHING = "finishing"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether nothing changes any more, unless it is redriven."""
        return self in FINAL_JOB


FINAL_JOB = frozenset({JobStatus.COMPLETED, JobStatus.CANCELLED, JobStatus.FAILED})


class ArchiveState(StrEnum):
    """Where the items of an ended job lie: in the database, or as an archive in the blob store."""

    NONE = ""
    ARCHIVING = "archiving"
    """The archive is being written."""
    REMOVING = "removing"
    """It is written; the rows are being removed from the database."""
    ARCHIVED = "archived"
    RESTORING = "restoring"


class ItemStatus(StrEnum):
    """Where an item stands. It follows from where the item is found; only the last but `cancelled` are stored."""

    PENDING = "pending"
    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"


class Counts(Struct, frozen=True, kw_only=True):
    """Items by status; they add up to `total` at every moment."""

    total: int = 0
    pending: int = 0
    queued: int = 0
    in_progress: int = 0
    success: int = 0
    error: int = 0
    cancelled: int = 0

    @property
    def done(self) -> int:
        """Items that will not change by themselves any more."""
        return self.success + self.error + self.cancelled


class BreakerPolicy(Struct, frozen=True, kw_only=True):
    """When a job is halted because its items fail, and for how long."""

    enabled: bool = True
    failures: int = 20
    """This many errors in a row."""
    ratio: float = 0.5
    """Or this share of errors in the last `window` outcomes, once there are that many."""
    window: int = 50
    cooldown_seconds: float = 300.0
    probes: int = 3
    """Items let through after the cooldown; one success closes the breaker, otherwise it opens again."""


class BreakerState(Struct, frozen=True, kw_only=True):
    """State of a job's breaker."""

    state: Literal["closed", "open", "half_open"] = "closed"
    in_a_row: int = 0
    recent: str = ""
    """The last outcomes, `s` or `e`, the newest last, at most `window`."""
    opened_at: float | None = None
    reason: str = ""
    probing: int = 0
    """Items let through while half open."""
    trips: int = 0


class SnapshotPolicy(Struct, frozen=True, kw_only=True):
    """How a job's pages are stored, so that the next crawl can detect changes."""

    scope: str = ""
    """Crawls of one scope are compared; if empty, the job's schedule, else its name, else its scraper with the site of
    each page."""
    ignore: tuple[str, ...] = ()
    """Fields whose changes are ignored: `text_hash`; with `.*` everything below: `meta.*`."""
    confirm: int = 1
    """A change or removal is reported once this many crawls in a row agree."""


class JobPolicy(Struct, frozen=True, kw_only=True):
    """How a job's items are run."""

    timeout_seconds: float | None = None
    max_attempts: int = 3
    backoff: Backoff = Backoff()
    rate: float | None = None
    """Items started per second; None for as fast as workers take them."""
    burst: int = 1
    concurrency: int | None = None
    """Items handed out at once; None for what the window allows."""
    breaker: BreakerPolicy = BreakerPolicy()
    budget: BudgetLimits = BudgetLimits()
    """Budget of the whole job."""
    max_seconds: float | None = None
    """Wall clock of the whole job, from its first item; then items that have not begun are cancelled."""
    isolation: Literal["run", "job"] = "run"
    results: Literal["rows", "objects"] = "rows"
    """Where an item's data is stored: small data in its row, or always as an object."""
    keep_html: bool = False
    accept_status: tuple[int, ...] = ()
    """Error statuses of a site that are a result for built-in scrapers, like 200."""
    max_items: int = 100_000
    """Scripts add no more items once the job has this many."""
    max_depth: int = 10
    """Scripts add no items that are more steps than this from the job's own list."""
    snapshots: SnapshotPolicy | None = None
    """None if snapshots are stored only when a diff export is requested."""
    fetching: FetchPolicy = FetchPolicy()

    @property
    def abreast(self) -> int:
        """Items of one batch that a built-in scraper runs concurrently; a script's items run one after another."""
        return max(1, min(ABREAST, self.concurrency or ABREAST))


class ExportWish(Struct, frozen=True, kw_only=True):
    """A file to be made of a job."""

    type: Literal["full", "pages", "seo", "diff", "links", "records"]
    format: Literal["csv", "xlsx", "json", "jsonl", "parquet"]
    bom: bool = True
    """CSV only: start with a byte order mark, so that Excel detects UTF-8."""
    against: str = ""
    """`diff` only: the job to compare with; if empty, the crawl before."""
    skip_first: bool = False
    """`diff` only: make no file of a first crawl, whose pages cannot be compared with anything."""


class Job(Struct, frozen=True, kw_only=True):
    """A job as stored."""

    id: str
    status: JobStatus
    name: str = ""
    owner: str = ""
    """Whose share of the workers it uses; empty for the common share."""
    scraper: str
    """The scraper as requested."""
    profile: str = ""
    """The set of defaults it was created with; empty for none."""
    pinned: str
    """`site/task@1.4.2`: the version that runs, to the end."""
    digest: str = ""
    """Digest of the content that runs; empty for a built-in and for a job created before digests were stored."""
    lane: str = "default"
    priority: Priority = Priority.NORMAL
    policy: JobPolicy = JobPolicy()
    exports: tuple[ExportWish, ...] = ()
    sinks: tuple[str, ...] = ()
    """Names of the sinks that its results are delivered to."""
    webhook: Raw | None = None
    """As validated by the gateway."""
    source: dict[str, Any] = field(default_factory=dict)
    """Where its items come from, and how to read them."""
    counts: Counts = Counts()
    cursor: int = 0
    """Items from this number on were never handed out."""
    created_at: float
    started_at: float | None = None
    """When the first item was handed out."""
    finished_at: float | None = None
    deadline: float | None = None
    """When its `max_seconds` are over; None without a limit, and before the first item was handed out."""
    reading: bool = False
    """Its source is still adding items; it cannot finish before that ends."""
    unread: bool = False
    """It was cancelled before its source had ended; resuming it reads on."""
    skipped_rows: int = 0
    """Rows of its list that were unusable or duplicates."""
    redrives: int = 0
    """How often it was redriven, or resumed after a cancel; one redrive may count several times. While it stays the
    same and the job has not ended, an item that has ended does not change."""
    error: RunError | None = None
    breaker: BreakerState = BreakerState()
    use: Usage = Usage()
    """Summed over its items: requests, bytes, time."""
    http_statuses: dict[int, int] = field(default_factory=dict)
    """Its final items by the HTTP status that each ended with. Items that got no answer are not counted."""
    pause_reason: str = ""
    schedule_id: str = ""
    traceparent: str = ""
    """Of the call that created it; traces of its items link to it."""
    kill: bool = False
    """While cancelling: batches are killed, not drained."""
    deleting: bool = False
    """It is being deleted, with everything it left."""
    archive: ArchiveState = ArchiveState.NONE
    archive_key: str = ""
    """Blob key of its archive; empty while there is none."""
    swept: dict[str, float] = field(default_factory=dict)
    """When retention removed results, artifacts, html or logs of the items that had ended by then."""
    sweeping: bool = False
    """Retention removes something now; nothing of it may run again meanwhile."""
    files_pending: bool = False
    """Cancelled, and its manifests and exports are not written yet."""

    @property
    def domain(self) -> str:
        """The site it is about, as the call names it or as its first address shows; empty if neither tells."""
        return str(self.source.get("domain", ""))

    def swept_of(self, item: "Item") -> tuple[str, ...]:
        """What retention removed of an item."""
        return tuple(kind for kind, at in self.swept.items() if (item.finished_at or at) <= at)

    @property
    def gaps(self) -> tuple[str, ...]:
        """What of its source was not read: files of a sitemap, pages beyond a limit, links of failed pages. The first
        MAX_GAPS; the last then says how many more there are."""
        return tuple(self.source.get("gaps", ()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What whoever uses its results must know: the gaps, rows that were left out, and that nothing succeeded."""
        failed = (f"every item ended as an error ({self.counts.error})",) if self.all_failed else ()
        return (*failed, *self.gaps, *self.source.get("left_out", ()))

    @property
    def all_failed(self) -> bool:
        """Whether every item has ended, and each as an error."""
        over = self.status in (JobStatus.FINISHING, JobStatus.COMPLETED)
        return over and self.counts.error == self.counts.total > 0


class NewItem(Struct, frozen=True, kw_only=True):
    """An item as read from a list."""

    key: str
    """Matches ITEM_KEY and is unique within the job."""
    input: Raw
    """A JSON object."""
    depth: int | None = None
    """Links from a start to it; None if it was not found by following links."""
    referrer: str = ""
    """URL of the page that linked to it first."""


class BatchItem(Struct, frozen=True, kw_only=True):
    """An item as a worker receives it."""

    seq: int
    key: str
    input: Raw
    attempt: int = 1
    depth: int | None = None


class Batch(Struct, frozen=True, kw_only=True):
    """Items delivered together."""

    id: str
    job_id: str
    state: Literal["queued", "running"] = "queued"
    first: int = 0
    last: int = -1
    """A range of fresh items, both ends included; unused if `again` is not empty."""
    again: tuple[tuple[int, int], ...] = ()
    """(seq, attempt) of items that were handed out before."""
    left: int
    """Number of items without a record."""
    part: int = 0
    """Number of records made."""
    lane: str = "default"
    priority: Priority = Priority.LOW
    queued_at: float
    worker_id: str = ""
    lease_until: float | None = None
    begun: int | None = None
    """How many of its items its worker has begun, in their order, as far as the store knows; None until it is taken."""
    lost_before: bool = False
    """Whether some of its items were in a batch whose worker was lost. Any of them may be what killed it, so none
    begins before the store knows."""


class ItemOutcome(Struct, frozen=True, kw_only=True):
    """How one item of a batch ended, or that it will be retried."""

    seq: int
    attempt: int
    exit_reason: ExitReason
    result: Raw | None = None
    """JSON; None if there is none or it is stored as an object."""
    result_key: str = ""
    result_bytes: int = 0
    error: RunError | None = None
    site: str = ""
    """Registrable domain of its URL, where it has one; redrive and listing filter by it."""
    usage: Usage = Usage()
    strategy: str = ""
    """How its last page was had: `http`, `clearance`, `solver` or `cache`; empty if it got none."""
    proxy: str = ""
    """Class and name of the exit that the page came through, without credentials; empty for none."""
    logs: tuple[LogLine, ...] = ()
    """Only for failed items, cut to a few kilobytes."""
    artifacts: tuple[Artifact, ...] = ()
    started_at: float
    finished_at: float
    not_before: float | None = None
    """If set, this is not an end: the item is handed out again then, at `attempt` + 1, or at `attempt` if postponed."""
    postponed: bool = False
    http_status: int | None = None
    """Status of the last page that it fetched; None if it fetched none or got no answer."""
    found: tuple[NewItem, ...] = ()
    """Items that the script added; empty if another attempt follows, which finds them again."""


class Item(Struct, frozen=True, kw_only=True):
    """An item as listings show it."""

    seq: int
    key: str
    input: Raw
    status: ItemStatus
    attempt: int = 0
    """Attempts started; 0 before the first."""
    not_before: float | None = None
    exit_reason: ExitReason | None = None
    result: Raw | None = None
    result_key: str = ""
    result_bytes: int = 0
    error: RunError | None = None
    site: str = ""
    usage: Usage | None = None
    strategy: str = ""
    proxy: str = ""
    logs: tuple[LogLine, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    started_at: float | None = None
    finished_at: float | None = None
    depth: int | None = None
    referrer: str = ""
    http_status: int | None = None

    @property
    def partial(self) -> bool:
        """Whether it failed and has a result all the same: the records that the script yielded before."""
        return self.status is ItemStatus.ERROR and self.result_bytes > 0
