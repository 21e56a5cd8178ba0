"""`GET /api/scrape/{id}/events`: a run's life as server-sent events: `status`, `log`, `progress`, `fetch`, `waiting`,
then one `end`."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from scrapeyard.background import Background
from scrapeyard.errors import NotFound, QueueUnavailable, Unavailable
from scrapeyard.gateway.auth.owned import RunId
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep, LastEventId
from scrapeyard.gateway.runs.answers import Lookup
from scrapeyard.gateway.runs.documents import encode
from scrapeyard.gateway.runs.waiting import Call, Waiters
from scrapeyard.model import Replay, Run
from scrapeyard.queues import messages as channels
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.runs import RunStore

KEEP_ALIVE_SECONDS = 15.0
MAX_BEHIND = 1000
"""Messages buffered for a slow reader; beyond that the oldest are dropped."""
LISTEN_SECONDS = 2.0
DAY_SECONDS = 86_400.0
REPLAY_SECONDS = 2.0
"""How long lines wait for earlier ones, which the run's worker sends again."""
KINDS = frozenset({"log", "status", "fetch", "progress", "waiting"})


class RunStream:
    """Streams one run, from its first line on. If it has already ended, the recorded logs are replayed."""

    def __init__(self, queue: Queue, runs: RunStore, lookup: Lookup, waiters: Waiters) -> None:
        self._queue = queue
        self._runs = runs
        self._lookup = lookup
        self._waiters = waiters

    async def events(self, run_id: str, after: int = 0) -> AsyncGenerator[bytes]:
        """Yield chunks of an event stream, without the lines up to the id `after`. Raises NotFound, or Refusal if too
        many wait, before the first chunk.

        A running run's worker sends the lines from before; if it does not answer, they are left out.
        """
        run = await self._lookup.get(run_id)
        if run.status.is_final:
            async for piece in self._replay(run, after):
                yield piece
            return
        async with AsyncExitStack() as stack:
            messages = await self._listen(stack, run_id)
            with suppress(Unavailable):
                await self._queue.send(channels.SIGNALS, channels.encode(Replay(run_id=run_id)))
            run = await self._lookup.get(run_id)
            with self._waiters.join([run]) as call:
                async for piece in self._follow(run, call, messages, _Lines(after)):
                    yield piece

    async def _listen(self, stack: AsyncExitStack, run_id: str) -> AsyncIterator[bytes]:
        """Subscribe to events. Raises QueueUnavailable without a broker: waiting would look like a silent run."""
        try:
            async with asyncio.timeout(LISTEN_SECONDS):
                return await stack.enter_async_context(self._queue.listen(channels.events(run_id)))
        except TimeoutError:
            raise QueueUnavailable("the queue does not answer; `?wait=` on the run itself needs none") from None

    async def _replay(self, run: Run, after: int) -> AsyncIterator[bytes]:
        lines, _cut = await self._runs.logs(run.id)
        for number, line in enumerate(lines, 1):
            if (id_ := channels.line_id(run.attempt, number)) > after:
                yield _event("log", encode({"type": "log", **msgspec.structs.asdict(line)}), id_)
        yield _end(run)

    async def _follow(
        self, run: Run, call: Call, messages: AsyncIterator[bytes], lines: "_Lines"
    ) -> AsyncIterator[bytes]:
        yield _event("status", encode({"type": "status", "status": run.status}))
        heard: asyncio.Queue[bytes | None] = asyncio.Queue()
        background = Background()
        background.spawn(_pump(messages, lines, heard), name="run-events")
        background.spawn(_release(lines, heard), name="run-lines")
        background.spawn(_finish(call, heard), name="run-end")
        try:
            while (piece := await _next(heard)) is not None:
                yield piece
        finally:
            await background.stop()
        if not call.open:
            async for piece in self._rest(call.runs[0], lines.last):
                yield piece

    async def _rest(self, run: Run, after: int) -> AsyncIterator[bytes]:
        """The lines that came with the end or were lost on the way, and the end."""
        with suppress(Unavailable, NotFound):
            recorded = await self._lookup.get(run.id)
            if recorded.status.is_final:
                async for piece in self._replay(recorded, after):
                    yield piece
                return
        yield _end(run)


class _Lines:
    """Brings log lines into order: those from before come first, and none comes twice."""

    def __init__(self, after: int) -> None:
        self.last = after
        """The id of the last line that was told."""
        self._held: deque[tuple[int, dict[str, Any]]] | None = deque(maxlen=MAX_BEHIND)
        """Lines that wait for earlier ones, the newest; None when those have come."""

    def take(self, content: dict[str, Any]) -> bytes:
        """Events for the reader, one after the other. Empty if there is nothing to tell yet."""
        if content["type"] == "logs":
            return self._replayed(content)
        id_ = content.pop("id", None) if content["type"] == "log" else None
        if not isinstance(id_, int):
            return _event(content["type"], encode(content))
        if self._held is None or id_ == self.last + 1 or channels.is_first_line(id_):
            return self._tell([(id_, content)])
        self._held.append((id_, content))
        return b""

    def release(self) -> bytes:
        """Wait for earlier lines no longer."""
        held, self._held = self._held, None
        return self._tell(held or ())

    def _replayed(self, content: dict[str, Any]) -> bytes:
        first, lines = content.get("first"), content.get("lines")
        if not isinstance(first, int) or not isinstance(lines, list):
            return b""
        told = self._tell([(first + at, {"type": "log", **line}) for at, line in enumerate(lines)])
        return told if content.get("more") else told + self.release()

    def _tell(self, lines: Iterable[tuple[int, dict[str, Any]]]) -> bytes:
        fresh = [(id_, line) for id_, line in lines if id_ > self.last]
        if fresh:
            self.last = fresh[-1][0]
        return b"".join(_event("log", encode(line), id_) for id_, line in fresh)


async def _next(heard: asyncio.Queue[bytes | None]) -> bytes | None:
    with suppress(TimeoutError):
        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
            return await heard.get()
    return b": still here\n\n"


async def _pump(messages: AsyncIterator[bytes], lines: _Lines, heard: asyncio.Queue[bytes | None]) -> None:
    async for message in messages:
        if (content := _understood(message)) is None or not (events := lines.take(content)):
            continue
        if heard.qsize() >= MAX_BEHIND:
            heard.get_nowait()
        heard.put_nowait(events)


async def _release(lines: _Lines, heard: asyncio.Queue[bytes | None]) -> None:
    await asyncio.sleep(REPLAY_SECONDS)
    if events := lines.release():
        heard.put_nowait(events)


async def _finish(call: Call, heard: asyncio.Queue[bytes | None]) -> None:
    """Put None to end the stream: the run ended, the gateway stops, or a day is over and the reader must reconnect."""
    await call.wait(DAY_SECONDS)
    heard.put_nowait(None)


def _understood(message: bytes) -> dict[str, Any] | None:
    """None for unknown messages and for the end, which is sent from the outcome."""
    try:
        content = msgspec.json.decode(message)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    is_known = isinstance(content, dict) and content.get("type") in (*KINDS, "logs")
    return content if is_known else None


def _end(run: Run) -> bytes:
    document: dict[str, Any] = {"type": "end", "id": run.id, "status": run.status, "exit_reason": run.exit_reason}
    return _event("end", encode({**document, "error": run.error, "attempt": run.attempt}))


def _event(name: str, data: bytes, id_: int | None = None) -> bytes:
    return b"%sevent: %s\ndata: %s\n\n" % (b"" if id_ is None else b"id: %d\n" % id_, name.encode(), data)


_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "event": {"type": "string", "enum": ["status", *sorted(KINDS - {"status"}), "end"]},
        "id": {"type": "string", "description": "Of log lines: higher than those of the lines before."},
        "data": {"type": "string", "description": "A JSON object whose `type` is the event's name."},
    },
    "required": ["event", "data"],
}
_STREAM = {
    "description": "The log lines so far, then `status`, `log`, `progress`, `fetch` and `waiting` as they happen, then "
    "one `end`. Comments keep it alive.",
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
async def follow_run(gateway: GatewayDep, run_id: RunId, last_event_id: LastEventId = None) -> Response:
    """Server-sent events until the run ends, the log from its first line on. Whoever comes again with the
    `Last-Event-ID` it had gets only the lines after that one."""
    services = gateway.services
    stream = RunStream(services.queue, services.store.runs, gateway.lookup, gateway.waiters)
    events = stream.events(run_id, last_event_id or 0)
    first = await anext(events)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_chain(first, events), headers=headers, media_type="text/event-stream")


async def _chain(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    async with aclosing(rest) as events:
        yield first
        async for event in events:
            yield event
