"""Items of jobs: list them, get one, download its artifacts; dead letters across jobs."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from scrapeyard.errors import NotFound
from scrapeyard.gateway.http.downloads import BYTES, AnyResponse, attachment, kept_object
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import Cursor, ItemKey, ItemStatuses, JobId, Keys, Limit, Reasons, Sites
from scrapeyard.gateway.jobs.answers import DeadLetterPageDocument, ItemPageDocument, WholeItemDocument
from scrapeyard.gateway.jobs.documents import item_document
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.gateway.runs import documents
from scrapeyard.model.job import Item
from scrapeyard.store.ports.jobs import ItemFilter

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

_SHORT = {"data": "data.json", "html": "html.html", "metadata": "metadata.json", "screenshot": "screenshot.png"}
_Artifact = Annotated[
    str,
    Query(
        pattern=r"^[^/\x00-\x1f\x7f]{1,255}$",
        description="`data`, `html`, `metadata`, `screenshot`, or a name from the item's `artifacts`.",
    ),
]
_BYTES = {"description": "The bytes, as an attachment.", "content": BYTES}


def item_routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["jobs"])
    desk = gateway.jobs

    @router.get(
        "/api/jobs/{job_id}/items",
        summary="List a job's items",
        description="In the order of the list, with results that are small. An item must fit every filter given.",
        operation_id="list_items",
        response_model=ItemPageDocument,
        responses=refusals(400, 404, 422, 503),
    )
    async def list_items(
        job_id: JobId,
        *,
        status: ItemStatuses = None,
        exit_reason: Reasons = None,
        site: Sites = None,
        key: Keys = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response:
        where = ItemFilter(
            statuses=tuple(status) if status else None,
            exit_reasons=tuple(exit_reason) if exit_reason else None,
            sites=tuple(site) if site else None,
            keys=tuple(key) if key else None,
        )
        page = await desk.store.items.page(job_id, where, cursor, limit)
        if not page.items:
            await desk.control.get(job_id)
        shown = [item_document(job_id, item, whole=False) for item in page.items]
        return _json({"items": shown, "next_cursor": page.next_cursor})

    @router.get(
        "/api/jobs/{job_id}/items/{key}",
        summary="Look an item up",
        description="With its result, error, logs and what it left.",
        operation_id="get_item",
        response_model=WholeItemDocument,
        responses=refusals(404, 422, 503),
    )
    async def get_item(job_id: JobId, key: ItemKey) -> Response:
        return _json(item_document(job_id, await _item(desk, job_id, key)))

    @router.get(
        "/api/jobs/{job_id}/items/{key}/download",
        summary="Download what an item left",
        description="Streamed, with its own content type.",
        operation_id="download_artifact",
        response_class=AnyResponse,
        response_model=None,
        responses={200: _BYTES, **refusals(404, 422, 503)},
    )
    async def download_artifact(
        request: Request, job_id: JobId, key: ItemKey, artifact: _Artifact = "data"
    ) -> Response:
        item = await _item(desk, job_id, key)
        return await _download(desk, item, artifact, request.headers.get("accept-encoding", ""))

    return router


async def _item(desk: JobService, job_id: str, key: str) -> Item:
    item = await desk.store.items.get(job_id, key)
    if item is None:
        raise NotFound(f"job {job_id} has no item {key}")
    return item


async def _download(desk: JobService, item: Item, artifact: str, accepts: str) -> Response:
    """Artifact names chosen by a script take precedence over the short names."""
    for name in (artifact, _SHORT.get(artifact, "")):
        for kept in item.artifacts:
            if kept.name == name:
                return await kept_object(desk.blobs, kept.key, kept.content_type, accepts, attachment(name))
    if _SHORT.get(artifact, artifact) == "data.json":
        headers = attachment(f"{item.key}.json")
        if item.result is not None:
            return Response(bytes(item.result), headers=headers, media_type=documents.JSON)
        if item.result_key:
            return await kept_object(desk.blobs, item.result_key, documents.JSON, accepts, headers)
    raise NotFound(f"item {item.key} left nothing of that name; its `artifacts` lists what there is")


def _json(document: object) -> Response:
    return Response(documents.encode(document), media_type=documents.JSON)


def dead_letter_routes(gateway: "Gateway") -> APIRouter:
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
        found, next_cursor = await store.items.dead_letters(cursor, limit)
        shown = [{"job_id": job_id, **item_document(job_id, item, whole=False)} for job_id, item in found]
        return Response(documents.encode({"items": shown, "next_cursor": next_cursor}), media_type=documents.JSON)

    return router
