"""Jobs and items as the API shows them."""

from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Meta, Raw, Struct

from scrapeyard.gateway.http.alternatives import JOB, also, alternatives
from scrapeyard.gateway.http.patterns import EXAMPLE_JOB, EXAMPLE_TIME, JOB_ID, NEXT, OBJECT
from scrapeyard.gateway.jobs.policies import JobManners
from scrapeyard.gateway.jobs.rates import JobPace
from scrapeyard.gateway.runs.documents import ArtifactDocument
from scrapeyard.inputs.spool import ListSummary
from scrapeyard.model import ExitReason, LogLine, Priority, RunError, Usage
from scrapeyard.model.instants import instant
from scrapeyard.model.job import ArchiveState, Counts, ExportWish, Item, ItemStatus, Job, JobStatus


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


class ItemLinks(Struct, frozen=True, kw_only=True):
    """Where to go from here."""

    self: str
    job: str


class ItemDocument(Struct, frozen=True, kw_only=True):
    """An item."""

    id: str
    number: Annotated[int, Meta(description="Its place in the job, from 0.")]
    status: ItemStatus
    input: Annotated[Raw, OBJECT]
    attempt: Annotated[int, Meta(description="Attempts begun.")]
    not_before: Annotated[str | None, Meta(description="When it is tried again.")]
    exit_reason: ExitReason | None
    http_status: Annotated[
        int | None, Meta(description="Of the last page that it fetched; null if there was none, or no answer.")
    ]
    partial: Annotated[
        bool, Meta(description="It failed, and `result` has the records that the script yielded before.")
    ]
    error: RunError | None
    site: str | None
    usage: Usage | None
    strategy_used: Annotated[
        str | None,
        Meta(
            description="How its last page was had: `http`, `clearance` (plain HTTP with what the solver had got), "
            "`solver` or `cache`; null if it got none."
        ),
    ]
    proxy_used: Annotated[
        str | None, Meta(description="Class and exit of the proxy that the page came through, without credentials.")
    ]
    started_at: str | None
    finished_at: str | None
    depth: Annotated[int | None, Meta(description="Links from a start to it; null unless links are followed.")]
    referrer: Annotated[str | None, Meta(description="The page that linked to it first.")]
    result: Annotated[Raw, Meta(description="Null before the end and where the data is an object: `artifacts` has it.")]
    result_bytes: int
    artifacts: list[ArtifactDocument]
    swept: Annotated[tuple[str, ...], Meta(description="What retention has removed of it.")]
    links: ItemLinks


class WholeItemDocument(ItemDocument, frozen=True, kw_only=True):
    """An item with what it wrote."""

    logs: Annotated[tuple[LogLine, ...], Meta(description="The last lines, of items that failed.")]


class ItemPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the items, in the order of the list."""

    items: list[ItemDocument]
    next_cursor: Annotated[str | None, NEXT]


class DeadLetterDocument(ItemDocument, frozen=True, kw_only=True):
    """An item that ended as an error."""

    job_id: str


class DeadLetterPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the dead letters, those of the newest job first."""

    items: list[DeadLetterDocument]
    next_cursor: Annotated[str | None, NEXT]


_NULL = Raw(b"null")
Shown = TypeVar("Shown", bound=JobDocument)
ShownItem = TypeVar("ShownItem", bound=ItemDocument)
_TOLD = ("gaps", "left_out", "domain", "dialect", "call_digest", "spool")
"""Parts of a source that are shown elsewhere, or not."""


def job_document(job: Job, pace: JobPace, manners: JobManners | None) -> JobDocument:
    """A job, with its speed."""
    return _job(JobDocument, job, pace, manners=manners)


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


def item_document(job: Job, item: Item) -> ItemDocument:
    """An item without its logs."""
    return _item(ItemDocument, job.id, item, swept=job.swept_of(item))


def whole_item(job: Job, item: Item) -> WholeItemDocument:
    """An item with its logs."""
    return _item(WholeItemDocument, job.id, item, logs=item.logs, swept=job.swept_of(item))


def dead_letter(job: Job, item: Item) -> DeadLetterDocument:
    """An item that ended as an error, among those of other jobs."""
    return _item(DeadLetterDocument, job.id, item, job_id=job.id, swept=job.swept_of(item))


def _item(kind: type[ShownItem], of: str, item: Item, **more: Any) -> ShownItem:
    here = f"/api/jobs/{of}/items/{quote(item.key, safe='')}"
    return kind(
        id=item.key,
        number=item.seq,
        status=item.status,
        input=item.input,
        attempt=item.attempt,
        not_before=instant(item.not_before),
        exit_reason=item.exit_reason,
        http_status=item.http_status,
        partial=item.partial,
        error=item.error,
        site=item.site or None,
        usage=item.usage,
        strategy_used=item.strategy or None,
        proxy_used=item.proxy or None,
        started_at=instant(item.started_at),
        finished_at=instant(item.finished_at),
        depth=item.depth,
        referrer=item.referrer or None,
        result=item.result if item.result is not None else _NULL,
        result_bytes=item.result_bytes,
        artifacts=_artifacts(here, item),
        links=ItemLinks(self=here, job=f"/api/jobs/{of}"),
        **more,
    )


def _artifacts(here: str, item: Item) -> list[ArtifactDocument]:
    """Everything that can be downloaded of an item, without blob keys."""
    found = [(kept.name, kept.content_type, kept.size) for kept in item.artifacts]
    has_data = item.result is not None or bool(item.result_key)
    if has_data and not any(name == "data.json" for name, _, _ in found):
        found.insert(0, ("data.json", "application/json", item.result_bytes or len(bytes(item.result or b""))))
    return [
        ArtifactDocument(
            name=name, content_type=kind, size=size, href=f"{here}/download?artifact={quote(name, safe='')}"
        )
        for name, kind, size in found
    ]


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
