"""Results of a job: its manifests in parts, and exports: request a file, poll its progress, download it."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from msgspec import Meta, Struct
from starlette.responses import Response, StreamingResponse

from scrapeyard.blobs import keys
from scrapeyard.blobs.keys import MANIFESTS, ManifestKind
from scrapeyard.errors import NotFound, Refusal, Swept
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.owned import ExportId, JobId
from scrapeyard.gateway.auth.ownership import owned_job
from scrapeyard.gateway.http.alternatives import EXPORT, also, alternatives
from scrapeyard.gateway.http.answers import JSON, AnswerRoute, respond
from scrapeyard.gateway.http.downloads import BYTES, AnyResponse, attachment, begun, kept_object, wanted_range
from scrapeyard.gateway.http.openapi import LOCATION, refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import EXPORT_ID
from scrapeyard.gateway.jobs.calls import ExportCall
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.model import new_id
from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.instants import instant
from scrapeyard.model.job import Counts, Job, JobStatus
from scrapeyard.results.exporter import CONTENT_TYPES
from scrapeyard.results.manifests import JobMetadata, ManifestFiles, ManifestIndex, read_metadata
from scrapeyard.results.running_manifests import read_index
from scrapeyard.results.snapshots import policy_of


class PartDocument(Struct, frozen=True, kw_only=True):
    """One part of a manifest."""

    part: int
    items: int
    bytes: int
    sha256: str
    href: str


class ManifestDocument(Struct, frozen=True, kw_only=True):
    """The parts of one manifest."""

    items: int
    parts: list[PartDocument]


class ResultsDocument(Struct, frozen=True, kw_only=True):
    """What a job came to."""

    id: str
    status: JobStatus
    counts: Counts
    exit_reasons: Annotated[dict[str, int] | None, Meta(description="Null until the manifests are written.")]
    http_statuses: Annotated[
        dict[str, int] | None,
        Meta(description="Items by the HTTP status of their last page. Null until the manifests are written."),
    ]
    duration_seconds: float | None
    complete: Annotated[
        bool, Meta(description="Whether every item is in the manifests; false while the job runs or they are written.")
    ]
    manifests: Annotated[
        dict[str, ManifestDocument],
        Meta(
            description="Those that exist: `full`, `success`, `errors`. A job with `results` `objects` has them while "
            "it runs: a part is listed when the last of its items has ended."
        ),
    ]


class ManifestPartDocument(Struct, frozen=True, kw_only=True):
    """One part of a manifest, as it is kept."""

    job_id: str
    manifest: str
    part: int
    items: int
    counts: dict[str, int]
    digest: Annotated[str, Meta(description="SHA-256 of the array `entries` as it stands here.")]
    entries: list[dict[str, Any]]


class ExportLinks(Struct, frozen=True, kw_only=True):
    """Where to go from here."""

    self: str
    job: str
    download: Annotated[str | None, Meta(description="Null until it is done.")]


class ExportDocument(Struct, frozen=True, kw_only=True):
    """A file made of a job."""

    id: Annotated[str, Meta(pattern=EXPORT_ID)]
    job_id: str
    type: str
    format: str
    bom: bool
    against: Annotated[
        str | None, Meta(description="Of a `diff`: the job it compares with; null for the crawl before.")
    ]
    state: ExportState
    progress: Annotated[float, Meta(ge=0, le=1)]
    rows: int
    bytes: int
    sha256: str | None
    filename: str
    error: str | None
    notes: Annotated[
        tuple[str, ...], Meta(description="What its readers must know: empty columns and why, what was not read.")
    ]
    created_at: str
    started_at: str | None
    finished_at: str | None
    links: ExportLinks
    url: Annotated[str | None, also("links.download")]
    size_bytes: Annotated[int, also("bytes")]


class ExportsDocument(Struct, frozen=True, kw_only=True):
    """The exports of a job, the oldest first."""

    exports: list[ExportDocument]


def export_document(export: Export) -> ExportDocument:
    """An export, without its blob key."""
    here = f"/api/exports/{export.id}"
    download = f"{here}/download" if export.state is ExportState.DONE else None
    return ExportDocument(
        id=export.id,
        job_id=export.job_id,
        type=export.wish.type,
        format=export.wish.format,
        bom=export.wish.bom,
        against=export.wish.against or None,
        state=export.state,
        progress=round(export.progress, 4),
        rows=export.rows,
        bytes=export.bytes,
        sha256=export.digest or None,
        filename=export.name,
        error=export.error or None,
        notes=export.notes,
        created_at=instant(export.created_at),
        started_at=instant(export.started_at),
        finished_at=instant(export.finished_at),
        links=ExportLinks(self=here, job=f"/api/jobs/{export.job_id}", download=download),
        **alternatives(EXPORT, export, instant),
    )


_KINDS: dict[str, ManifestKind] = {"all": "full", "success": "success", "error": "errors"}
_Status = Annotated[Literal["all", "success", "error"] | None, Query(description="Which items; default: all.")]
_Part = Annotated[int | None, Query(ge=1, le=10**9, description="From 1. Without it: the summary, and links to parts.")]


result_router = APIRouter(tags=["jobs"], route_class=AnswerRoute)
router = APIRouter(tags=["exports"], route_class=AnswerRoute)


@result_router.get(
    "/api/jobs/{job_id}/results",
    summary="Read a job's results",
    response_model=ResultsDocument | ManifestPartDocument,
    responses=refusals(404, 410, 422, 503),
)
async def get_results(
    gateway: GatewayDep, request: Request, job_id: JobId, status: _Status = None, part: _Part = None
) -> Response:
    """Without `part`: the summary and links to the parts of the manifests that exist: all of them (`complete`) when the
    job has ended and its `files_pending` is false. With `part`: that part, as it is kept, at most 1,000 items."""
    desk = gateway.jobs
    job = await desk.control.get(job_id)
    check_swept(job)
    if part is None:
        return respond(await _summary(desk, job, status))
    key = keys.manifest(job_id, _KINDS[status or "all"], part)
    accepts = request.headers.get("accept-encoding", "")
    try:
        return await kept_object(desk.blobs, key, JSON, accepts, {})
    except NotFound:
        raise NotFound(f"the results of job {job_id} have no part {part}; leave it out to see which exist") from None


_WHOLE = {"description": "The file, as an attachment.", "content": BYTES}
_SOME = {"description": "The range that was asked for.", "content": BYTES}


@router.get("/api/exports/{export_id}", summary="Look an export up", responses=refusals(404, 422, 503))
async def get_export(gateway: GatewayDep, export_id: ExportId) -> ExportDocument:
    """How far it is; its size, rows and digest when it is done."""
    return export_document(await _export(gateway.jobs, export_id))


@router.get(
    "/api/exports/{export_id}/download",
    summary="Download an export",
    response_class=AnyResponse,
    responses={200: _WHOLE, 206: _SOME, **refusals(404, 409, 410, 416, 422, 503)},
)
async def download_export(gateway: GatewayDep, request: Request, export_id: ExportId) -> Response:
    """Streamed. `Range` continues a download that broke off; `ETag` is the file's digest."""
    export = await _export(gateway.jobs, export_id)
    if export.state is not ExportState.DONE:
        raise Refusal("conflict", 409, f"the export is {export.state}: {export.error or 'it is not made yet'}")
    check_swept(await gateway.jobs.control.get(export.job_id))
    return await _download(gateway.jobs, export, _range(request, export))


@router.post(
    "/api/jobs/{job_id}/exports",
    status_code=202,
    summary="Wish for an export",
    response_model=ExportDocument,
    responses={202: {"headers": LOCATION}, **refusals(400, 404, 409, 410, 413, 422, 503)},
)
async def create_export(gateway: GatewayDep, identity: IdentityDep, job_id: JobId, call: ExportCall) -> Response:
    """Makes a file of the job's items as they are then. `diff` needs a job whose pages are remembered, or
    another job to compare with."""
    if call.against is not None:
        against = await owned_job(gateway.services.store.jobs, identity, call.against)
        call = call.model_copy(update={"against": against})
    export = Export(id=new_id("export"), job_id=job_id, wish=call.wish(), created_at=gateway.jobs.clock())
    check_swept(await gateway.jobs.control.with_items(job_id))
    if call.type == "diff":
        await _check_diff(gateway.jobs, job_id, call)
    if not await gateway.jobs.store.exports.add(export):
        check_swept(await gateway.jobs.control.get(job_id))
        raise NotFound(f"no job {job_id}")
    return respond(export_document(export), 202, {"Location": f"/api/exports/{export.id}"})


@router.get("/api/jobs/{job_id}/exports", summary="List a job's exports", responses=refusals(404, 422, 503))
async def list_exports(gateway: GatewayDep, job_id: JobId) -> ExportsDocument:
    """The oldest first, those that the job was created with among them once it has ended."""
    await gateway.jobs.control.get(job_id)
    return ExportsDocument(
        exports=[export_document(export) for export in await gateway.jobs.store.exports.of_job(job_id)]
    )


def check_swept(job: Job) -> None:
    """Raises Swept if retention has removed the results of the job."""
    if "results" in job.swept:
        raise Swept(f"retention removed the results of job {job.id} at {instant(job.swept['results'])}")


async def _check_diff(desk: JobService, job_id: str, call: ExportCall) -> None:
    """Refuse a comparison that cannot be made."""
    job = await desk.control.get(job_id)
    if call.against is not None:
        check_swept(await desk.control.with_items(call.against))
    elif policy_of(job) is None:
        raise Refusal(
            "conflict",
            409,
            "the job's pages were not compared with an earlier crawl; name a job with `against`, or make the job with "
            "policy.snapshots or a diff export",
        )


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


async def _summary(desk: JobService, job: Job, status: str | None) -> ResultsDocument:
    """While the job runs, or runs again, leave out the earlier summary: it may be out of date. The index tells which
    parts hold already."""
    metadata: JobMetadata | None = None
    index: ManifestIndex | None = None
    if job.status.is_final and not job.files_pending:
        try:
            metadata = await read_metadata(desk.blobs, job.id)
        except NotFound:
            metadata = None
    elif job.policy.results == "objects":
        index = await read_index(desk.blobs, job)
    found = metadata or index
    kinds = MANIFESTS if status is None else (_KINDS[status],)
    return ResultsDocument(
        id=job.id,
        status=job.status,
        counts=job.counts,
        exit_reasons=metadata.exit_reasons if metadata else None,
        http_statuses=metadata.http_statuses if metadata else None,
        duration_seconds=metadata.duration_seconds if metadata else None,
        complete=metadata is not None,
        manifests={kind: _manifest(job.id, kind, found.manifests[kind]) for kind in kinds} if found else {},
    )


def _manifest(job_id: str, kind: ManifestKind, files: ManifestFiles) -> ManifestDocument:
    status = next(status for status, named in _KINDS.items() if named == kind)
    here = f"/api/jobs/{job_id}/results?status={status}&part="
    parts = [
        PartDocument(part=file.part, items=file.items, bytes=file.bytes, sha256=file.digest, href=f"{here}{file.part}")
        for file in files.files
    ]
    return ManifestDocument(items=files.items, parts=parts)
