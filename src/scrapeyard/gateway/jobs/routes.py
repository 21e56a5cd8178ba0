"""Jobs: make, look up, list, steer, delete."""

import hashlib
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from scrapeyard.errors import BadRequest, Refusal
from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.owned import JobId
from scrapeyard.gateway.auth.ownership import check_call
from scrapeyard.gateway.http import dialects
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.dialects import status_word
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import Cursor, GatewayDep, Limit
from scrapeyard.gateway.http.patterns import DOMAIN, SCRAPER_ID
from scrapeyard.gateway.jobs.calls import AppendCall, AppendOptions, ChangeCall, JobCall, JobOptions, RedriveCall
from scrapeyard.gateway.jobs.create import Created, Key
from scrapeyard.gateway.jobs.documents import (
    AppendedDocument,
    CreatedJobDocument,
    JobDocument,
    JobPageDocument,
    RedrivenDocument,
    WholeJobDocument,
    bad_rows,
)
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.gateway.jobs.uploads import APPEND, CREATE, CREATED, media_type, open_upload, options_of
from scrapeyard.gateway.runs.calls import decode_body, digest_of, idempotency_key, is_json
from scrapeyard.model.identity import Identity
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.store.ports.jobs import JobFilter

_Statuses = Annotated[
    list[Annotated[JobStatus, status_word(JobStatus)]] | None,
    Query(max_length=8, description="Any of these; may be repeated."),
]
_Mode = Annotated[
    Literal["drain", "kill"], Query(description="`drain`: items that run end by themselves; `kill`: they are ended.")
]
_CREATE = """Makes a job of a list of inputs, each an item that the scraper is run on.

The items come as JSON (`items`), from an address (`items_url`), a sitemap (`sitemap_url`) or the links of pages
(`start_url`), or as the body itself: CSV, one JSON value on each line, or plain addresses, streamed, with every other
field of the JSON body as a parameter of the query, objects and lists among them written as JSON; `exports` also as
`full:csv,seo:xlsx`. As a form, the list is the file called `file`.

A row that cannot be used refuses the whole list, unless `bad_rows` is `skip`; of a sitemap or links it is left out,
unless `bad_rows` is `reject`.

The scraper's version is pinned now. The same `Idempotency-Key` with the same body makes one job."""


router = APIRouter(tags=["jobs"], route_class=AnswerRoute)


@router.post(
    "/api/jobs",
    status_code=201,
    summary="Create a job",
    description=_CREATE,
    response_model=CreatedJobDocument,
    responses={**CREATED, **refusals(400, 403, 404, 409, 413, 415, 422, 503)},
    openapi_extra=CREATE,
)
async def create_job(gateway: GatewayDep, identity: IdentityDep, request: Request) -> Response:
    created = await _created(request, gateway.jobs, identity)
    dialects.adopt(created.job.source.get("dialect", ""))
    headers = {"Location": f"/api/jobs/{created.job.id}"}
    if created.replayed:
        headers["Idempotency-Replayed"] = "true"
    return respond(gateway.jobs.created(created), 201, headers)


@router.post(
    "/api/jobs/{job_id}/items",
    summary="Append items",
    responses=refusals(400, 403, 404, 409, 413, 415, 422, 503),
    openapi_extra=APPEND,
)
async def append_items(gateway: GatewayDep, request: Request, job_id: JobId) -> AppendedDocument:
    """More items for a job that is running or paused, as JSON or as an upload. Those it has already are left out."""
    key = idempotency_key(request.headers.get("idempotency-key"))
    source = hashlib.sha256(key.encode()).hexdigest()[:32] if key else ""
    if is_json(request.headers.get("content-type", "")):
        call = AppendCall.model_validate(await _body(request))
        done = await gateway.jobs.control.append(job_id, call, source=source)
    else:
        media = media_type(request)
        upload = await open_upload(request, media)
        options = options_of(request.query_params, AppendOptions, media)
        done = await gateway.jobs.control.append(job_id, options, upload=upload, source=source)
    first_bad = bad_rows(done.summary)
    return AppendedDocument(added=done.added, twice=done.twice, bad=done.summary.bad, first_bad=first_bad)


async def _created(request: Request, desk: JobService, identity: Identity) -> Created:
    given = idempotency_key(request.headers.get("idempotency-key"))
    given = None if given is None else identity.scoped(given)
    trace = request.headers.get("traceparent")
    if is_json(request.headers.get("content-type", "")):
        body = await _body(request)
        key = None if given is None else Key(key=given, digest=lambda: "jobs:" + digest_of(body))
        return await desk.creation.create_job(JobCall.model_validate(body), identity=identity, key=key, trace=trace)
    media = media_type(request)
    upload = await open_upload(request, media)
    key = None if given is None else Key(key=given, digest=lambda: "jobs:" + upload.digest())
    options = options_of(request.query_params, JobOptions, media)
    return await desk.creation.create_from_list(options, upload, identity=identity, key=key, trace=trace)


async def _body(request: Request) -> Any:
    if request.query_params:
        raise BadRequest("with a JSON body every parameter stands in the body; leave the query empty")
    body = decode_body(await request.body())
    if isinstance(body, list):
        raise BadRequest('the body is a list and must be an object; write {"items": […]}')
    return body


@router.get("/api/jobs", summary="List jobs", responses=refusals(400, 422, 503))
async def list_jobs(
    gateway: GatewayDep,
    identity: IdentityDep,
    *,
    status: _Statuses = None,
    scraper: Annotated[str | None, Query(pattern=SCRAPER_ID, description="`site/task`, any version.")] = None,
    schedule_id: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Its schedule.")] = None,
    domain: Annotated[str | None, Query(pattern=DOMAIN, description="The site it is about.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> JobPageDocument:
    """Newest first; a client's own. Follow `next_cursor` for more."""
    where = JobFilter(
        statuses=tuple(status) if status else None,
        scraper=scraper,
        schedule_id=schedule_id,
        owner=identity.only,
        domain=domain.lower() if domain else None,
    )
    page = await gateway.jobs.store.jobs.page(where, cursor, limit)
    shown = [gateway.jobs.document(job) for job in page.jobs]
    return JobPageDocument(jobs=shown, next_cursor=page.next_cursor)


@router.get("/api/jobs/{job_id}", summary="Look a job up", responses=refusals(404, 422, 503))
async def get_job(gateway: GatewayDep, job_id: JobId) -> WholeJobDocument:
    """Counts, rate, time left, breaker, policy, what it has used, and how its sinks stand."""
    return await gateway.jobs.whole(await gateway.jobs.control.get(job_id))


@router.patch("/api/jobs/{job_id}", summary="Change a job", responses=refusals(400, 404, 409, 413, 422, 503))
async def change_job(gateway: GatewayDep, audit: AuditDep, job_id: JobId, call: ChangeCall) -> JobDocument:
    """For items that are handed out from now on: another rate, a larger budget, another priority; and the job's name.
    What the body does not name stays as it is."""
    before = await gateway.jobs.control.get(job_id)
    job = await gateway.jobs.control.change(job_id, call)
    audit.change(_told(before), _told(job))
    return gateway.jobs.document(job)


def _told(job: Job) -> dict[str, Any]:
    """What a call may change of a job, for the audit."""
    return {"name": job.name, "priority": job.priority, "policy": job.policy}


@router.delete("/api/jobs/{job_id}", status_code=204, summary="Delete a job", responses=refusals(404, 409, 422, 503))
async def delete_job(gateway: GatewayDep, job_id: JobId) -> Response:
    """With its items, results, artifacts and exports. Only a job that has ended can be deleted."""
    await gateway.jobs.control.delete(job_id)
    return Response(status_code=204)


@router.post("/api/jobs/{job_id}/pause", summary="Pause a job", responses=refusals(404, 409, 422, 503))
async def pause_job(gateway: GatewayDep, job_id: JobId) -> JobDocument:
    """Nothing more is handed out; items that run end by themselves. May be repeated."""
    return gateway.jobs.document(await gateway.jobs.control.pause(job_id))


@router.post("/api/jobs/{job_id}/resume", summary="Resume a job", responses=refusals(404, 409, 410, 422, 503))
async def resume_job(gateway: GatewayDep, job_id: JobId) -> JobDocument:
    """Goes on where it was paused, by a call, its breaker or its budget. A cancelled job goes on with the items that
    were cancelled, and with the rest of its source; its files are made anew. May be repeated."""
    return gateway.jobs.document(await gateway.jobs.control.resume(job_id))


@router.post("/api/jobs/{job_id}/cancel", summary="Cancel a job", responses=refusals(404, 409, 422, 503))
async def cancel_job(gateway: GatewayDep, job_id: JobId, mode: _Mode = "drain") -> JobDocument:
    """Items that were not handed out are cancelled at once. May be repeated, and a drain may become a kill. A job whose
    items have all ended stays as it is: 409."""
    job = await gateway.jobs.control.cancel(job_id, kill=mode == "kill")
    if job.status not in (JobStatus.CANCELLING, JobStatus.CANCELLED):
        raise Refusal("conflict", 409, f"the job is {job.status}: nothing of it is left to cancel")
    return gateway.jobs.document(job)


@router.post("/api/jobs/{job_id}/archive", summary="Archive a job", responses=refusals(404, 409, 422, 503))
async def archive_job(gateway: GatewayDep, job_id: JobId) -> JobDocument:
    """The items of a job that has ended move from the database to the blob store. The job, its manifests, artifacts and
    exports stay where they are; its items are listed again after a restore. May be repeated."""
    return gateway.jobs.document(await gateway.jobs.control.archive(job_id))


@router.post("/api/jobs/{job_id}/restore", summary="Restore an archived job", responses=refusals(404, 409, 422, 503))
async def restore_job(gateway: GatewayDep, job_id: JobId) -> JobDocument:
    """The items move back; `archive` is empty when they have. A job that is not archived stays as it is."""
    return gateway.jobs.document(await gateway.jobs.control.restore(job_id))


@router.post(
    "/api/jobs/{job_id}/redrive", summary="Run items again", responses=refusals(400, 404, 409, 410, 413, 422, 503)
)
async def redrive_job(gateway: GatewayDep, identity: IdentityDep, job_id: JobId, call: RedriveCall) -> RedrivenDocument:
    """Items that ended are run again from their first attempt: errors, unless the body says otherwise; items that were
    cancelled with their job come with them. Perhaps by another version, or by another policy."""
    if call.scraper is not None:
        check_call(identity, call.scraper)
    count, job = await gateway.jobs.control.redrive(job_id, call)
    return RedrivenDocument(items=count, job=gateway.jobs.document(job))
