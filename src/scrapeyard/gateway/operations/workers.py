"""`GET /api/workers`."""

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from msgspec.structs import asdict
from starlette.responses import Response

from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.operations.schemas import WorkersDocument
from scrapeyard.gateway.runs import documents
from scrapeyard.gateway.scrapers.documents import state_document
from scrapeyard.model import WorkerInfo

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway


def routes(gateway: "Gateway") -> APIRouter:
    """The route."""
    router = APIRouter(tags=["operations"])
    services = gateway.services

    @router.get(
        "/api/workers",
        summary="List workers",
        description="Workers whose heartbeat is no older than a lease, with their load, lanes, engines and walls.",
        operation_id="list_workers",
        response_model=WorkersDocument,
        responses=refusals(503),
    )
    async def list_workers() -> Response:
        now = services.clock()
        workers = await services.store.workers(now - services.settings.worker.lease_seconds)
        shown = [_document(worker, now) for worker in workers]
        return Response(documents.encode({"workers": shown}), media_type=documents.JSON)

    return router


def _document(worker: WorkerInfo, now: float) -> dict[str, Any]:
    return {
        **asdict(worker),
        "started_at": documents.instant(worker.started_at),
        "seen_at": documents.instant(worker.seen_at),
        "environments": {name: state_document(state) for name, state in worker.environments.items()},
        "age_seconds": round(max(0.0, now - worker.seen_at), 3),
    }
