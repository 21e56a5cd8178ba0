"""What a job came to: manifests in parts."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from scrapeyard.blobs import keys
from scrapeyard.blobs.keys import MANIFESTS, ManifestKind
from scrapeyard.errors import NotFound
from scrapeyard.gateway.http.downloads import kept_object
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import JobId
from scrapeyard.gateway.jobs.answers import ManifestPartDocument, ResultsDocument
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.gateway.runs import documents
from scrapeyard.model.job import Job
from scrapeyard.results.manifests import JobMetadata, ManifestFiles, read_metadata

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

_KINDS: dict[str, ManifestKind] = {"all": "full", "success": "success", "error": "errors"}
_Status = Annotated[Literal["all", "success", "error"] | None, Query(description="Which items; default: all.")]
_Part = Annotated[int | None, Query(ge=1, le=10**9, description="From 1. Without it: the summary, and links to parts.")]


def routes(gateway: "Gateway") -> APIRouter:
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
    """While the job runs, or runs again, what was written before is not told: it may be out of date."""
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
