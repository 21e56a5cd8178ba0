"""`/api/crawl` and `/api/map`: a whole site in one call, and the URLs of one."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.crawls.calls import CrawlCall, MapCall
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.openapi import HEADERS, LOCATION, TRACEPARENT, Responses, bad_ends, parameter, refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import KEY_PATTERN
from scrapeyard.gateway.jobs.create import Key
from scrapeyard.gateway.jobs.documents import JobDocument
from scrapeyard.gateway.runs.calls import digest_of, idempotency_key, read_call
from scrapeyard.gateway.runs.documents import Handle, RunDocument

router = APIRouter(tags=["crawl"], route_class=AnswerRoute)


def _key(description: str) -> dict[str, Any]:
    return parameter("Idempotency-Key", "header", description, {"type": "string", "pattern": KEY_PATTERN})


@router.post(
    "/api/crawl",
    status_code=202,
    summary="Crawl a site",
    response_model=JobDocument,
    responses={
        202: {"description": "The job, which goes on.", "headers": LOCATION},
        **refusals(400, 403, 404, 409, 413, 422, 503),
    },
    openapi_extra={"parameters": [_key("The same key and body make one job."), TRACEPARENT]},
)
async def crawl(gateway: GatewayDep, identity: IdentityDep, request: Request, call: CrawlCall) -> Response:
    """Makes a job that follows the links of a site from one page, and reads its sitemaps. It obeys robots.txt and the
    site's rate. Watch it, cancel it and download its pages as those of any job, by its `links`. At the end
    `source.found` tells how many pages the sitemaps gave and how many links lie beyond the depth, and `warnings` what
    else was left out."""
    given = idempotency_key(request.headers.get("idempotency-key"))
    digest = lambda: "crawl:" + digest_of(call.model_dump(mode="json"))  # noqa: E731  computed only if it is needed
    key = None if given is None else Key(key=identity.scoped(given), digest=digest)
    trace = request.headers.get("traceparent")
    created = await gateway.jobs.creation.create_job(call.job_call(), identity=identity, key=key, trace=trace)
    headers = {"Location": f"/api/jobs/{created.job.id}"}
    if created.replayed:
        headers["Idempotency-Replayed"] = "true"
    return respond(gateway.jobs.document(created.job), 202, headers)


_MAP_RESPONSES: Responses = {
    200: {"model": RunDocument, "description": "The run; `result.urls` has the URLs.", "headers": HEADERS},
    202: {"model": Handle, "description": "Goes on; it is durable.", "headers": HEADERS | LOCATION},
    **refusals(400, 404, 413, 415, 422, 429, 503),
    **bad_ends(),
}


@router.post(
    "/api/map",
    summary="List the URLs of a site",
    responses=_MAP_RESPONSES,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MapCall"}}},
        },
        "parameters": [_key("The same key and body run once.")],
    },
)
async def map_site(gateway: GatewayDep, request: Request) -> Response:
    """Calls `builtin/map` and waits for its end, as `/api/scrape` does: the links of the page, and what the robots.txt
    and the sitemaps of its host name. `result.urls` has each URL once, with where it was found."""
    settings = gateway.services.settings.gateway
    asked = await read_call(
        request, settings, lambda body: MapCall.model_validate(body).scrape_call(), gateway.trace_share
    )
    return await gateway.scraping.answer(asked, request.receive)
