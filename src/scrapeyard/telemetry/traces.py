"""Sends one trace for each finished run to an OpenTelemetry collector, over OTLP/HTTP as JSON.

Traces are a convenience: a collector that is slow or away costs nothing but the traces.
"""

import asyncio
from collections import deque
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import version

import msgspec
from wreq import Client
from wreq import exceptions as wreq_errors

from scrapeyard.model import Outcome
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.spans import FinishedRun, document, new_traceparent, parse_traceparent

__all__ = ["TraceExporter", "new_traceparent", "parse_traceparent"]

MAX_WAITING = 4096
BATCH = 256
POST_SECONDS = 5.0
RETRY_SECONDS = 0.2
_RETRYABLE = (429, 502, 503, 504)
_ERRORS = tuple(getattr(wreq_errors, name) for name in wreq_errors.__all__)


class _NotSent(Exception):
    """The collector rejected it or did not answer. `again` says whether a retry may help."""

    def __init__(self, why: str, *, again: bool) -> None:
        super().__init__(why)
        self.again = again


class TraceExporter:
    """Collects finished runs and posts them every `every_seconds` to `{endpoint}/v1/traces`.

    Holds at most MAX_WAITING runs; beyond that the oldest are dropped and the drop is logged. A failed post is retried
    once, then its runs are dropped.
    """

    def __init__(self, endpoint: str, service: str, *, every_seconds: float = 1.0) -> None:
        self._url = endpoint.rstrip("/") + "/v1/traces"
        self._service = service
        self._every = every_seconds
        self._version = version("scrapeyard")
        self._waiting: deque[FinishedRun] = deque()
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

    def export(self, outcome: Outcome, traceparent: str, created_at: float, queued_at: float) -> None:
        """Take a finished run; returns at once and never raises. Times are Unix seconds."""
        slim = msgspec.structs.replace(outcome, result=None, logs=(), artifacts=())
        self._waiting.append(
            FinishedRun(outcome=slim, traceparent=traceparent, created_at=created_at, queued_at=queued_at)
        )
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self._dropped += 1

    async def _work(self) -> None:
        client = Client(timeout=timedelta(seconds=POST_SECONDS))
        try:
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), self._every)
                last = self._stopping.is_set()
                await self._send_all(client)
                if last:
                    return
        finally:
            client.close()

    async def _send_all(self, client: Client) -> None:
        if self._dropped:
            self._log.warning("traces.dropped", count=self._dropped)
            self._dropped = 0
        for _ in range(0, len(self._waiting), BATCH):
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            await self._send(client, batch)

    async def _send(self, client: Client, batch: list[FinishedRun]) -> None:
        body = msgspec.json.encode(document(self._service, self._version, batch))
        try:
            await self._post(client, body, tries=1 if self._unsent else 2)
        except _NotSent as error:
            if not self._unsent:
                self._log.warning("traces.not_sent", count=len(batch), error=str(error))
            self._unsent += len(batch)
        else:
            if self._unsent:
                self._log.info("traces.sent_again", lost=self._unsent)
            self._unsent = 0

    async def _post(self, client: Client, body: bytes, tries: int) -> None:
        try:
            await self._post_once(client, body)
        except _NotSent as error:
            if not error.again or tries <= 1:
                raise
            await asyncio.sleep(RETRY_SECONDS)
            await self._post(client, body, tries - 1)

    async def _post_once(self, client: Client, body: bytes) -> None:
        try:
            response = await client.post(self._url, body=body, headers={"content-type": "application/json"})
            status = response.status.as_int()
            await response.close()
        except _ERRORS as error:
            # the error text contains the URL, which may contain a password
            raise _NotSent(type(error).__name__, again=True) from None
        if not 200 <= status < 300:
            raise _NotSent(f"HTTP {status}", again=status in _RETRYABLE)
