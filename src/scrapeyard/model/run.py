"""A run: one execution of one scraper on one input; and the signals that every process hears."""

import secrets
import time
from enum import StrEnum
from typing import Any

from msgspec import Raw, Struct, field

from scrapeyard.model.environment import EnvironmentState
from scrapeyard.model.exit_reasons import ExitReason
from scrapeyard.model.fetching import FetchPolicy
from scrapeyard.model.scraper import ScraperRef


def new_id(prefix: str) -> str:
    """A unique id such as `run_0199f0c2…`: 48 bits of milliseconds, then 80 random bits, in hex.

    Ids made later sort later (to the millisecond), so the store pages by id alone.
    """
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


class Cancel(Struct, frozen=True, kw_only=True, tag="cancel"):
    """End this run wherever it is."""

    run_id: str


class CancelJob(Struct, frozen=True, kw_only=True, tag="cancel_job"):
    """Kill what runs of this job, wherever it is; what has no outcome yet goes back to the store."""

    job_id: str


class Refresh(Struct, frozen=True, kw_only=True, tag="refresh"):
    """Look at the scraper repository and at moved channels now; an empty id means all of it."""

    scraper: str = ""
    sender: str = ""
    """The gateway that has looked already, and need not do so again."""


class Invalidate(Struct, frozen=True, kw_only=True, tag="invalidate"):
    """Forget kept pages: those of a URL (in its one spelling), those of a site, or with neither all of them."""

    url: str = ""
    site: str = ""


class SitesChanged(Struct, frozen=True, kw_only=True, tag="sites"):
    """Operators want a site treated in another way: read the store now."""

    sender: str = ""
    """The process that knows it already."""


Signal = Cancel | CancelJob | Refresh | Invalidate | SitesChanged


class RunStatus(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the run has ended."""
        return self in FINAL


FINAL = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED})


def status_of(reason: ExitReason) -> RunStatus:
    """The final status that goes with an exit reason. A skip is a success without data."""
    if reason in (ExitReason.SUCCEEDED, ExitReason.SKIPPED):
        return RunStatus.SUCCEEDED
    if reason is ExitReason.CANCELLED:
        return RunStatus.CANCELLED
    return RunStatus.FAILED


class Priority(StrEnum):
    """A worker takes `high` before `normal` before `low`; some slots are kept for `high` alone."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class RunError(Struct, frozen=True, kw_only=True):
    """What went wrong, in words and with the script's own traceback where there is one."""

    message: str
    type: str = ""
    traceback: str = ""
    site_status: int | None = None
    """The status the site answered with, where a fetch ended the run. Never our own status."""
    details: dict[str, Any] = field(default_factory=dict)


class Usage(Struct, frozen=True, kw_only=True):
    """What a run used."""

    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    memory_mb: float = 0.0
    fetches: int = 0
    """Pages that the script asked for."""
    requests: int = 0
    """What that took of the web: other ways and redirects count, kept pages do not."""
    bytes_received: int = 0
    """On the wire, of all those requests."""
    bytes_by_class: dict[str, int] = field(default_factory=dict)
    """The same by what they came through: `direct`, `datacenter`, `residential`, `unlocker`."""
    output_bytes: int = 0
    log_bytes: int = 0
    records: int = 0


class Timing(Struct, frozen=True, kw_only=True):
    """Where the time went, in milliseconds."""

    queue_ms: float = 0.0
    resolve_ms: float = 0.0
    environment_ms: float = 0.0
    """Waiting, outside the worker's slots, until the scraper's packages were installed and a slot was free again."""
    child_start_ms: float = 0.0
    """From asking for a child to having handed it the run; near zero when one was forked ahead."""
    forked_ahead: bool = False
    script_ms: float = 0.0
    fetch_ms: float = 0.0
    record_ms: float = 0.0
    """Handing large results and artifacts to the blob store."""


class FetchTrace(Struct, frozen=True, kw_only=True):
    """One request to the web, as `explain` shows it."""

    url: str
    method: str = "GET"
    status: int | None = None
    final_url: str = ""
    bytes: int = 0
    ms: float = 0.0
    started_ms: float = 0.0
    """After the script began."""
    error: str = ""
    way: str = ""
    """How the page was had: `chrome`, `firefox via homes`, `cache`. Empty for a failure."""
    age_seconds: float | None = None
    """Of a kept page; None: it was fetched."""
    tried: tuple[dict[str, Any], ...] = ()
    """Ways that did not lead to a page, in order, each with the site's status and why it was taken for a block."""


class LogLine(Struct, frozen=True, kw_only=True):
    """One line a script wrote: `stream` is stdout, stderr or log."""

    at_ms: float
    stream: str
    text: str
    level: str = "info"
    fields: dict[str, Any] = field(default_factory=dict)


class Artifact(Struct, frozen=True, kw_only=True):
    """Bytes kept from a run."""

    name: str
    content_type: str
    size: int
    key: str
    """Where the blob store holds it."""


class Delivery(Struct, frozen=True, kw_only=True):
    """What travels through the queue: all that a worker needs to run, nothing it could look up wrongly.

    `scraper` is pinned: `shop/product@1.4.2`, as the gateway resolved it.
    """

    run_id: str
    scraper: str
    input: Raw
    """A JSON object, already checked by the gateway."""
    attempt: int = 1
    max_attempts: int = 2
    lane: str = "default"
    priority: Priority = Priority.NORMAL
    created_at: float
    """Unix seconds."""
    queued_at: float
    timeout_seconds: float | None = None
    """Shortens the scraper's own wall clock, never lengthens it."""
    reply_to: str = ""
    """The gateway that waits for the outcome; empty when nobody does."""
    traceparent: str = ""
    fetching: FetchPolicy = FetchPolicy()
    job_id: str = ""
    """Not empty: a batch of this job travels; `run_id` is the batch's, and its items are taken from the store."""
    redelivered: bool = False
    """Set when the dispatcher publishes a run again: the worker then claims it in the store before it runs."""


class Outcome(Struct, frozen=True, kw_only=True):
    """How one attempt ended. The worker sends it to the waiting gateway and records it, once per (run, attempt)."""

    run_id: str
    attempt: int
    exit_reason: ExitReason
    scraper: ScraperRef | None = None
    result: Raw | None = None
    """The result as JSON; None when it is in the blob store or there is none."""
    result_key: str = ""
    result_bytes: int = 0
    error: RunError | None = None
    usage: Usage = Usage()
    timing: Timing = Timing()
    fetches: tuple[FetchTrace, ...] = ()
    logs: tuple[LogLine, ...] = ()
    logs_cut: bool = False
    artifacts: tuple[Artifact, ...] = ()
    worker_id: str = ""
    started_at: float = 0.0
    finished_at: float = 0.0
    retry_after: float | None = None
    """Not None when this attempt is to be followed by another, that many seconds later: the run is not final."""
    postponed: bool = False
    """The other one then counts as this one: the run only waited for its turn."""


class Run(Struct, frozen=True, kw_only=True):
    """A run as the store keeps it."""

    id: str
    status: RunStatus
    scraper: str
    """As asked for; `resolved` is what ran."""
    input: Raw
    resolved: ScraperRef | None = None
    lane: str = "default"
    priority: Priority = Priority.NORMAL
    attempt: int = 1
    max_attempts: int = 2
    timeout_seconds: float | None = None
    created_at: float
    queued_at: float
    """When it was last handed to the queue."""
    not_before: float | None = None
    """A later attempt waits until then."""
    started_at: float | None = None
    finished_at: float | None = None
    exit_reason: ExitReason | None = None
    error: RunError | None = None
    result: Raw | None = None
    result_key: str = ""
    result_bytes: int = 0
    usage: Usage | None = None
    timing: Timing | None = None
    fetches: tuple[FetchTrace, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    worker_id: str = ""
    lease_until: float | None = None
    cancel_requested: bool = False
    reply_to: str = ""
    traceparent: str = ""
    fetching: FetchPolicy = FetchPolicy()


class WorkerInfo(Struct, frozen=True, kw_only=True):
    """A worker as its last heartbeat told."""

    id: str
    host: str
    pid: int
    version: str
    lanes: tuple[str, ...]
    engines: tuple[str, ...]
    walls: tuple[str, ...]
    slots: int
    busy: int
    draining: bool = False
    started_at: float
    seen_at: float
    runs_done: int = 0
    load: float = 0.0
    """One-minute load average per core."""
    memory_mb: float = 0.0
    environments: dict[str, EnvironmentState] = field(default_factory=dict)
    """Of scrapers (`site/task@1.4.2`) with requirements that this worker knows, at most some hundreds."""
