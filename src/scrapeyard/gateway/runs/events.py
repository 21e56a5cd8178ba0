"""`GET /api/scrape/{id}/events`: a run's life as it happens."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import RunId
from scrapeyard.gateway.runs.streams import RunStream
from scrapeyard.gateway.services import Gateway

_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "event": {"type": "string", "enum": ["status", "log", "fetch", "end"]},
        "data": {"type": "string", "description": "A JSON object whose `type` is the event's name."},
    },
    "required": ["event", "data"],
}
_STREAM = {
    "description": "`status`, `log` and `fetch` events as they happen, then one `end`. Comments keep it alive.",
    "content": {"text/event-stream": {"schema": _EVENT}},
}


class EventStreamResponse(Response):
    """Names the media type for the document."""

    media_type = "text/event-stream"


def routes(gateway: Gateway) -> APIRouter:
    """The route."""
    router = APIRouter(tags=["runs"])
    services = gateway.services
    stream = RunStream(services.queue, services.store, gateway.lookup, gateway.waiters)

    @router.get(
        "/api/scrape/{run_id}/events",
        summary="Follow a run",
        description="Server-sent events until the run ends. A run that has ended replays its recorded logs.",
        operation_id="follow_run",
        response_class=EventStreamResponse,
        response_model=None,
        responses={200: _STREAM, **refusals(404, 422, 429, 503)},
    )
    async def follow_run(run_id: RunId) -> Response:
        events = stream.events(run_id)
        first = await anext(events)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_chain(first, events), headers=headers, media_type="text/event-stream")

    return router


async def _chain(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    async with aclosing(rest) as events:
        yield first
        async for event in events:
            yield event
