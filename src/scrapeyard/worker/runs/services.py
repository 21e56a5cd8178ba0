"""What the worker does for one run: fetches, artifacts, a log that can be followed live."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.ledger import Ledger
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, HttpEngine
from scrapeyard.errors import FetchFailed
from scrapeyard.model import Artifact, Delivery, ExitReason, FetchTrace, LogLine
from scrapeyard.repository.trust.secrets import redact
from scrapeyard.worker.runs.environments import Prepared
from scrapeyard.worker.runs.waiting import SiteWait

MAX_TRACES = 200
MAX_TRIED = 20
"""Maximum fetches listed in `explain`; the totals count all of them."""
LIVE_AFTER = 0.1
"""Shorter runs publish no live events: nobody could have subscribed in time."""

Tell = Callable[[dict[str, Any]], Awaitable[None]]


class RunServices:
    """Serves one child, or one built-in, for the length of one run."""

    def __init__(
        self,
        delivery: Delivery,
        prepared: Prepared,
        *,
        engine: HttpEngine,
        blobs: Blobs,
        tell: Tell,
        pausing: SiteWait,
    ) -> None:
        self._delivery = delivery
        self._pausing = pausing
        self.ledger = Ledger(self._warn)
        self._caller = Caller(
            scraper=prepared.scraper,
            run_id=delivery.run_id,
            policy=delivery.fetching,
            pause=pausing.pause,
            ledger=self.ledger,
        )
        self._hidden = prepared.hidden
        self._engine = engine
        self._blobs = blobs
        self._began = time.perf_counter()
        self.logs: list[LogLine] = []
        self.traces: list[FetchTrace] = []
        self.artifacts: dict[str, Artifact] = {}
        self.fetches = 0
        self.bytes_received = 0
        self.fetch_ms = 0.0
        self.come_back: float | None = None
        """Seconds until the last site that was too busy has a turn; None if every site had one in time."""
        self._live = _Live(tell)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Through the engine, with a trace of how it went. Raises FetchFailed."""
        started = time.perf_counter()
        self.fetches += 1
        try:
            async with self._pausing.fetching():
                response = await self._engine.fetch(request, self._caller)
        except FetchFailed as error:
            tried = error.details.get("tried", ())
            self._trace(request, started, status=error.site_status, error=_words(error), tried=tried)
            if error.reason is ExitReason.FETCH_RATE_LIMITED:
                self.come_back = error.details.get("retry_after")
            raise
        self.bytes_received += response.bytes_received
        self._trace(
            request,
            started,
            status=response.status,
            final_url=response.url if response.url != request.url else "",
            size=response.bytes_received,
            way=response.way,
            age_seconds=response.age_seconds,
            tried=response.tried,
        )
        return response

    async def download(self, request: FetchRequest, name: str) -> FetchResponse:
        """As `fetch`, but streams the page into an artifact. Raises FetchFailed or BlobsUnavailable."""
        key = keys.artifact(self._delivery.run_id, self._delivery.attempt, name)

        async def keep(pieces: AsyncIterator[bytes], content_type: str) -> int:
            kind = content_type[:200] or "application/octet-stream"
            size = await self._blobs.put_stream(key, pieces, kind)
            self.artifacts[name] = Artifact(name=name, content_type=kind, size=size, key=key)
            return size

        page = await self.fetch(msgspec.structs.replace(request, keep=keep))
        if page.kept is not None or not 200 <= page.status < 300:
            return page
        kept = await keep(_whole(page.body), dict(page.headers).get("content-type", ""))  # from a replay engine
        return msgspec.structs.replace(page, body=b"", kept=kept)

    async def artifact(self, name: str, content_type: str, data: bytes) -> None:
        """Save an artifact. Raises BlobsUnavailable."""
        key = keys.artifact(self._delivery.run_id, self._delivery.attempt, name)
        await self._blobs.put(key, data, content_type)
        self.artifacts[name] = Artifact(name=name, content_type=content_type, size=len(data), key=key)

    def log(self, line: LogLine) -> None:
        """Add a line of the script, within the limits, without secret values."""
        if self._hidden:
            text, fields = redact(line.text, self._hidden), redact(line.fields, self._hidden)
            line = msgspec.structs.replace(line, text=text, fields=fields)
        self.logs.append(line)
        self._live.say({"type": "log", **msgspec.structs.asdict(line)})

    def _warn(self, words: str) -> None:
        """Add a line of the platform to the script's log."""
        at_ms = round((time.perf_counter() - self._began) * 1000, 2)
        self.log(LogLine(at_ms=at_ms, stream="log", text=words, level="warning", fields={"from": "budget"}))

    async def close(self) -> None:
        """The run is over: publish no more events and end its pauses."""
        await self._pausing.close()
        await self._live.stop()

    def _trace(
        self,
        request: FetchRequest,
        started: float,
        *,
        status: int | None,
        final_url: str = "",
        size: int = 0,
        error: str = "",
        way: str = "",
        age_seconds: float | None = None,
        tried: Sequence[dict[str, Any]] = (),
    ) -> None:
        ms = (time.perf_counter() - started) * 1000
        self.fetch_ms += ms
        trace = FetchTrace(
            url=redact(request.url, self._hidden)[:2000],
            method=request.method,
            status=status,
            final_url=redact(final_url, self._hidden)[:2000],
            bytes=size,
            ms=round(ms, 2),
            started_ms=round((started - self._began) * 1000, 2),
            error=redact(error, self._hidden)[:1000],
            way=way[:200],
            age_seconds=None if age_seconds is None else round(age_seconds, 1),
            tried=tuple(_bounded(redact(each, self._hidden)) for each in tried[:MAX_TRIED]),
        )
        if len(self.traces) < MAX_TRACES:
            self.traces.append(trace)
        self._live.say({"type": "fetch", **msgspec.structs.asdict(trace)})


def _words(error: FetchFailed) -> str:
    return f"{error.reason}: {error.message}"


def _bounded(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value[:500] if isinstance(value, str) else value for name, value in told.items()}


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body


class _Live:
    """Publishes events to subscribers a little later, without slowing the run. Bounded: a burst loses its middle."""

    def __init__(self, tell: Tell) -> None:
        self._report = tell
        self._waiting: list[dict[str, Any]] = []
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(LIVE_AFTER, self._begin)
        self._wake = asyncio.Event()

    def say(self, message: dict[str, Any]) -> None:
        if len(self._waiting) < 1000:
            self._waiting.append(message)
            self._wake.set()

    def _begin(self) -> None:
        self._waiting.insert(0, {"type": "status", "status": "running"})
        self._wake.set()
        self._task = self._loop.create_task(self._work())

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            messages, self._waiting = self._waiting, []
            for message in messages:
                await self._report(message)

    async def stop(self) -> None:
        self._timer.cancel()
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait((self._task,))
        for message in self._waiting:
            await self._report(message)
