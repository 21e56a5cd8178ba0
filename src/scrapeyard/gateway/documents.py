"""Runs as the API shows them. The one place where a run becomes JSON.

Results are JSON already and are passed on as bytes, never decoded; those in the blob store are streamed through.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Raw
from msgspec.structs import replace
from starlette.responses import Response, StreamingResponse

from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import NotFound
from scrapeyard.model import Artifact, ExitReason, Outcome, Run, RunError, RunStatus, status_of

JSON = "application/json"
_encoder = msgspec.json.Encoder()
_NULL = Raw(b"null")


def settle(run: Run, outcome: Outcome) -> Run:
    """The run as it stands once this final outcome is recorded."""
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
    """A run that goes on: its id, status and links."""
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
    """The scraper, its version and the digest of its content; before it ran, what was asked for."""
    asked_id, _, asked_version = run.scraper.partition("@")
    ran = run.resolved
    return {
        "scraper": asked_id,
        "version": ran.version if ran else asked_version or None,
        "digest": ran.digest or None if ran else None,
    }


def artifact(run_id: str, kept: Artifact) -> dict[str, Any]:
    """One artifact, without where the blob store holds it."""
    href = f"/api/scrape/{run_id}/artifacts/{quote(kept.name, safe='')}"
    return {"name": kept.name, "content_type": kept.content_type, "size": kept.size, "href": href}


def links(run_id: str) -> dict[str, str]:
    """Where the rest of a run is found."""
    here = f"/api/scrape/{run_id}"
    rest = {name: f"{here}/{name}" for name in ("logs", "events", "explain", "artifacts")}
    return {"self": here, **rest}


def instant(seconds: float | None) -> str | None:
    """Unix seconds as ISO 8601 in UTC, to the millisecond."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def answer(run: Run, blobs: Blobs, headers: dict[str, str] | None = None) -> Response:
    """The run whole, as a 200."""
    if not _in_blobs(run):
        return Response(encode(_whole(run)), 200, headers, JSON)
    return StreamingResponse(await _first(_pieces(run, blobs)), 200, headers, JSON)


async def answer_all(runs: Sequence[Run], blobs: Blobs, headers: dict[str, str] | None = None) -> Response:
    """Several runs whole, as a 200."""
    if not any(map(_in_blobs, runs)):
        return Response(encode({"runs": [_whole(run) for run in runs]}), 200, headers, JSON)
    return StreamingResponse(await _first(_all_pieces(runs, blobs)), 200, headers, JSON)


def encode(document: Any) -> bytes:
    """JSON bytes; embeds Raw parts as they are."""
    return _encoder.encode(document)


def _in_blobs(run: Run) -> bool:
    return bool(run.result_key) and run.result is None


def _whole(run: Run) -> dict[str, Any]:
    return {**summary(run), "result": run.result if run.result is not None else _NULL}


async def _all_pieces(runs: Sequence[Run], blobs: Blobs) -> AsyncGenerator[bytes]:
    yield b'{"runs":['
    for index, run in enumerate(runs):
        if index:
            yield b","
        if not _in_blobs(run):
            yield encode(_whole(run))
            continue
        async with aclosing(_pieces(run, blobs)) as pieces:
            async for piece in pieces:
                yield piece
    yield b"]}"


async def _pieces(run: Run, blobs: Blobs) -> AsyncGenerator[bytes]:
    stream = blobs.stream(run.result_key)
    try:
        first = await anext(stream, b"null")
    except NotFound:
        yield encode(_whole(_without_result(run)))
        return
    yield encode(summary(run))[:-1] + b',"result":' + first
    async for piece in stream:
        yield piece
    yield b"}"


def _without_result(run: Run) -> Run:
    gone = RunError(message="the result is no longer in the blob store", type="ResultGone")
    return replace(run, error=run.error or gone)


async def _first(pieces: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, the first already at hand: a blob store that is away is a 503, not a broken answer."""
    first = await anext(pieces)

    async def chained() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return chained()


def ended_badly(run: Run) -> bool:
    """Whether a waiting caller gets a problem instead of the document."""
    return run.status is not RunStatus.SUCCEEDED


def exit_reason(run: Run) -> ExitReason:
    """Why a final run ended."""
    return run.exit_reason or ExitReason.INTERNAL_ERROR
