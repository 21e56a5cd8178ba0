"""Results of a job: its manifests in parts, and exports: request a file, poll its progress, download it."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from scrapeyard.blobs import keys
from scrapeyard.blobs.keys import MANIFESTS, ManifestKind
from scrapeyard.errors import NotFound
from scrapeyard.gateway.http.downloads import BYTES, AnyResponse, attachment, begun, kept_object, wanted_range
from scrapeyard.gateway.http.openapi import LOCATION, refusals
from scrapeyard.gateway.http.parameters import ExportId, JobId
from scrapeyard.gateway.http.problems import Refusal
from scrapeyard.gateway.jobs.answers import ExportDocument, ExportsDocument, ManifestPartDocument, ResultsDocument
from scrapeyard.gateway.jobs.calls import ExportCall
from scrapeyard.gateway.jobs.documents import export_document
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.gateway.runs import documents
from scrapeyard.model import new_id
from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import Job
from scrapeyard.results.exporter import CONTENT_TYPES
from scrapeyard.results.manifests import JobMetadata, ManifestFiles, read_metadata

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

_KINDS: dict[str, ManifestKind] = {"all": "full", "success": "success", "error": "errors"}
_Status = Annotated[Literal["all", "success", "error"] | None, Query(description="Which items; default: all.")]
_Part = Annotated[int | None, Query(ge=1, le=10**9, description="From 1. Without it: the summary, and links to parts.")]


def result_routes(gateway: "Gateway") -> APIRouter:
    """The route."""
    router = APIRouter(tags=["jobs"])
    desk = gateway.jobs

    @router.get(
        "/api/jobs/{job_id}/results",
        summary="Read a job's results",
        description="Without `part`: the summary and links to the parts of the manifests that exist, which is when the "
        "job has ended and its `files_pending` is false. With `part`: that part, as it is kept, at most 1,000 items.",
        operation_id="get_results",
        response_model=ResultsDocument | ManifestPartDocument,
        responses=refusals(404, 422, 503),
    )
    async def get_results(request: Request, job_id: JobId, status: _Status = None, part: _Part = None) -> Response:
        job = await desk.control.get(job_id)
        if part is None:
            return Response(documents.encode(await _summary(desk, job, status)), media_type=documents.JSON)
        key = keys.manifest(job_id, _KINDS[status or "all"], part)
        accepts = request.headers.get("accept-encoding", "")
        try:
            return await kept_object(desk.blobs, key, documents.JSON, accepts, {})
        except NotFound:
            raise NotFound(
                f"the results of job {job_id} have no part {part}; leave it out to see which exist"
            ) from None

    return router


async def _summary(desk: JobService, job: Job, status: str | None) -> dict[str, Any]:
    """While the job runs, or runs again, leave out the earlier summary: it may be out of date."""
    metadata: JobMetadata | None = None
    if job.status.is_final and not job.files_pending:
        try:
            metadata = await read_metadata(desk.blobs, job.id)
        except NotFound:
            metadata = None
    kinds = MANIFESTS if status is None else (_KINDS[status],)
    return {
        "id": job.id,
        "status": job.status,
        "counts": job.counts,
        "exit_reasons": metadata.exit_reasons if metadata else None,
        "duration_seconds": metadata.duration_seconds if metadata else None,
        "manifests": {kind: _manifest(job.id, kind, metadata.manifests[kind]) for kind in kinds} if metadata else {},
    }


def _manifest(job_id: str, kind: ManifestKind, files: ManifestFiles) -> dict[str, Any]:
    status = next(status for status, named in _KINDS.items() if named == kind)
    here = f"/api/jobs/{job_id}/results?status={status}&part="
    parts = [
        {
            "part": file.part,
            "items": file.items,
            "bytes": file.bytes,
            "sha256": file.digest,
            "href": f"{here}{file.part}",
        }
        for file in files.files
    ]
    return {"items": files.items, "parts": parts}


_WHOLE = {"description": "The file, as an attachment.", "content": BYTES}
_SOME = {"description": "The range that was asked for.", "content": BYTES}


def export_routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["exports"])
    desk = gateway.jobs
    _wishing(router, desk)

    @router.get(
        "/api/exports/{export_id}",
        summary="Look an export up",
        description="How far it is; its size, rows and digest when it is done.",
        operation_id="get_export",
        response_model=ExportDocument,
        responses=refusals(404, 422, 503),
    )
    async def get_export(export_id: ExportId) -> Response:
        return Response(documents.encode(export_document(await _export(desk, export_id))), media_type=documents.JSON)

    @router.get(
        "/api/exports/{export_id}/download",
        summary="Download an export",
        description="Streamed. `Range` continues a download that broke off; `ETag` is the file's digest.",
        operation_id="download_export",
        response_class=AnyResponse,
        response_model=None,
        responses={200: _WHOLE, 206: _SOME, **refusals(404, 409, 416, 422, 503)},
    )
    async def download_export(request: Request, export_id: ExportId) -> Response:
        export = await _export(desk, export_id)
        if export.state is not ExportState.DONE:
            raise Refusal("conflict", 409, f"the export is {export.state}: {export.error or 'it is not made yet'}")
        return await _download(desk, export, _range(request, export))

    return router


def _wishing(router: APIRouter, desk: JobService) -> None:
    @router.post(
        "/api/jobs/{job_id}/exports",
        status_code=202,
        summary="Wish for an export",
        description="Makes a file of the job's items as they are then. `diff` needs a job whose pages are remembered.",
        operation_id="create_export",
        response_model=ExportDocument,
        responses={202: {"headers": LOCATION}, **refusals(400, 404, 413, 422, 503)},
    )
    async def create_export(job_id: JobId, call: ExportCall) -> Response:
        export = Export(id=new_id("export"), job_id=job_id, wish=call.wish(), created_at=desk.clock())
        if not await desk.store.exports.add(export):
            raise NotFound(f"no job {job_id}")
        headers = {"Location": f"/api/exports/{export.id}"}
        return Response(documents.encode(export_document(export)), 202, headers, documents.JSON)

    @router.get(
        "/api/jobs/{job_id}/exports",
        summary="List a job's exports",
        description="The oldest first, those that the job was created with among them once it has ended.",
        operation_id="list_exports",
        response_model=ExportsDocument,
        responses=refusals(404, 422, 503),
    )
    async def list_exports(job_id: JobId) -> Response:
        await desk.control.get(job_id)
        found = [export_document(export) for export in await desk.store.exports.of_job(job_id)]
        return Response(documents.encode({"exports": found}), media_type=documents.JSON)


async def _export(desk: JobService, export_id: str) -> Export:
    export = await desk.store.exports.get(export_id)
    if export is None:
        raise NotFound(f"no export {export_id}")
    return export


def _range(request: Request, export: Export) -> tuple[int, int] | None:
    """The requested range; with `If-Range`, only if it names the same file."""
    begun_with = request.headers.get("if-range")
    if begun_with is not None and begun_with != _tag(export):
        return None
    return wanted_range(request.headers.get("range"), export.bytes)


async def _download(desk: JobService, export: Export, part: tuple[int, int] | None) -> Response:
    headers = attachment(export.name) | {"Accept-Ranges": "bytes", "ETag": _tag(export)}
    first, end = part or (0, export.bytes)
    headers["Content-Length"] = str(end - first)
    if part is not None:
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{export.bytes}"
    pieces = desk.blobs.stream(export.key) if part is None else desk.blobs.stream(export.key, first, end)
    kind = CONTENT_TYPES[export.wish.format]
    return StreamingResponse(await begun(pieces), 200 if part is None else 206, headers, media_type=kind)


def _tag(export: Export) -> str:
    return f'"{export.digest}"'
