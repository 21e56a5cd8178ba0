"""Jobs as the API shows them."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from scrapeyard.gateway.http.alternatives import JOB, also, alternatives
from scrapeyard.gateway.http.patterns import EXAMPLE_JOB, EXAMPLE_TIME, JOB_ID, NEXT, OBJECT
from scrapeyard.gateway.jobs.policies import JobManners
from scrapeyard.gateway.jobs.rates import JobPace
from scrapeyard.inputs.spool import ListSummary
from scrapeyard.model import Priority, RunError, Usage
from scrapeyard.model.export import SinkDelivery, SinkState
from scrapeyard.model.instants import instant
from scrapeyard.model.job import ArchiveState, Counts, ExportWish, Job, JobStatus


class BreakerDocument(Struct, frozen=True, kw_only=True):
    """How the job's breaker stands."""

    state: Literal["closed", "open", "half_open"]
    reason: str
    in_a_row: Annotated[int, Meta(description="Failures in a row.")]
    recent_failures: Annotated[int, Meta(description="Failures among the last outcomes.")]
    recent: Annotated[int, Meta(description="How many last outcomes are looked at.")]
    trips: Annotated[int, Meta(description="How often it opened.")]
    opened_at: str | None
    probes_at: Annotated[str | None, Meta(description="When items probe again; null unless it is open.")]


class JobLinks(Struct, frozen=True, kw_only=True):
    """Where to go from here."""

    self: str
    items: str
    results: str
    exports: str
    metrics: str
    stream: str
    ws: str


class WebhookDocument(Struct, frozen=True, kw_only=True):
    """Who is told of what happens."""

    url: str
    events: list[str]
    signed: bool


class JobDocument(Struct, frozen=True, kw_only=True):
    """A job."""

    id: Annotated[str, Meta(pattern=JOB_ID, examples=[EXAMPLE_JOB])]
    status: JobStatus
    name: str
    owner: str
    scraper: str
    version: Annotated[str | None, Meta(description="Pinned when the job was made; null for a built-in scraper.")]
    asked_for: Annotated[str, Meta(description="The scraper as the call named it.")]
    profile: Annotated[str | None, Meta(description="The profile whose defaults it was made with.")]
    lane: str
    priority: Priority
    counts: Counts
    http_statuses: Annotated[
        dict[str, int],
        Meta(
            description="Items that have ended, by the HTTP status of the last page that each fetched. Items that "
            "fetched none, or got no answer, are not counted.",
            examples=[{"200": 950, "404": 30, "503": 2}],
        ),
    ]
    progress: Annotated[float, Meta(ge=0, le=1, description="Share of the items known so far that have ended.")]
    items_per_second: Annotated[float | None, Meta(description="Ended lately; null while none were handed out.")]
    eta_seconds: Annotated[
        float | None, Meta(description="Until the end, if it goes on like this; null: cannot be told.")
    ]
    reading: Annotated[bool, Meta(description="Whether items are still being added by its source.")]
    skipped_rows: Annotated[int, Meta(description="Rows of its list that were not usable, or there twice.")]
    warnings: Annotated[
        tuple[str, ...],
        Meta(
            description="What its reader must know: that all items failed; what of its source was not read, and why: "
            "files of a sitemap, pages beyond a limit, links of pages that failed, rows that could not be used."
        ),
    ]
    source: dict[str, Any]
    policy: Annotated[Any, OBJECT]
    manners: Annotated[JobManners | None, Meta(description="Null: the scraper's version is not here, which has a say.")]
    breaker: BreakerDocument
    pause_reason: str
    error: RunError | None
    usage: Annotated[Usage, Meta(description="Of all its items together.")]
    exports: tuple[ExportWish, ...]
    files_pending: Annotated[
        bool,
        Meta(
            description="Whether manifests and exports are still being written: while the job is `finishing`, and for "
            "a while after it was `cancelled`."
        ),
    ]
    swept: Annotated[
        dict[str, str],
        Meta(description="When retention removed `results`, `artifacts`, `html` or `logs` of its items."),
    ]
    archive: Annotated[
        ArchiveState, Meta(description="Where its items lie: empty for the database, `archived` for the blob store.")
    ]
    sinks: Annotated[tuple[str, ...], Meta(description="Names of the sinks that its results are delivered to.")]
    webhook: WebhookDocument | None
    schedule_id: str | None
    created_at: Annotated[str, Meta(examples=[EXAMPLE_TIME])]
    started_at: str | None
    finished_at: str | None
    deadline: Annotated[str | None, Meta(description="When `policy.max_seconds` are over.")]
    links: JobLinks
    domain: Annotated[str, Meta(description="The site it is about; empty if neither the call nor an address tells.")]
    total_urls: Annotated[int, also("counts.total")]
    success_urls: Annotated[int, also("counts.success")]
    failed_urls: Annotated[int, also("counts.error")]
    traffic_mb_used: Annotated[float, also("usage.bytes_received / 1048576")]
    residential_mb_used: Annotated[float, also("usage.bytes_by_class / 1048576, of residential and unlocking proxies")]
    error_message: Annotated[str | None, also("error.message")]
    updated_at: Annotated[str, also("finished_at, started_at or created_at, the last that is set")]


class JobSinkDocument(Struct, frozen=True, kw_only=True):
    """What one sink has of a job."""

    sink: str
    state: Annotated[
        SinkState,
        Meta(description="`active`: delivered as items end, or tried again; `done`: has all; `failed`: given up."),
    ]
    delivered: Annotated[int, Meta(description="Records that it took; those of items that ran again count again.")]
    failed: Annotated[int, Meta(description="Records that it can never take.")]
    behind: Annotated[int, Meta(description="Items that have ended and are not delivered yet.")]
    attempts: Annotated[int, Meta(description="Failed attempts in a row.")]
    last_error: Annotated[str | None, Meta(description="Of the attempt or record that failed last.")]
    delivered_at: Annotated[str | None, Meta(description="When it took something last.")]
    failing_since: str | None
    next_at: Annotated[str | None, Meta(description="When it is looked at next; null unless it is active.")]


class WholeJobDocument(JobDocument, frozen=True, kw_only=True):
    """A job, with how its sinks stand."""

    sink_deliveries: tuple[JobSinkDocument, ...]


class BadRowDocument(Struct, frozen=True, kw_only=True):
    """A row that cannot be used."""

    line: Annotated[int, Meta(description="Counted from 1; of `items` in a body: its place.")]
    reason: str
    file: str


class RowsDocument(Struct, frozen=True, kw_only=True):
    """What became of the list that came with the call."""

    taken: Annotated[int, Meta(description="Rows that can be used; some may be the same item.")]
    bad: int
    first_bad: Annotated[list[BadRowDocument], Meta(description="At most 100.")]


class CreatedJobDocument(JobDocument, frozen=True, kw_only=True):
    """A job that was made."""

    rows: Annotated[RowsDocument | None, Meta(description="Null: its source is read from now on.")]


class JobPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the listing, newest first."""

    jobs: list[JobDocument]
    next_cursor: Annotated[str | None, NEXT]


class RedrivenDocument(Struct, frozen=True, kw_only=True):
    """What is run again."""

    items: int
    job: JobDocument


class AppendedDocument(Struct, frozen=True, kw_only=True):
    """What became of more items."""

    added: int
    twice: Annotated[int, Meta(description="Those that the job has already.")]
    bad: int
    first_bad: list[BadRowDocument]


Shown = TypeVar("Shown", bound=JobDocument)
_TOLD = ("gaps", "left_out", "domain", "dialect", "call_digest", "spool")
"""Parts of a source that are shown elsewhere, or not."""


def job_document(job: Job, pace: JobPace, manners: JobManners | None) -> JobDocument:
    """A job, with its speed."""
    return _job(JobDocument, job, pace, manners=manners)


def whole_job(
    job: Job, pace: JobPace, manners: JobManners | None, deliveries: Iterable[SinkDelivery]
) -> WholeJobDocument:
    """The same, with how its sinks stand."""
    shown = tuple(job_sink(job, delivery) for delivery in deliveries)
    return _job(WholeJobDocument, job, pace, manners=manners, sink_deliveries=shown)


def job_sink(job: Job, delivery: SinkDelivery) -> JobSinkDocument:
    """What one sink has of a job."""
    return JobSinkDocument(
        sink=delivery.sink,
        state=delivery.state,
        delivered=delivery.delivered,
        failed=delivery.failed,
        behind=max(0, job.counts.success + job.counts.error - delivery.covered),
        attempts=delivery.attempts,
        last_error=delivery.last_error or None,
        delivered_at=instant(delivery.delivered_at),
        failing_since=instant(delivery.failing_since),
        next_at=instant(delivery.due_at),
    )


def created_document(
    job: Job, pace: JobPace, manners: JobManners | None, summary: ListSummary | None
) -> CreatedJobDocument:
    """A job just created; `rows` describes the list that came with it."""
    rows = None
    if summary is not None:
        rows = RowsDocument(taken=summary.rows, bad=summary.bad, first_bad=bad_rows(summary))
    return _job(CreatedJobDocument, job, pace, manners=manners, rows=rows)


def _job(kind: type[Shown], job: Job, pace: JobPace, **more: Any) -> Shown:
    scraper_id, _, version = job.pinned.partition("@")
    here = f"/api/jobs/{job.id}"
    return kind(
        id=job.id,
        status=job.status,
        name=job.name,
        owner=job.owner,
        scraper=scraper_id,
        version=version or None,
        asked_for=job.scraper,
        profile=job.profile or None,
        lane=job.lane,
        priority=job.priority,
        counts=job.counts,
        http_statuses={str(status): count for status, count in sorted(job.http_statuses.items())},
        progress=round(job.counts.done / job.counts.total, 4) if job.counts.total else 0.0,
        items_per_second=pace.items_per_second,
        eta_seconds=pace.eta_seconds,
        reading=job.reading,
        skipped_rows=job.skipped_rows,
        warnings=job.warnings,
        source={name: value for name, value in job.source.items() if name not in _TOLD},
        policy=job.policy,
        breaker=_breaker(job),
        pause_reason=job.pause_reason,
        error=job.error,
        usage=job.use,
        exports=job.exports,
        files_pending=job.files_pending or job.status is JobStatus.FINISHING,
        swept={kind: instant(at) for kind, at in job.swept.items()},
        archive=job.archive,
        sinks=job.sinks,
        webhook=_webhook(job),
        schedule_id=job.schedule_id or None,
        created_at=instant(job.created_at),
        started_at=instant(job.started_at),
        finished_at=instant(job.finished_at),
        deadline=instant(job.deadline),
        links=JobLinks(self=here, **{name: f"{here}/{name}" for name in JobLinks.__struct_fields__[1:]}),
        domain=job.domain,
        **alternatives(JOB, job, instant),
        **more,
    )


def bad_rows(summary: ListSummary) -> list[BadRowDocument]:
    """The first rows of a list that could not be used."""
    return [BadRowDocument(line=row.line, reason=row.reason, file=row.file) for row in summary.first]


def _breaker(job: Job) -> BreakerDocument:
    state = job.breaker
    until = None
    if state.state == "open" and state.opened_at is not None:
        until = instant(state.opened_at + job.policy.breaker.cooldown_seconds)
    return BreakerDocument(
        state=state.state,
        reason=state.reason,
        in_a_row=state.in_a_row,
        recent_failures=state.recent.count("e"),
        recent=len(state.recent),
        trips=state.trips,
        opened_at=instant(state.opened_at),
        probes_at=until,
    )


def _webhook(job: Job) -> WebhookDocument | None:
    """The webhook without its secret."""
    if job.webhook is None:
        return None
    kept: dict[str, Any] = msgspec.json.decode(job.webhook)
    return WebhookDocument(url=kept["url"], events=kept["events"], signed=bool(kept.get("secret")))
