"""One finished run as spans, in the JSON that OTLP collectors read.

run                 from when the caller asked to when the attempt ended; continues the caller's trace
├── queue           from when it was handed to the queue to when a worker began
├── child start
└── script
    └── fetch       one for each request to the web
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from scrapeyard.model import FetchTrace, Outcome

MAX_FETCHES = 256
"""Maximum fetch spans per run; further fetches are counted on the run's span."""

_INTERNAL, _SERVER, _CLIENT = 1, 2, 3
_OK, _ERROR = 1, 2
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[\x21-\x7e]{0,400})?")

Attributes = Mapping[str, str | int | float | bool | None]


class FinishedRun(Struct, frozen=True, kw_only=True):
    """What is needed to build the spans of a run."""

    outcome: Outcome
    traceparent: str
    created_at: float
    queued_at: float


def parse_traceparent(header: str) -> tuple[str, str] | None:
    """(trace id, span id) of a W3C `traceparent`; None if the header is invalid and a new trace must begin."""
    match = _TRACEPARENT.fullmatch(header.strip()) if len(header) <= 512 else None
    if match is None or match[1] == "ff" or (match[1] == "00" and match[4]):
        return None
    trace_id, span_id = match[2], match[3]
    return (trace_id, span_id) if int(trace_id, 16) and int(span_id, 16) else None


def new_traceparent() -> str:
    """The header of a trace that begins here, sampled."""
    return f"00-{_random_id(16)}-{_random_id(8)}-01"


def spans_of(run: FinishedRun) -> list[dict[str, Any]]:
    """The run's span first, then those under it."""
    outcome, timing = run.outcome, run.outcome.timing
    trace_id, caller = parse_traceparent(run.traceparent) or (_random_id(16), "")
    began = outcome.started_at or run.queued_at + timing.queue_ms / 1000
    loaded = began + (timing.resolve_ms + timing.environment_ms) / 1000
    ready = loaded + timing.child_start_ms / 1000
    draw = _Trace(trace_id)
    root = draw.span("run", run.created_at, outcome.finished_at, parent=caller, kind=_SERVER, **_end_of(outcome))
    draw.span("queue", run.queued_at, began, parent=root)
    draw.span("child start", loaded, ready, parent=root, attributes={"forked_ahead": timing.forked_ahead})
    script = draw.span("script", ready, ready + timing.script_ms / 1000, parent=root)
    for fetch in outcome.fetches[:MAX_FETCHES]:
        start = ready + fetch.started_ms / 1000
        draw.span("fetch", start, start + fetch.ms / 1000, parent=script, kind=_CLIENT, **_end_of_fetch(fetch))
    return draw.spans


def document(service: str, version: str, runs: Iterable[FinishedRun]) -> dict[str, Any]:
    """The body of one POST to a collector."""
    spans = [span for run in runs for span in spans_of(run)]
    resource = {"attributes": _attributes({"service.name": service, "service.version": version})}
    scope = {"scope": {"name": "scrapeyard", "version": version}, "spans": spans}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


class _Trace:
    def __init__(self, trace_id: str) -> None:
        self._trace_id = trace_id
        self.spans: list[dict[str, Any]] = []

    def span(
        self,
        name: str,
        start: float,
        end: float,
        *,
        parent: str,
        kind: int = _INTERNAL,
        attributes: Attributes | None = None,
        error: str | None = "",
    ) -> str:
        """Add a span; returns its id. `error` is None for success, empty if unknown."""
        span_id = _random_id(8)
        span = {
            "traceId": self._trace_id,
            "spanId": span_id,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": _nanoseconds(start),
            "endTimeUnixNano": _nanoseconds(max(start, end)),
            "attributes": _attributes(attributes or {}),
            "status": _status(error),
        }
        self.spans.append(span | {"parentSpanId": parent} if parent else span)
        return span_id


def _end_of(outcome: Outcome) -> dict[str, Any]:
    attributes: Attributes = {
        "run.id": outcome.run_id,
        "scraper": str(outcome.scraper) if outcome.scraper else None,
        "exit_reason": outcome.exit_reason.value,
        "attempt": outcome.attempt,
        "worker": outcome.worker_id,
        "fetches": outcome.usage.fetches,
        "fetches.not_shown": max(0, len(outcome.fetches) - MAX_FETCHES),
    }
    good = outcome.exit_reason.is_good
    message = outcome.error.message[:500] if outcome.error else ""
    return {"attributes": attributes, "error": None if good else message or outcome.exit_reason.value}


def _end_of_fetch(fetch: FetchTrace) -> dict[str, Any]:
    attributes: Attributes = {
        "http.request.method": fetch.method,
        "http.response.status_code": fetch.status,
        "http.response.body.size": fetch.bytes,
        "url.full": _without_login(fetch.url)[:2000],
    }
    return {"attributes": attributes, "error": fetch.error[:500] or None}


def _without_login(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _status(error: str | None) -> dict[str, Any]:
    if error is None:
        return {"code": _OK}
    return {"code": _ERROR, "message": error} if error else {}


def _attributes(values: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: str | int | float | bool | None) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        # OTLP's JSON writes 64-bit numbers as text
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _nanoseconds(seconds: float) -> str:
    return str(max(0, round(seconds * 1_000_000) * 1000))


def _random_id(size: int) -> str:
    # an id of zeros would mean "none"
    return (secrets.token_bytes(size - 1) + b"\x01").hex()
