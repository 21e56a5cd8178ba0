"""Items that ended as errors, across jobs."""

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.responses import Response

from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import Cursor, Limit
from scrapeyard.gateway.jobs.answers import DeadLetterPageDocument
from scrapeyard.gateway.jobs.documents import item_document
from scrapeyard.gateway.runs import documents

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway


def routes(gateway: "Gateway") -> APIRouter:
    """The route."""
    router = APIRouter(tags=["jobs"])
    store = gateway.jobs.store

    @router.get(
        "/api/dead-letters",
        summary="List dead letters",
        description="Items that ended as errors, of every job, those of the newest job first. "
        "`POST /api/jobs/{job_id}/redrive` runs them again.",
        operation_id="list_dead_letters",
        response_model=DeadLetterPageDocument,
        responses=refusals(400, 422, 503),
    )
    async def list_dead_letters(cursor: Cursor = None, limit: Limit = 50) -> Response:
        found, next_cursor = await store.dead_letters(cursor, limit)
        shown = [{"job_id": job_id, **item_document(job_id, item, whole=False)} for job_id, item in found]
        return Response(documents.encode({"items": shown, "next_cursor": next_cursor}), media_type=documents.JSON)

    return router
