"""Runs as the API shows them: the one place where a run becomes JSON. Independent of HTTP, so that a run without a
server is shown in the same way."""

import time
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import replace

from scrapeyard.gateway.http import dialects
from scrapeyard.gateway.http.alternatives import RUN, alternatives
from scrapeyard.gateway.http.alternatives import also as also_called
from scrapeyard.gateway.http.patterns import EXAMPLE_ID, EXAMPLE_TIME, NEXT, OBJECT, RUN_ID
from scrapeyard.model import (
    Artifact,
    ExitReason,
    LogLine,
    Outcome,
    Run,
    RunError,
    RunProgress,
    RunStatus,
    Timing,
    Usage,
    WaitReason,
    status_of,
)
from scrapeyard.model.instants import instant

_encoder = msgspec.json.Encoder()
_NULL = Raw(b"null")


class Links(Struct, frozen=True, kw_only=True):
    """Where to go from here."""

    self: str
    logs: str
    events: str
    explain: str
    artifacts: str


def links(run_id: str) -> Links:
    """Links to the rest of a run."""
    here = f"/api/scrape/{run_id}"
    return Links(
        self=here,
        logs=f"{here}/logs",
        events=f"{here}/events",
        explain=f"{here}/explain",
        artifacts=f"{here}/artifacts",
    )


class Handle(Struct, frozen=True, kw_only=True):
    """A run that goes on."""

    SCHEMA: ClassVar[dict[str, Any]] = {
        "example": {"id": EXAMPLE_ID, "status": "queued", "links": msgspec.to_builtins(links(EXAMPLE_ID))}
    }

    id: Annotated[str, Meta(pattern=RUN_ID)]
    status: RunStatus
    links: Links


class Handles(Struct, frozen=True, kw_only=True):
    """Several runs, of which at least one goes on."""

    runs: list[Handle]


class ArtifactDocument(Struct, frozen=True, kw_only=True):
    """Bytes the run kept."""

    name: str
    content_type: str
    size: int
    href: str


class ArtifactsDocument(Struct, frozen=True, kw_only=True):
    """What a run kept."""

    artifacts: list[ArtifactDocument]


class WaitDocument(Struct, frozen=True, kw_only=True):
    """What a run waits for."""

    reason: Annotated[
        WaitReason,
        Meta(
            description="`site_turn`: its site's rate; `retry`: a page or the whole run is tried again after a failure."
        ),
    ]
    site: Annotated[str | None, Meta(description="The site or host; null for a run that was put back.")]
    until: Annotated[str, Meta(description="When it goes on.", examples=[EXAMPLE_TIME])]
    message: Annotated[str, Meta(description="The reason in words.")]


class Summary(Struct, frozen=True, kw_only=True):
    """A run without its result, as the listing shows it."""

    id: Annotated[str, Meta(pattern=RUN_ID, examples=[EXAMPLE_ID])]
    status: RunStatus
    scraper: str
    version: Annotated[str | None, Meta(description="What ran; before that, what was asked for; null: the newest.")]
    digest: Annotated[
        str | None, Meta(description="Of the content that ran; null before that, and for a built-in scraper.")
    ]
    input: Annotated[Raw, OBJECT]
    exit_reason: Annotated[ExitReason | None, Meta(description="Why it ended; null while it has not.")]
    partial: Annotated[
        bool, Meta(description="It failed, and `result` has the records that the script yielded before.")
    ]
    error: RunError | None
    usage: Usage | None
    timing: Timing | None
    attempt: int
    created_at: Annotated[
        str | None,
        Meta(description="Null: the row is broken, and its time cannot be told.", examples=[EXAMPLE_TIME]),
    ]
    starts_at: Annotated[
        str | None,
        Meta(
            description="Of a queued run that was put back, for another attempt or until its site's turn: when it is "
            "due."
        ),
    ]
    started_at: str | None
    finished_at: str | None
    progress: Annotated[
        RunProgress | None,
        Meta(description="How far the script says that it is, about a second old; null if it does not tell."),
    ]
    waiting: Annotated[
        WaitDocument | None, Meta(description="What it waits for now, about a second old; null if it does not wait.")
    ]
    artifacts: list[ArtifactDocument]
    swept: Annotated[
        dict[str, str], Meta(description="When retention removed its `results`, `artifacts`, `html` or `logs`.")
    ]
    links: Links
    url: Annotated[str | None, also_called("input.url")] | UnsetType = UNSET
    error_message: Annotated[str | None, also_called("error.message")] | UnsetType = UNSET
    updated_at: (
        Annotated[str | None, also_called("finished_at, started_at or created_at, the last that is set")] | UnsetType
    ) = UNSET


class RunDocument(Summary, frozen=True, kw_only=True):
    """A run."""

    result: Annotated[
        Raw,
        Meta(
            description="What the scraper returned; null before the end and for a skip. Of a failed run: the records "
            "that the script yielded before, or null."
        ),
    ]


class RunDocuments(Struct, frozen=True, kw_only=True):
    """Several runs that have all ended, each saying how."""

    runs: list[RunDocument]


class RunPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the listing, newest first."""

    runs: list[Summary]
    next_cursor: Annotated[str | None, NEXT]


class LogsDocument(Struct, frozen=True, kw_only=True):
    """What the last recorded attempt wrote."""

    id: str
    lines: tuple[LogLine, ...]
    cut: Annotated[bool, Meta(description="Whether lines beyond the scraper's log limit were dropped.")]


def settle(run: Run, outcome: Outcome) -> Run:
    """The run with this final outcome applied."""
    return replace(
        run,
        status=status_of(outcome.exit_reason),
        exit_reason=outcome.exit_reason,
        attempt=outcome.attempt,
        resolved=outcome.scraper or run.resolved,
        result=outcome.result,
        result_key=outcome.result_key,
        result_bytes=outcome.result_bytes,
        error=outcome.error,
        usage=outcome.usage,
        timing=outcome.timing,
        fetches=outcome.fetches,
        artifacts=outcome.artifacts,
        progress=outcome.progress,
        worker_id=outcome.worker_id,
        started_at=outcome.started_at or None,
        finished_at=outcome.finished_at or None,
    )


def handle(run: Run) -> Handle:
    """An unfinished run: its id, status and links."""
    return Handle(id=run.id, status=run.status, links=links(run.id))


def whole(run: Run, *, also: bool = False) -> RunDocument:
    """A run with its result; with `also`, its other names as well. A call that waits is answered without them."""
    return _fill(RunDocument, run, result=_NULL if run.result is None else run.result, **_more(run, also))


def summary(run: Run, *, also: bool = False) -> Summary:
    """A run without its result."""
    return _fill(Summary, run, **_more(run, also))


def _more(run: Run, also: bool) -> dict[str, Any]:
    return alternatives(RUN, run, possible_instant) if also else {}


Shown = TypeVar("Shown", bound=Summary)


def _fill(kind: type[Shown], run: Run, **more: Any) -> Shown:
    scraper, version, digest = what_ran(run)
    return kind(
        id=run.id,
        status=run.status,
        scraper=scraper,
        version=version,
        digest=digest,
        input=run.input,
        exit_reason=run.exit_reason,
        partial=run.partial,
        error=run.error,
        usage=run.usage,
        timing=run.timing,
        attempt=run.attempt,
        created_at=possible_instant(run.created_at),
        starts_at=instant(run.not_before) if run.status is RunStatus.QUEUED else None,
        started_at=instant(run.started_at),
        finished_at=instant(run.finished_at),
        progress=run.progress,
        waiting=_waiting(run),
        artifacts=[artifact(run.id, kept) for kept in run.artifacts],
        swept={kind: instant(at) for kind, at in run.swept.items()},
        links=links(run.id),
        **more,
    )


def _waiting(run: Run) -> WaitDocument | None:
    """None for a wait that is over, and for one of a run that was put back for another time."""
    wait = run.waiting
    if wait is None or run.status.is_final or wait.until <= time.time():
        return None
    if run.status is RunStatus.QUEUED and run.not_before != wait.until:
        return None
    return WaitDocument(reason=wait.reason, site=wait.site or None, until=instant(wait.until), message=wait.message)


def what_ran(run: Run) -> tuple[str, str | None, str | None]:
    """The scraper, its version and content digest; before it ran, what was requested."""
    asked_id, _, asked_version = run.scraper.partition("@")
    ran = run.resolved
    if ran is None:
        return asked_id, asked_version or None, None
    return asked_id, ran.version, ran.digest or None


def artifact(run_id: str, kept: Artifact) -> ArtifactDocument:
    """One artifact, without its blob key."""
    href = f"/api/scrape/{run_id}/artifacts/{quote(kept.name, safe='')}"
    return ArtifactDocument(name=kept.name, content_type=kept.content_type, size=kept.size, href=href)


def possible_instant(seconds: float) -> str | None:
    """As `instant`; None for a number that is no time, so that one broken row does not break a list."""
    try:
        return instant(seconds)
    except (OverflowError, OSError, ValueError):
        return None


def encode(document: Any) -> bytes:
    """Encode as JSON, in the dialect of the request; Raw parts are embedded unchanged."""
    return _encoder.encode(dialects.current().shown(document))


def ended_badly(run: Run) -> bool:
    """Whether a waiting caller gets a problem instead of the document."""
    return run.status is not RunStatus.SUCCEEDED


def exit_reason(run: Run) -> ExitReason:
    """Why a final run ended."""
    return run.exit_reason or ExitReason.INTERNAL_ERROR
