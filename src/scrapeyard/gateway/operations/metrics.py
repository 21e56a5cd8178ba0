"""`GET /metrics`."""

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.telemetry.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway


def routes(gateway: "Gateway") -> APIRouter:
    """The route."""
    router = APIRouter(tags=["operations"])

    @router.get(
        "/metrics",
        summary="Metrics of this gateway",
        description="In Prometheus' text form: how fresh each repository is, refreshes, runs ended, calls that wait.",
        operation_id="metrics",
        response_class=PlainTextResponse,
        responses=refusals(),
    )
    async def metrics() -> Response:
        return Response(gateway.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    return router
