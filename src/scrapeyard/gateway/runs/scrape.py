"""`POST /api/scrape`: the one route everything else is about."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from scrapeyard.gateway.http.openapi import HEADERS, LOCATION, Responses, bad_ends, parameter, refusals
from scrapeyard.gateway.runs.calls import read_call
from scrapeyard.gateway.runs.schemas import Handle, Handles, RunDocument, RunDocuments

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

PATH = "/api/scrape"
_DESCRIPTION = """Runs a scraper, or `builtin/page` when only a `url` is given.

The call waits for the end (`wait` seconds) and answers 200 with the run. Not finished in time: 202 with a handle, and
the run goes on, or 504 after cancelling it with `"on_timeout": "cancel"`. A run that ended badly: 502, or 504 when a
time limit ended it. With `urls` there is one run for each, and the answer is 200 when all have ended, whatever way.

The same `Idempotency-Key` with the same body runs once and answers alike."""

_RESPONSES: Responses = {
    200: {"model": RunDocument | RunDocuments, "description": "Finished in time and succeeded.", "headers": HEADERS},
    202: {"model": Handle | Handles, "description": "Goes on; it is durable.", "headers": HEADERS | LOCATION},
    **refusals(400, 404, 413, 415, 422, 429, 503),
    **bad_ends(),
}

_REQUEST = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ScrapeCall"}}},
    },
    "parameters": [
        parameter("Prefer", "header", "`wait=N` or `respond-async`; `wait` in the body wins.", {"type": "string"}),
        parameter(
            "Idempotency-Key",
            "header",
            "The same key and body run once.",
            {"type": "string", "pattern": r"^[\x21-\x7e]{1,255}$"},
        ),
        parameter("traceparent", "header", "W3C trace context; one is made when absent.", {"type": "string"}),
    ],
}


class PlainRoute(APIRoute):
    """Documented like any other, but called with the bare request: the hottest path pays for no injection."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function itself."""
        return cast("Callable[[Request], Coroutine[Any, Any, Response]]", self.endpoint)


def routes(gateway: "Gateway") -> APIRouter:
    """The route."""
    router = APIRouter(tags=["scrape"], route_class=PlainRoute)
    router.add_api_route(
        PATH,
        answerer(gateway),
        methods=["POST"],
        summary="Scrape",
        description=_DESCRIPTION,
        operation_id="scrape",
        response_model=None,
        responses=_RESPONSES,
        openapi_extra=_REQUEST,
    )
    return router


def answerer(gateway: "Gateway") -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """The function behind the route, which the hot path calls by itself."""
    settings = gateway.services.settings.gateway

    async def scrape(request: Request) -> Response:
        asked = await read_call(request, settings)
        return await gateway.scraping.answer(asked, request.receive)

    return scrape
