"""What happened as spans, in the shape that OTLP collectors read.

call                    by the gateway, from the request to the answer; continues the caller's trace
├── queue               from when the run was handed to the queue to when a worker began
└── run                 by the worker, one for each attempt
    ├── child start
    ├── child           the script
    │   ├── fetch       one for each request to the web
    │   └── browser …   one for each step in a browser
    └── store           the write of the outcome

item                    by the worker, one for each attempt at an item of a job that is sampled; links to the job's call
├── child start, child  as above
└── store               the write of the part with its outcome

Spans are made after the fact, from the times that are measured anyway. The id of a run's span follows from the run, so
that the process that writes the outcome knows it too.
"""

import random
import re
import secrets
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from scrapeyard.model import FetchTrace, Outcome, StepTrace

MAX_FETCHES = 256
"""Maximum fetch spans per run; further fetches are counted on the run's span. The same for steps in a browser."""

INTERNAL, SERVER, CLIENT, CONSUMER = 1, 2, 3, 5
_OK, _ERROR = 1, 2
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]{0,400})?")

Attributes = Mapping[str, str | int | float | bool | None]


class TraceParent(Struct, frozen=True):
    """A W3C `traceparent`."""

    trace_id: str
    span_id: str
    sampled: bool

    def header(self) -> str:
        """As it is sent on."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"

    def child(self) -> "TraceParent":
        """A new span in the same trace."""
        return TraceParent(self.trace_id, _random_id(8), self.sampled)


class FinishedRun(Struct, frozen=True, kw_only=True):
    """What is needed to build the spans of an attempt."""

    outcome: Outcome
    parent: TraceParent
    queued_at: float
    job: TraceParent | None = None
    """Of an item: the call that created its job."""


class FinishedSpan(Struct, frozen=True, kw_only=True):
    """One span that is known whole. `error` is None for success, empty if unknown."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    start: float
    end: float
    kind: int = INTERNAL
    attributes: Attributes = {}
    error: str | None = ""
    link: TraceParent | None = None
    """A span of another trace that it belongs to."""


def parse_traceparent(header: str) -> TraceParent | None:
    """A `traceparent`; None if the header is invalid and a new trace must begin."""
    match = _TRACEPARENT.fullmatch(header.strip()) if len(header) <= 512 else None
    if match is None or match[1] == "ff" or (match[1] == "00" and match[5]):
        return None
    if not int(match[2], 16) or not int(match[3], 16):
        return None
    return TraceParent(match[2], match[3], bool(int(match[4], 16) & 1))


def trace_id(traceparent: str) -> str:
    """The id of its trace, for logs; empty if it is none."""
    parent = parse_traceparent(traceparent)
    return parent.trace_id if parent is not None else ""


def new_traceparent(share: float = 1.0) -> str:
    """The header of a trace that begins here. `share` of them are sampled."""
    sampled = share > 0 and (share >= 1 or random.random() < share)  # noqa: S311 - chooses what is shown
    return TraceParent(_random_id(16), _random_id(8), sampled).header()


def run_span_id(run_id: str, attempt: int) -> str:
    """The id of the span of an attempt."""
    return blake2b(f"{run_id}/{attempt}".encode(), digest_size=8).hexdigest()


FIRST_ITEMS = 10
"""Items at the beginning of a traced job that are always traced."""


def item_traced(job: str, item: int, share: float) -> bool:
    """Whether an item of a traced job is traced: the same for all its attempts, on every worker."""
    if item < FIRST_ITEMS or share >= 1:
        return True
    return int.from_bytes(blake2b(f"{job}/{item}".encode(), digest_size=4).digest()) < share * 2**32


def job_span(traceparent: str, job_id: str) -> TraceParent | None:
    """The span of the call that created a job; None if the call is not traced."""
    caller = parse_traceparent(traceparent)
    return TraceParent(caller.trace_id, run_span_id(job_id, 0), True) if caller is not None and caller.sampled else None


def item_trace(name: str) -> TraceParent:
    """The trace of an item, which has all its attempts."""
    return TraceParent(blake2b(name.encode(), digest_size=16).hexdigest(), "", True)


def spans_of(run: FinishedRun) -> list[FinishedSpan]:
    """The spans of an attempt: the queue's and the run's, then those under it."""
    outcome, timing, parent = run.outcome, run.outcome.timing, run.parent
    trace_id, root = parent.trace_id, run_span_id(outcome.run_id, outcome.attempt)
    began = outcome.started_at or run.queued_at + timing.queue_ms / 1000
    loaded = began + (timing.resolve_ms + timing.environment_ms) / 1000
    ready = loaded + timing.child_start_ms / 1000

    def span(name: str, start: float, end: float, under: str, own: str = "", **more: Any) -> FinishedSpan:
        return FinishedSpan(
            name=name, trace_id=trace_id, span_id=own or _random_id(8), parent=under, start=start, end=end, **more
        )

    child = span("child", ready, ready + timing.script_ms / 1000, root)
    spans = [
        *([span("queue", run.queued_at, began, parent.span_id, kind=CONSUMER)] if run.job is None else ()),
        span(
            "run" if run.job is None else "item",
            *(began, outcome.finished_at, parent.span_id, root),
            link=run.job,
            **_end_of(outcome),
        ),
        span("child start", loaded, ready, root, attributes={"forked_ahead": timing.forked_ahead}),
        child,
    ]
    for fetch in outcome.fetches[:MAX_FETCHES]:
        start = ready + fetch.started_ms / 1000
        spans.append(span("fetch", start, start + fetch.ms / 1000, child.span_id, kind=CLIENT, **_end_of_fetch(fetch)))
    for step in outcome.steps[:MAX_FETCHES]:
        start = ready + step.started_ms / 1000
        spans.append(span(f"browser {step.name}", start, start + step.ms / 1000, child.span_id, **_end_of_step(step)))
    return spans


def document(service: str, version: str, spans: Iterable[FinishedSpan]) -> dict[str, Any]:
    """The body of one POST to a collector, as JSON."""
    resource = {"attributes": _attributes({"service.name": service, "service.version": version})}
    scope = {"scope": {"name": "scrapeyard", "version": version}, "spans": [_as_json(span) for span in spans]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def nanoseconds(seconds: float) -> int:
    """Unix time as OTLP counts it."""
    return max(0, round(seconds * 1_000_000) * 1000)


def _as_json(span: FinishedSpan) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": span.kind,
        # OTLP's JSON writes 64-bit numbers as text
        "startTimeUnixNano": str(nanoseconds(span.start)),
        "endTimeUnixNano": str(nanoseconds(max(span.start, span.end))),
        "attributes": _attributes(span.attributes),
        "status": _status(span.error),
    }
    if span.link is not None:
        shown["links"] = [{"traceId": span.link.trace_id, "spanId": span.link.span_id}]
    return shown | {"parentSpanId": span.parent} if span.parent else shown


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


def _end_of_step(step: StepTrace) -> dict[str, Any]:
    return {"error": step.error[:500] or None}


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
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _random_id(size: int) -> str:
    # an id of zeros would mean "none"
    return (secrets.token_bytes(size - 1) + b"\x01").hex()
