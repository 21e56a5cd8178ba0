"""Sends spans to an OpenTelemetry collector. docs/design/traces.md tells why this is not the SDK.

Traces are a convenience: a collector that is slow or away costs nothing but the traces.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from scrapeyard.model import Outcome
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.otlp import Collector, NotSent
from scrapeyard.telemetry.spans import (
    CLIENT,
    SERVER,
    Attributes,
    FinishedRun,
    FinishedSpan,
    TraceParent,
    item_trace,
    job_span,
    parse_traceparent,
    run_span_id,
    spans_of,
)

MAX_WAITING = 4096
BATCH = 256
POST_SECONDS = 5.0
RETRY_SECONDS = 0.2


class TraceExporter:
    """Collects what has finished and sends it every `every_seconds`. What is not sampled is not taken.

    Holds at most MAX_WAITING runs and spans; beyond that the oldest are dropped and the drop is logged. What cannot be
    sent is tried once more, then dropped.
    """

    def __init__(self, collector: Collector, *, every_seconds: float = 1.0) -> None:
        self._collector = collector
        self._every = every_seconds
        self._waiting: deque[FinishedRun | FinishedSpan] = deque()
        self._dropped = 0
        self._unsent = 0
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._log = get_log("traces")

    def start(self) -> None:
        """Start sending."""
        if self._task is None:
            self._stopping.clear()
            self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Send what is waiting, for a few seconds at most, and stop. May be called twice."""
        task, self._task = self._task, None
        if task is not None:
            self._stopping.set()
            await asyncio.wait((task,), timeout=POST_SECONDS)
            task.cancel()
            await asyncio.wait((task,))
            await self._collector.close()

    def run_ended(self, outcome: Outcome, traceparent: str, queued_at: float) -> None:
        """Take a finished attempt; returns at once and never raises. Times are Unix seconds."""
        parent = parse_traceparent(traceparent)
        if parent is not None and parent.sampled:
            slim = msgspec.structs.replace(outcome, result=None, logs=(), artifacts=())
            self._add(FinishedRun(outcome=slim, parent=parent, queued_at=queued_at))

    def item_ended(self, outcome: Outcome, job: TraceParent) -> None:
        """Take a finished attempt at an item of a job whose call has this span. As `run_ended`."""
        slim = msgspec.structs.replace(outcome, result=None, logs=(), artifacts=())
        self._add(FinishedRun(outcome=slim, parent=item_trace(outcome.run_id), queued_at=outcome.started_at, job=job))

    def items_recorded(self, written: Iterable[tuple[str, int]], start: float, end: float) -> None:
        """Take note that outcomes of items (name, attempt) were written to the store."""
        for name, attempt in written:
            own = item_trace(name).child()
            ids = own.trace_id, own.span_id, run_span_id(name, attempt)
            self._span("store", *ids, start, end, kind=CLIENT, error=None)

    def job_created(self, traceparent: str, job_id: str, start: float, end: float) -> None:
        """Take a call that created a job."""
        caller, own = parse_traceparent(traceparent), job_span(traceparent, job_id)
        if caller is not None and own is not None:
            ids = own.trace_id, own.span_id, caller.span_id
            self._span("create job", *ids, start, end, kind=SERVER, attributes={"job.id": job_id}, error=None)

    def call_ended(self, own: TraceParent, caller: str, start: float, end: float, *, status: int, runs: int) -> None:
        """Take a call that a gateway has answered. `own` is its span, `caller` the id of the caller's."""
        told: Attributes = {"http.request.method": "POST", "http.response.status_code": status, "runs": runs}
        error = f"HTTP {status}" if status >= 500 else None
        self._span("call", own.trace_id, own.span_id, caller, start, end, kind=SERVER, attributes=told, error=error)

    def recorded(self, written: Iterable[tuple[str, str, int]], start: float, end: float) -> None:
        """Take note that outcomes (traceparent, run, attempt) were written to the store."""
        for traceparent, run_id, attempt in written:
            parent = parse_traceparent(traceparent)
            if parent is not None and parent.sampled:
                own = parent.child().span_id
                root = run_span_id(run_id, attempt)
                self._span("store", parent.trace_id, own, root, start, end, kind=CLIENT, error=None)

    def _span(  # noqa: PLR0917 - as a span tells them
        self,
        name: str,
        trace_id: str,
        span_id: str,
        parent: str,
        start: float,
        end: float,
        *,
        kind: int,
        error: str | None,
        attributes: Attributes | None = None,
    ) -> None:
        self._add(
            FinishedSpan(
                name=name,
                trace_id=trace_id,
                span_id=span_id,
                parent=parent,
                start=start,
                end=end,
                kind=kind,
                attributes=attributes or {},
                error=error,
            )
        )

    def _add(self, finished: FinishedRun | FinishedSpan) -> None:
        self._waiting.append(finished)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self._dropped += 1

    async def _work(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._stopping.wait()
            last = self._stopping.is_set()
            await self._send_all()
            if last:
                return

    async def _send_all(self) -> None:
        if self._dropped:
            self._log.warning("traces.dropped", count=self._dropped)
            self._dropped = 0
        for _ in range(0, len(self._waiting), BATCH):
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            await self._send(batch)

    async def _send(self, batch: Sequence[FinishedRun | FinishedSpan]) -> None:
        spans = [span for each in batch for span in (spans_of(each) if isinstance(each, FinishedRun) else (each,))]
        try:
            await self._try(spans, tries=1 if self._unsent else 2)
        except NotSent as error:
            if not self._unsent:
                self._log.warning("traces.not_sent", count=len(batch), error=str(error))
            self._unsent += len(batch)
        else:
            if self._unsent:
                self._log.info("traces.sent_again", lost=self._unsent)
            self._unsent = 0

    async def _try(self, spans: Sequence[FinishedSpan], tries: int) -> None:
        try:
            await self._collector.send(spans)
        except NotSent as error:
            if not error.again or tries <= 1:
                raise
            await asyncio.sleep(RETRY_SECONDS)
            await self._try(spans, tries - 1)
