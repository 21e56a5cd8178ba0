"""`GET /api/scrape/{id}/events`: a run's life as server-sent events: `status`, `log`, `progress`, `fetch`, `waiting`,
then one `end`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from scrapeyard.background import Background
from scrapeyard.errors import QueueUnavailable
from scrapeyard.gateway.auth.owned import RunId
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.runs.answers import Lookup
from scrapeyard.gateway.runs.documents import encode
from scrapeyard.gateway.runs.waiting import Call, Waiters
from scrapeyard.model import Run
from scrapeyard.queues import messages as channels
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.runs import RunStore

KEEP_ALIVE_SECONDS = 15.0
MAX_BEHIND = 1000
"""Messages buffered for a slow reader; beyond that the oldest are dropped."""
LISTEN_SECONDS = 2.0
DAY_SECONDS = 86_400.0
KINDS = frozenset({"log", "status", "fetch", "progress", "waiting"})


class RunStream:
    """Streams one run. If it has already ended, the recorded logs are replayed."""

    def __init__(self, queue: Queue, runs: RunStore, lookup: Lookup, waiters: Waiters) -> None:
        self._queue = queue
        self._runs = runs
        self._lookup = lookup
        self._waiters = waiters

    async def events(self, run_id: str) -> AsyncGenerator[bytes]:
        """Yield chunks of an event stream. Raises NotFound, or Refusal if too many wait, before the first chunk.

        Earlier output is replayed only if the run has already ended; `/logs` has all of it afterwards.
        """
        run = await self._lookup.get(run_id)
        if run.status.is_final:
            async for piece in self._replay(run):
                yield piece
            return
        async with AsyncExitStack() as stack:
            messages = await self._listen(stack, run_id)
            run = await self._lookup.get(run_id)
            with self._waiters.join([run]) as call:
                async for piece in self._follow(run, call, messages):
                    yield piece

    async def _listen(self, stack: AsyncExitStack, run_id: str) -> AsyncIterator[bytes]:
        """Subscribe to events. Raises QueueUnavailable without a broker: waiting would look like a silent run."""
        try:
            async with asyncio.timeout(LISTEN_SECONDS):
                return await stack.enter_async_context(self._queue.listen(channels.events(run_id)))
        except TimeoutError:
            raise QueueUnavailable("the queue does not answer; `?wait=` on the run itself needs none") from None

    async def _replay(self, run: Run) -> AsyncIterator[bytes]:
        lines, _cut = await self._runs.logs(run.id)
        for line in lines:
            yield _event("log", encode({"type": "log", **msgspec.structs.asdict(line)}))
        yield _end(run)

    async def _follow(self, run: Run, call: Call, messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        yield _event("status", encode({"type": "status", "status": run.status}))
        heard: asyncio.Queue[bytes | None] = asyncio.Queue()
        background = Background()
        background.spawn(_pump(messages, heard), name="run-events")
        background.spawn(_finish(call, heard), name="run-end")
        try:
            while (piece := await _next(heard)) is not None:
                yield piece
        finally:
            await background.stop()
        if not call.open:
            yield _end(call.runs[0])


async def _next(heard: asyncio.Queue[bytes | None]) -> bytes | None:
    with suppress(TimeoutError):
        return await asyncio.wait_for(heard.get(), KEEP_ALIVE_SECONDS)
    return b": still here\n\n"


async def _pump(messages: AsyncIterator[bytes], heard: asyncio.Queue[bytes | None]) -> None:
    async for message in messages:
        if (event := _understood(message)) is None:
            continue
        if heard.qsize() >= MAX_BEHIND:
            heard.get_nowait()
        heard.put_nowait(event)


async def _finish(call: Call, heard: asyncio.Queue[bytes | None]) -> None:
    """Put None to end the stream: the run ended, the gateway stops, or a day is over and the reader must reconnect."""
    await call.wait(DAY_SECONDS)
    heard.put_nowait(None)


def _understood(message: bytes) -> bytes | None:
    """The event for the reader; None for unknown messages and for the end, which is sent from the outcome."""
    try:
        content = msgspec.json.decode(message)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("type") not in KINDS:
        return None
    return _event(content["type"], encode(content))


def _end(run: Run) -> bytes:
    document: dict[str, Any] = {"type": "end", "id": run.id, "status": run.status, "exit_reason": run.exit_reason}
    return _event("end", encode({**document, "error": run.error, "attempt": run.attempt}))


def _event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "event": {"type": "string", "enum": ["status", *sorted(KINDS - {"status"}), "end"]},
        "data": {"type": "string", "description": "A JSON object whose `type` is the event's name."},
    },
    "required": ["event", "data"],
}
_STREAM = {
    "description": "`status`, `log`, `progress`, `fetch` and `waiting` as they happen, then one `end`. Comments keep "
    "it alive.",
    "content": {"text/event-stream": {"schema": _EVENT}},
}


class EventStreamResponse(Response):
    """Gives the OpenAPI document the media type."""

    media_type = "text/event-stream"


router = APIRouter(tags=["runs"], route_class=AnswerRoute)


@router.get(
    "/api/scrape/{run_id}/events",
    summary="Follow a run",
    response_class=EventStreamResponse,
    responses={200: _STREAM, **refusals(404, 422, 429, 503)},
)
async def follow_run(gateway: GatewayDep, run_id: RunId) -> Response:
    """Server-sent events until the run ends. A run that has ended replays its recorded logs."""
    services = gateway.services
    events = RunStream(services.queue, services.store.runs, gateway.lookup, gateway.waiters).events(run_id)
    first = await anext(events)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_chain(first, events), headers=headers, media_type="text/event-stream")


async def _chain(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    async with aclosing(rest) as events:
        yield first
        async for event in events:
            yield event
