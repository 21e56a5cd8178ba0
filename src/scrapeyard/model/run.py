"""A run: one execution of one scraper on one input; and the signals that every process receives."""

import secrets
import time
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct, field

from scrapeyard.model.exit_reasons import ExitReason
from scrapeyard.model.fetching import FetchPolicy
from scrapeyard.model.scraper import ScraperRef


def new_id(prefix: str) -> str:
    """A unique id such as `run_0199f0c2…`: 48 bits of milliseconds, then 80 random bits, in hex.

    Later ids sort later (to the millisecond), so the store pages by id alone.
    """
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


class Cancel(Struct, frozen=True, kw_only=True, tag="cancel"):
    """Cancel this run wherever it is."""

    run_id: str


class CancelJob(Struct, frozen=True, kw_only=True, tag="cancel_job"):
    """Kill what runs of this job, wherever it is; items without an outcome go back to the store."""

    job_id: str


class Refresh(Struct, frozen=True, kw_only=True, tag="refresh"):
    """Refresh the scraper repository and moved channels now; an empty id means all of them."""

    scraper: str = ""
    sender: str = ""  # the gateway that has already refreshed


class Invalidate(Struct, frozen=True, kw_only=True, tag="invalidate"):
    """Drop cached pages: those of a (normalised) URL, those of a site, or without either all of them."""

    url: str = ""
    site: str = ""


class SitesChanged(Struct, frozen=True, kw_only=True, tag="sites"):
    """The rules of a site changed: read the store now."""

    sender: str = ""  # which already knows it


class Watch(Struct, frozen=True, kw_only=True, tag="watch"):
    """Somebody watches the pages that this run has open in a browser, for a few seconds more."""

    run_id: str


class Replay(Struct, frozen=True, kw_only=True, tag="replay"):
    """Somebody begins to follow this run: send the lines that it has written so far."""

    run_id: str


Signal = Cancel | CancelJob | Refresh | Invalidate | SitesChanged | Watch | Replay


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
    """The final status for an exit reason. A skip is a success without data."""
    if reason.is_good:
        return RunStatus.SUCCEEDED
    if reason is ExitReason.CANCELLED:
        return RunStatus.CANCELLED
    return RunStatus.FAILED


class Priority(StrEnum):
    """A worker takes `high` before `normal` before `low`; some slots are kept for `high` alone."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


_NOT_NEGATIVE = Meta(extra_json_schema={"minimum": 0})
"""Told to readers of the API; what a worker sends is not refused for it."""


class RunError(Struct, frozen=True, kw_only=True):
    """What went wrong in a run."""

    message: str
    type: str = ""
    traceback: str = ""
    site_status: Annotated[int | None, Meta(description="What the site answered, where a fetch ended the run.")] = None
    details: dict[str, Any] = field(default_factory=dict)


class Usage(Struct, frozen=True, kw_only=True):
    """What the run used."""

    wall_ms: Annotated[float, _NOT_NEGATIVE] = 0.0
    cpu_ms: Annotated[float, _NOT_NEGATIVE] = 0.0
    memory_mb: float = 0.0
    fetches: Annotated[int, Meta(description="Pages that the script asked for.")] = 0
    requests: Annotated[
        int, Meta(description="What that took of the web: other ways and redirects, but no kept pages.")
    ] = 0
    bytes_received: Annotated[int, Meta(description="On the wire, of all those requests.")] = 0
    bytes_by_class: Annotated[
        dict[str, int],
        Meta(description="The same by what they came through: `direct`, `datacenter`, `residential`, `unlocker`."),
    ] = field(default_factory=dict)
    output_bytes: int = 0
    log_bytes: int = 0
    records: int = 0
    masked: Annotated[
        dict[str, int], Meta(description="Personal data that was masked in what the run left, by kind.")
    ] = field(default_factory=dict)
    solver_calls: Annotated[int, Meta(description="Pages that the solver was asked for.")] = 0
    solver_successes: Annotated[int, Meta(description="Those of them that it brought.")] = 0
    browser_pages: Annotated[int, Meta(description="Pages that were opened in a browser.")] = 0
    browser_saved_bytes: Annotated[
        int, Meta(description="About what blocking of images, fonts and the like has saved.")
    ] = 0
    captcha_calls: Annotated[int, Meta(description="Captchas that were to be solved.")] = 0
    captcha_successes: Annotated[int, Meta(description="Those of them that were answered.")] = 0
    captcha_cost: Annotated[float, Meta(description="What the vendor billed for them, in its currency.")] = 0.0
    ai_calls: Annotated[int, Meta(description="Questions that models answered.")] = 0
    ai_tokens: Annotated[int, Meta(description="Tokens that models read and wrote.")] = 0
    ai_cost: Annotated[float, Meta(description="What that cost, in the currency of the operator's prices.")] = 0.0

    @property
    def solver_success_rate(self) -> float | None:
        """Share of the solver's calls that brought a page; None if there were none."""
        return round(self.solver_successes / self.solver_calls, 4) if self.solver_calls else None


class Timing(Struct, frozen=True, kw_only=True):
    """Where the time went, in milliseconds."""

    queue_ms: float = 0.0
    resolve_ms: float = 0.0
    environment_ms: float = 0.0
    """Waiting, outside the worker's slots, until the scraper's packages were installed and a slot was free again."""
    child_start_ms: float = 0.0
    """From requesting a child to sending it the run; near zero if one was forked ahead."""
    forked_ahead: bool = False
    script_ms: float = 0.0
    fetch_ms: float = 0.0
    record_ms: float = 0.0
    """Uploading large results and artifacts to the blob store."""


class FetchTrace(Struct, frozen=True, kw_only=True):
    """One request to the web."""

    url: str
    method: str = "GET"
    status: int | None = None
    final_url: str = ""
    bytes: int = 0
    ms: float = 0.0
    started_ms: float = 0.0
    """Milliseconds after the script began."""
    error: str = ""
    way: Annotated[
        str, Meta(description="How the page was had: browser, pool, clearance, solver, `cache`; empty: not at all.")
    ] = ""
    age_seconds: Annotated[float | None, Meta(description="Of a kept page; null: it was fetched.")] = None
    tried: Annotated[
        tuple[dict[str, Any], ...],
        Meta(
            description="Ways that did not lead to a page, in order: `way`, `reason`, and `status`, `kind` and "
            "`vendor` of a block, or the `message` of a failure."
        ),
    ] = ()


class LogLine(Struct, frozen=True, kw_only=True):
    """One line a script wrote."""

    at_ms: Annotated[float, Meta(description="After the script began.")]
    stream: Annotated[str, Meta(description="stdout, stderr or log.")]
    text: str
    level: str = "info"
    fields: dict[str, Any] = field(default_factory=dict)


WaitReason = Literal["site_turn", "retry"]


class RunProgress(Struct, frozen=True, kw_only=True):
    """How far a script says that it is."""

    done: Annotated[float, Meta(description="How much is done.", extra_json_schema={"minimum": 0})] = 0.0
    total: Annotated[float | None, Meta(description="Of how much; null: the script does not know.")] = None
    message: Annotated[str, Meta(description="What the script says of it.")] = ""


class RunWait(Struct, frozen=True, kw_only=True):
    """Why a run does nothing now, and until when."""

    reason: WaitReason
    until: float
    """Unix seconds."""
    message: str
    site: str = ""
    """Empty if it is not known."""


class Artifact(Struct, frozen=True, kw_only=True):
    """Bytes a run stored."""

    name: str
    content_type: str
    size: int
    key: str  # of the blob

    @property
    def kind(self) -> str:
        """Whose retention it has: that of `results`, `html` or `artifacts`."""
        is_data = self.name in ("data.json", "metadata.json") and "/artifacts/" not in self.key
        return (
            "results" if is_data else "html" if "html" in self.content_type.partition(";")[0].lower() else "artifacts"
        )


class Delivery(Struct, frozen=True, kw_only=True):
    """A message in the queue: everything a worker needs to run, so that it looks up nothing that may have changed.

    `scraper` is pinned: `shop/product@1.4.2`, as the gateway resolved it.
    """

    run_id: str
    scraper: str
    digest: str = ""
    """Digest of the content to run; empty for a built-in, and where any content of the version will do."""
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
    """The gateway that waits for the outcome; empty if none does."""
    answer_by: float | None = None
    """Unix seconds until which the caller waits; None if nobody does, or no longer."""
    traceparent: str = ""
    fetching: FetchPolicy = FetchPolicy()
    owner: str = ""
    """The client that owns the run; empty if nobody was asked."""
    job_id: str = ""
    """If not empty, this delivers a batch of this job: `run_id` is the batch's; its items are in the store."""
    redelivered: bool = False
    """Set when the dispatcher publishes a run again: the worker must then claim it in the store before running it."""


class StepTrace(Struct, frozen=True, kw_only=True):
    """One step in a browser."""

    name: str
    started_ms: float
    """Since the attempt began."""
    ms: float
    error: str = ""


class Outcome(Struct, frozen=True, kw_only=True):
    """How one attempt ended. The worker sends it to the waiting gateway and records it, once per (run, attempt)."""

    run_id: str
    attempt: int
    exit_reason: ExitReason
    scraper: ScraperRef | None = None
    result: Raw | None = None
    """The result as JSON; None if it is in the blob store or there is none."""
    result_key: str = ""
    result_bytes: int = 0
    error: RunError | None = None
    usage: Usage = Usage()
    timing: Timing = Timing()
    fetches: tuple[FetchTrace, ...] = ()
    steps: tuple[StepTrace, ...] = ()
    """In a browser, for the run's trace; not recorded."""
    logs: tuple[LogLine, ...] = ()
    logs_cut: bool = False
    artifacts: tuple[Artifact, ...] = ()
    progress: RunProgress | None = None
    """The last that the script told; None if it told none."""
    worker_id: str = ""
    started_at: float = 0.0
    finished_at: float = 0.0
    retry_after: float | None = None
    """If set, another attempt follows after this many seconds, and the run is not final."""
    postponed: bool = False
    """The next attempt counts as this one: the run only waited for its turn."""


class Run(Struct, frozen=True, kw_only=True):
    """A run as stored."""

    id: str
    status: RunStatus
    scraper: str
    """As requested; `resolved` is what runs."""
    input: Raw
    resolved: ScraperRef | None = None
    """The exact version and content; None for a built-in that has not run yet."""
    lane: str = "default"
    priority: Priority = Priority.NORMAL
    attempt: int = 1
    max_attempts: int = 2
    timeout_seconds: float | None = None
    created_at: float
    queued_at: float
    """When it was last published to the queue."""
    not_before: float | None = None
    """The next attempt must not start before this time."""
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
    progress: RunProgress | None = None
    waiting: RunWait | None = None
    """The last wait that was noted; it may be over."""
    worker_id: str = ""
    lease_until: float | None = None
    cancel_requested: bool = False
    reply_to: str = ""
    traceparent: str = ""
    fetching: FetchPolicy = FetchPolicy()
    owner: str = ""
    """The client that called; empty while authentication was off."""
    swept: dict[str, float] = field(default_factory=dict)
    """When retention removed which kind."""

    @property
    def partial(self) -> bool:
        """Whether it failed and has a result all the same: the records that the script yielded before."""
        return self.status is RunStatus.FAILED and self.result_bytes > 0
