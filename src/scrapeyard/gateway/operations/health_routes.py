"""Is the process alive, can it take calls, and how is everything it depends on."""

import time
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import Response

from scrapeyard import __version__
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.problems import Refusal
from scrapeyard.gateway.operations.health import DependencyState
from scrapeyard.gateway.operations.schemas import HealthDocument, LiveDocument, ReadyDocument
from scrapeyard.gateway.runs import documents

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway


def routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["operations"])

    @router.get(
        "/api/health",
        summary="Tell the state of every dependency",
        description="`down` (503) when calls cannot be taken; `degraded` when they are but not all goes well.",
        operation_id="health",
        response_model=HealthDocument,
        responses={503: {"model": HealthDocument, "description": "The queue or the store is away."}, **refusals()},
    )
    async def health() -> Response:
        findings = await gateway.health.look()
        overall = gateway.health.overall(findings)
        document = {
            "status": overall,
            "version": __version__,
            "gateway": gateway.services.gateway_id,
            "dependencies": {name: _document(finding) for name, finding in findings.items()},
        }
        return Response(documents.encode(document), 503 if overall == "down" else 200, media_type=documents.JSON)

    @router.get(
        "/api/ready",
        summary="Tell whether calls can be taken",
        description="For load balancers: 503 while starting or stopping, or while the queue or the store is away.",
        operation_id="ready",
        response_model=ReadyDocument,
        responses=refusals(503),
    )
    async def ready() -> Response:
        if not gateway.serving:
            raise Refusal("not_ready", 503, "the gateway is starting or stopping", retry_after=1)
        for name, finding in (await gateway.health.look("queue", "store")).items():
            if not finding.up:
                raise Refusal("not_ready", 503, f"{name}: {finding.detail}", retry_after=2)
        return Response(b'{"ready":true}', media_type=documents.JSON)

    @router.get(
        "/api/live",
        summary="Tell that the process answers",
        description="Always 200.",
        operation_id="live",
        response_model=LiveDocument,
        responses=refusals(),
    )
    async def live() -> Response:
        return Response(b'{"alive":true}', media_type=documents.JSON)

    return router


def _document(finding: DependencyState) -> dict[str, Any]:
    return {
        "state": "ok" if finding.up else "away",
        "latency_ms": finding.latency_ms,
        "age_seconds": round(max(0.0, time.monotonic() - finding.at), 3),
        "detail": finding.detail,
    }
