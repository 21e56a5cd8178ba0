"""`/stream` and `/ws`: live events of a job, as server-sent events or over a WebSocket."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Query, WebSocket
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocketDisconnect

from scrapeyard.errors import NotFound, ScrapeyardError
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.owned import JobId
from scrapeyard.gateway.auth.ownership import owned_job
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep, LastEventId
from scrapeyard.gateway.http.patterns import JOB_ID
from scrapeyard.gateway.http.problems import from_error
from scrapeyard.gateway.jobs.streams import JobUpdate, StreamOptions, as_message, as_sse
from scrapeyard.gateway.runs.events import EventStreamResponse
from scrapeyard.model.webhook import JobEventKind

KINDS = ("progress", "item", "items_left_out", *JobEventKind, "end")
_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "event": {"type": "string", "description": f"One of {', '.join(KINDS)}."},
        "id": {"type": "string", "description": "Of events that are told again to whoever comes again."},
        "data": {"type": "string", "description": "A JSON object."},
    },
    "required": ["event", "data"],
}
_STREAM = {
    "description": "What has happened and happens, `progress` at most twice a second, then one `end`.",
    "content": {"text/event-stream": {"schema": _EVENT}},
}
_After = Annotated[int, Query(ge=0, le=2**53, description="The same, for callers that cannot set the header.")]
_Wants = Annotated[
    bool | None, Query(description="Whether each item that ends is told as `item`; default: for the profile `site`.")
]
_WithResults = Annotated[bool, Query(description="The same with each item's result, if it has at most 16 KB.")]
_LAST = 2**53
_NORMAL, _GOING_AWAY = 1000, 1001
_YES = ("true", "1")


router = APIRouter(tags=["jobs"], route_class=AnswerRoute)


@router.get(
    "/api/jobs/{job_id}/stream",
    summary="Follow a job",
    response_class=EventStreamResponse,
    responses={200: _STREAM, **refusals(404, 422, 429, 503)},
)
async def follow_job(
    gateway: GatewayDep,
    job_id: JobId,
    *,
    last_event_id: LastEventId = None,
    after: _After = 0,
    lines: _Wants = None,
    results: _WithResults = False,
) -> Response:
    """Server-sent events until the job has ended. Whoever comes again with the `Last-Event-ID` it had misses nothing
    but `progress` and `item`. `/ws` tells the same by a WebSocket."""
    last = last_event_id if last_event_id is not None else after
    events = gateway.jobs.streams.follow(job_id, StreamOptions(after=last, lines=lines, results=results))
    first = await anext(events)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_pieces(first, events), headers=headers, media_type="text/event-stream")


@router.websocket("/api/jobs/{job_id}/ws")
async def watch_job(gateway: GatewayDep, identity: IdentityDep, websocket: WebSocket, job_id: str) -> None:
    """The same by a WebSocket."""
    try:
        own = await owned_job(gateway.services.store.jobs, identity, _checked(job_id))
        events = gateway.jobs.streams.follow(own, _options(websocket))
        first = await anext(events)
    except ScrapeyardError as error:
        await websocket.send_denial_response(from_error(error))
        return
    await websocket.accept()
    await _converse(websocket, first, events)


async def _pieces(first: JobUpdate | None, rest: AsyncGenerator[JobUpdate | None]) -> AsyncIterator[bytes]:
    async with aclosing(rest) as events:
        yield as_sse(first)
        async for told in events:
            yield as_sse(told)


async def _converse(websocket: WebSocket, first: JobUpdate | None, rest: AsyncGenerator[JobUpdate | None]) -> None:
    """Send until the job ends or the caller disconnects. Messages from the caller are ignored."""
    tasks = [asyncio.create_task(_send(websocket, first, rest)), asyncio.create_task(_until_gone(websocket))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _send(websocket: WebSocket, first: JobUpdate | None, rest: AsyncGenerator[JobUpdate | None]) -> None:
    ended = False
    async with aclosing(rest) as events:
        if first is not None:
            await websocket.send_text(as_message(first))
        async for told in events:
            if told is not None:  # the server's own pings keep it alive
                await websocket.send_text(as_message(told))
                ended = told.kind == "end"
    await websocket.close(_NORMAL if ended else _GOING_AWAY)


async def _until_gone(websocket: WebSocket) -> None:
    try:
        while (await websocket.receive())["type"] != "websocket.disconnect":
            pass
    except (WebSocketDisconnect, RuntimeError):
        return


def _checked(job_id: str) -> str:
    if not re.fullmatch(JOB_ID, job_id):
        raise NotFound(f"no job {job_id[:64]}")
    return job_id


def _options(websocket: WebSocket) -> StreamOptions:
    lines = websocket.query_params.get("lines")
    return StreamOptions(
        after=_after(websocket),
        lines=None if lines is None else lines in _YES,
        results=websocket.query_params.get("results") in _YES,
    )


def _after(websocket: WebSocket) -> int:
    given = websocket.headers.get("last-event-id") or websocket.query_params.get("after") or "0"
    return min(int(given), _LAST) if given.isascii() and given.isdigit() and len(given) < 20 else 0
