"""`/api/cache`: kept pages."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import Response

from scrapeyard.gateway.cache.schemas import CacheDocument, InvalidateCall, InvalidatedDocument, WarmCall
from scrapeyard.gateway.http.openapi import HEADERS, refusals
from scrapeyard.gateway.runs import documents
from scrapeyard.gateway.runs.calls import traceparent
from scrapeyard.gateway.runs.schemas import Handles

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway


def routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["cache"])

    @router.get(
        "/api/cache",
        summary="Kept pages",
        description="How pages are kept, and what the shared tier holds.",
        operation_id="get_cache",
        response_model=CacheDocument,
        responses=refusals(503),
    )
    async def get_cache() -> Response:
        return Response(documents.encode(await gateway.caching.describe()), media_type=documents.JSON)

    @router.post(
        "/api/cache/invalidate",
        summary="Forget kept pages",
        description="Of a URL, a site, or all. The shared tier has forgotten them when this answers, every worker's "
        "memory within a second. What is being fetched at that moment is not kept. May be repeated.",
        operation_id="invalidate_cache",
        response_model=InvalidatedDocument,
        responses=refusals(400, 413, 422, 503),
    )
    async def invalidate_cache(call: InvalidateCall) -> Response:
        dropped = await gateway.caching.invalidate(call)
        return Response(documents.encode({"dropped": dropped}), media_type=documents.JSON)

    @router.post(
        "/api/cache/warm",
        summary="Have pages ready",
        description="A run of low priority for each URL, whose fetches are kept. Look them up like other runs.",
        operation_id="warm_cache",
        status_code=202,
        response_model=Handles,
        responses={
            202: {"description": "Goes on; it is durable.", "headers": HEADERS},
            **refusals(400, 404, 413, 422, 503),
        },
    )
    async def warm_cache(call: WarmCall, request: Request) -> Response:
        trace = traceparent(request.headers.get("traceparent"))
        return await gateway.caching.warm(call, trace, request.receive)

    return router
