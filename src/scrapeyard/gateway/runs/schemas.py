"""What the API takes and answers: the models behind the OpenAPI document.

Requests are validated with these. Answers are built as bytes elsewhere (`documents`, `problems`, `explain`); the models
describe them, and tests hold the two together.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scrapeyard.gateway.http.patterns import EXAMPLE_ID, NAME, RUN_ID, SCRAPER_WANTED, Milliseconds, Url
from scrapeyard.gateway.runs.policies import Policy
from scrapeyard.model import ExitReason, Priority, RunStatus

RunWebhookEvent = Literal["run.succeeded", "run.failed", "run.cancelled"]
Secret = Annotated[str, Field(min_length=16, max_length=200, pattern=r"^[\x21-\x7e]+$")]


class RunWebhookCall(BaseModel):
    """Who is told when a run ends."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Url = Field(description="Where to; private addresses are refused unless the operator allows them.")
    events: list[RunWebhookEvent] = Field(
        ["run.succeeded", "run.failed", "run.cancelled"],
        min_length=1,
        max_length=3,
        description="What is told.",
    )
    secret: Secret | None = Field(None, description="Signs what is sent, never shown; default: the operator's.")


class ScrapeCall(BaseModel):
    """A scrape to do. Give at least one of `url`, `urls` and `scraper`; `url` and `urls` exclude each other."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"url": "https://shop.example/p/1"},
                {
                    "scraper": "shop/product",
                    "input": {"url": "https://shop.example/p/1", "currency": "EUR"},
                    "wait": 10,
                },
                {
                    "scraper": "shop/product",
                    "urls": ["https://shop.example/p/1", "https://shop.example/p/2"],
                    "wait": 0,
                },
            ]
        },
    )

    url: Url | None = Field(None, description="The page. Alone it runs `builtin/page`; else it becomes `input.url`.")
    urls: list[Url] | None = Field(None, min_length=1, max_length=100_000, description="One run for each.")
    scraper: str | None = Field(None, pattern=SCRAPER_WANTED, description="`site/task` or `site/task@version`.")
    input: dict[str, Any] = Field(default_factory=dict, description="Fits the scraper's input schema.")
    wait: float | None = Field(None, ge=0, description="Seconds to wait for the end; 0 answers at once with a handle.")
    on_timeout: Literal["continue", "cancel"] = Field(
        "continue", description="What becomes of a run that is not finished when `wait` is over."
    )
    on_disconnect: Literal["continue", "cancel"] = Field(
        "continue", description="What becomes of it when the caller hangs up while waiting."
    )
    priority: Priority | None = Field(None, description="Default: `high` for a waiting call, otherwise `normal`.")
    lane: str | None = Field(None, pattern=NAME, description="Which workers take it; default: the scraper's lane.")
    policy: Policy = Policy()
    webhook: RunWebhookCall | None = Field(None, description="Who is told when a run ends.")

    @model_validator(mode="after")
    def _names_something(self) -> "ScrapeCall":
        if self.url is None and self.urls is None and self.scraper is None:
            raise ValueError("give at least one of url, urls and scraper")
        if self.url is not None and self.urls is not None:
            raise ValueError("give url or urls, not both")
        if "url" in self.input and (self.urls is not None or self.url not in (None, self.input["url"])):
            raise ValueError("input.url and url (or urls) say different things; give one of them")
        return self


class Links(BaseModel):
    """Where to go from here."""

    self: str
    logs: str
    events: str
    explain: str
    artifacts: str


class Handle(BaseModel):
    """A run that goes on."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": EXAMPLE_ID,
                "status": "queued",
                "links": {
                    "self": f"/api/scrape/{EXAMPLE_ID}",
                    "logs": f"/api/scrape/{EXAMPLE_ID}/logs",
                    "events": f"/api/scrape/{EXAMPLE_ID}/events",
                    "explain": f"/api/scrape/{EXAMPLE_ID}/explain",
                    "artifacts": f"/api/scrape/{EXAMPLE_ID}/artifacts",
                },
            }
        }
    )

    id: str = Field(pattern=RUN_ID)
    status: RunStatus
    links: Links


class Handles(BaseModel):
    """Several runs, of which at least one goes on."""

    runs: list[Handle]


class ErrorDocument(BaseModel):
    """What went wrong in a run."""

    message: str
    type: str
    traceback: str
    site_status: int | None = Field(description="What the site answered, where a fetch ended the run.")
    details: dict[str, Any]


class UsageDocument(BaseModel):
    """What the run used."""

    wall_ms: Milliseconds
    cpu_ms: Milliseconds
    memory_mb: float
    fetches: int = Field(description="Pages that the script asked for.")
    requests: int = Field(description="What that took of the web: other ways and redirects, but no kept pages.")
    bytes_received: int = Field(description="On the wire, of all those requests.")
    bytes_by_class: dict[str, int] = Field(
        description="The same by what they came through: `direct`, `datacenter`, `residential`, `unlocker`."
    )
    output_bytes: int
    log_bytes: int
    records: int


class TimingDocument(BaseModel):
    """Where the time went, in milliseconds."""

    queue_ms: float
    resolve_ms: float
    environment_ms: float
    child_start_ms: float
    forked_ahead: bool
    script_ms: float
    fetch_ms: float
    record_ms: float


class ArtifactDocument(BaseModel):
    """Bytes the run kept."""

    name: str
    content_type: str
    size: int
    href: str


class Summary(BaseModel):
    """A run without its result, as the listing shows it."""

    id: str = Field(pattern=RUN_ID, examples=[EXAMPLE_ID])
    status: RunStatus
    scraper: str
    version: str | None = Field(description="What ran; before that, what was asked for; null: the newest.")
    digest: str | None = Field(description="Of the content that ran; null before that, and for a built-in scraper.")
    input: dict[str, Any]
    exit_reason: ExitReason | None = Field(description="Why it ended; null while it has not.")
    error: ErrorDocument | None
    usage: UsageDocument | None
    timing: TimingDocument | None
    attempt: int
    created_at: str = Field(examples=["2026-01-31T09:30:00.125Z"])
    starts_at: str | None = Field(
        description="Of a queued run that was put back, for another attempt or until its site's turn: when it is due."
    )
    started_at: str | None
    finished_at: str | None
    artifacts: list[ArtifactDocument]
    links: Links


class RunDocument(Summary):
    """A run."""

    result: Any = Field(description="What the scraper returned; null before the end, after a failure and for a skip.")


class RunDocuments(BaseModel):
    """Several runs that have all ended, each saying how."""

    runs: list[RunDocument]


class RunPageDocument(BaseModel):
    """One page of the listing, newest first."""

    runs: list[Summary]
    next_cursor: str | None = Field(description="Give it as `cursor` for the next page; null on the last.")


class LogLineDocument(BaseModel):
    """One line a script wrote."""

    at_ms: float = Field(description="After the script began.")
    stream: str = Field(description="stdout, stderr or log.")
    text: str
    level: str
    fields: dict[str, Any]


class LogsDocument(BaseModel):
    """What the last recorded attempt wrote."""

    id: str
    lines: list[LogLineDocument]
    cut: bool = Field(description="Whether lines beyond the scraper's log limit were dropped.")


class ArtifactsDocument(BaseModel):
    """What a run kept."""

    artifacts: list[ArtifactDocument]


class PhaseDocument(BaseModel):
    """One stretch of a run's time."""

    name: str
    ms: float
    percent: float


class FetchDocument(BaseModel):
    """One request to the web."""

    url: str
    method: str
    status: int | None
    final_url: str
    bytes: int
    ms: float
    started_ms: float
    error: str
    way: str = Field(description="How the page was had: browser, pool, clearance, solver, `cache`; empty: not at all.")
    age_seconds: float | None = Field(description="Of a kept page; null: it was fetched.")
    tried: list[dict[str, Any]] = Field(
        description="Ways that did not lead to a page, in order: `way`, `reason`, and `status`, `kind` and `vendor` of "
        "a block, or the `message` of a failure."
    )


class LimitDocument(BaseModel):
    """What was used of what was allowed."""

    name: str
    used: float
    allowed: float
    percent: float


class Explanation(BaseModel):
    """Where the time went, what was tried and why it ended so."""

    id: str
    status: RunStatus
    scraper: str
    version: str | None
    exit_reason: ExitReason | None
    retryable: bool
    attempt: int
    max_attempts: int
    worker: str | None
    total_ms: float
    phases: list[PhaseDocument]
    forked_ahead: bool
    fetches: list[FetchDocument]
    requests: int = Field(description="What the fetches took of the web.")
    bytes_by_class: dict[str, int] = Field(description="Received, by what it came through.")
    limits: list[LimitDocument]
    error: ErrorDocument | None
    summary: list[str] = Field(description="A few plain sentences: where the time went and what to do.")


class Problem(BaseModel):
    """Why a call was not answered as asked (RFC 9457). `code` is stable."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {
                "type": "urn:scrapeyard:problem:bad_input",
                "title": "The input does not fit the scraper's schema",
                "status": 422,
                "detail": '"url" is a required property',
                "code": "bad_input",
                "retryable": False,
                "remedy": "Correct the places listed in `errors`; GET /api/scrapers/{site}/{task} shows the schema.",
                "errors": [{"path": "/url", "message": '"url" is a required property'}],
            }
        },
    )

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    remedy: str


class RunProblem(Problem):
    """A run that ended badly, told to the call that waited for it."""

    id: str | None = Field(None, description="The run.")
    exit_reason: ExitReason | None = None
    error: ErrorDocument | None = None
    links: Links | None = None
