"""Runs as the API shows them: the one place where a run becomes JSON. Independent of HTTP, so that a run without a
server is shown in the same way."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from scrapeyard.model import Artifact, ExitReason, Outcome, Run, RunStatus, status_of

JSON = "application/json"
_encoder = msgspec.json.Encoder()


def settle(run: Run, outcome: Outcome) -> Run:
    """The run with this final outcome applied."""
    return replace(
        run,
        status=status_of(outcome.exit_reason),
        exit_reason=outcome.exit_reason,
        attempt=outcome.attempt,
        resolved=outcome.scraper,
        result=outcome.result,
        result_key=outcome.result_key,
        result_bytes=outcome.result_bytes,
        error=outcome.error,
        usage=outcome.usage,
        timing=outcome.timing,
        fetches=outcome.fetches,
        artifacts=outcome.artifacts,
        worker_id=outcome.worker_id,
        started_at=outcome.started_at or None,
        finished_at=outcome.finished_at or None,
    )


def handle(run: Run) -> dict[str, Any]:
    """An unfinished run: its id, status and links."""
    return {"id": run.id, "status": run.status, "links": links(run.id)}


def summary(run: Run) -> dict[str, Any]:
    """A run without its result."""
    return {
        "id": run.id,
        "status": run.status,
        **what_ran(run),
        "input": run.input,
        "exit_reason": run.exit_reason,
        "error": run.error,
        "usage": run.usage,
        "timing": run.timing,
        "attempt": run.attempt,
        "created_at": instant(run.created_at),
        "starts_at": instant(run.not_before) if run.status is RunStatus.QUEUED else None,
        "started_at": instant(run.started_at),
        "finished_at": instant(run.finished_at),
        "artifacts": [artifact(run.id, kept) for kept in run.artifacts],
        "links": links(run.id),
    }


def what_ran(run: Run) -> dict[str, str | None]:
    """The scraper, its version and content digest; before it ran, what was requested."""
    asked_id, _, asked_version = run.scraper.partition("@")
    ran = run.resolved
    return {
        "scraper": asked_id,
        "version": ran.version if ran else asked_version or None,
        "digest": ran.digest or None if ran else None,
    }


def artifact(run_id: str, kept: Artifact) -> dict[str, Any]:
    """One artifact, without its blob key."""
    href = f"/api/scrape/{run_id}/artifacts/{quote(kept.name, safe='')}"
    return {"name": kept.name, "content_type": kept.content_type, "size": kept.size, "href": href}


def links(run_id: str) -> dict[str, str]:
    """Links to the rest of a run."""
    here = f"/api/scrape/{run_id}"
    rest = {name: f"{here}/{name}" for name in ("logs", "events", "explain", "artifacts")}
    return {"self": here, **rest}


def instant(seconds: float | None) -> str | None:
    """Unix seconds as ISO 8601 in UTC, to the millisecond."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encode(document: Any) -> bytes:
    """Encode as JSON; Raw parts are embedded unchanged."""
    return _encoder.encode(document)


def ended_badly(run: Run) -> bool:
    """Whether a waiting caller gets a problem instead of the document."""
    return run.status is not RunStatus.SUCCEEDED


def exit_reason(run: Run) -> ExitReason:
    """Why a final run ended."""
    return run.exit_reason or ExitReason.INTERNAL_ERROR
