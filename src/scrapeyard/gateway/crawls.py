"""`/api/crawl` and `/api/map`: a whole site in one call, and the URLs of one."""

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from scrapeyard.builtin import MAP, PAGE
from scrapeyard.builtin.pages.port import PARTS
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.openapi import HEADERS, LOCATION, Responses, bad_ends, parameter, refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import KEY_PATTERN, Url
from scrapeyard.gateway.jobs.calls import TEXT, Choice, ExportCall, JobCall, WebhookCall
from scrapeyard.gateway.jobs.create import Key
from scrapeyard.gateway.jobs.documents import JobDocument
from scrapeyard.gateway.jobs.policies import JobPolicyCall
from scrapeyard.gateway.runs.calls import digest_of, idempotency_key, read_call
from scrapeyard.gateway.runs.documents import Handle, RunDocument
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.inputs.source import MAX_DEPTH, MAX_ITEMS, QueryMode, ScopeKind

router = APIRouter(tags=["crawl"], route_class=AnswerRoute)
_FORMATS = ("markdown",)


class CrawlCall(Choice):
    """A crawl of one site. It becomes a job, with these defaults."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"url": "https://shop.example/"},
                {"url": "https://shop.example/docs/", "scope": "path", "limit": 200, "formats": ["markdown", "links"]},
            ]
        }
    )

    url: Url = Field(description="Where to begin.")
    depth: int = Field(3, ge=0, le=MAX_DEPTH, strict=True, description="Links from the start to the farthest page.")
    limit: int = Field(1000, ge=1, le=MAX_ITEMS, strict=True, description="Maximum pages.")
    scope: ScopeKind = Field(
        "host",
        description="Which links are followed: those to the same host (`www.` or not), to the same site, or below the "
        "path of `url`.",
    )
    query: QueryMode = Field(
        "keep",
        description="The query of a link: as it is; `clean`: without utm_source and the like; `sort`: also sorted; "
        "`drop`: none.",
    )
    sitemap: bool = Field(True, strict=True, description="Whether the pages of the site's sitemaps are taken, too.")
    formats: list[Literal[PARTS]] = Field(  # type: ignore[valid-type]  # it is a tuple of texts
        list(_FORMATS), max_length=len(PARTS), description="What is read of each page beside its head and its links."
    )
    robots: Literal["obey", "ignore"] = Field("obey", description="Whether robots.txt is obeyed.")
    rate: float | None = Field(
        None, gt=0, le=100_000, description="Pages begun a second; null: as fast as the politeness of sites allows."
    )
    concurrency: int | None = Field(None, ge=1, le=100_000, description="Pages at once; null: as workers take them.")
    policy: JobPolicyCall = Field(JobPolicyCall(), description="As of a job; `robots`, `rate`, `concurrency` go first.")
    name: str = Field("", max_length=200, pattern=TEXT, description="For people.")
    exports: list[ExportCall] = Field(
        default_factory=list, max_length=20, description="Files to be made when it has ended; `pages` is made for this."
    )
    webhook: WebhookCall | None = Field(None, description="Who is told of what happens to it.")

    def job_call(self) -> JobCall:
        """The job that it stands for."""
        own = {"robots": self.robots, "rate": self.rate, "concurrency": self.concurrency}
        policy = self.policy.model_dump(exclude_unset=True)
        policy |= {name: value for name, value in own.items() if name in self.model_fields_set or name not in policy}
        fields = {
            "scraper": PAGE,
            "start_url": self.url,
            "follow": {
                **self.model_dump(include={"depth", "limit", "scope", "query", "sitemap", "include", "exclude"}),
                "count_beyond": True,
            },
            "input": {"include": list(dict.fromkeys(["links", *self.formats]))},
            "policy": policy,
            "name": self.name,
            "exports": [export.model_dump(exclude_unset=True) for export in self.exports],
            "webhook": None if self.webhook is None else self.webhook.model_dump(exclude_unset=True),
        }
        return JobCall.model_validate(fields)


class MapCall(Choice):
    """The URLs of a site to list."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"url": "https://shop.example/"}, {"url": "https://shop.example/", "search": "lamp"}]
        }
    )

    url: Url = Field(description="A page of the site.")
    limit: int = Field(5000, ge=1, le=100_000, strict=True, description="Maximum URLs.")
    scope: ScopeKind = Field("host", description="Which URLs are listed: of the same host, site, or below the path.")
    search: str = Field("", max_length=200, description="Only URLs that contain this word.")
    sitemap: bool = Field(True, strict=True, description="Whether the site's sitemaps are read.")
    wait: float | None = Field(None, ge=0, description="Seconds to wait for the end; 0 answers at once with a handle.")

    def scrape_call(self) -> ScrapeCall:
        """The call of `builtin/map` that it stands for."""
        asked = self.model_dump(exclude={"wait"}, exclude_unset=True)
        return ScrapeCall.model_validate({"scraper": MAP, "input": asked, "wait": self.wait})


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
    openapi_extra={"parameters": [_key("The same key and body make one job.")]},
)
async def crawl(gateway: GatewayDep, request: Request, call: CrawlCall) -> Response:
    """Makes a job that follows the links of a site from one page, and reads its sitemaps. It obeys robots.txt and the
    site's rate. Watch it, cancel it and download its pages as those of any job, by its `links`. At the end
    `source.found` tells how many pages the sitemaps gave and how many links lie beyond the depth, and `warnings` what
    else was left out."""
    given = idempotency_key(request.headers.get("idempotency-key"))
    key = None if given is None else Key(key=given, digest=lambda: "crawl:" + digest_of(call.model_dump(mode="json")))
    created = await gateway.jobs.creation.create_job(call.job_call(), key=key)
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
    asked = await read_call(request, settings, lambda body: MapCall.model_validate(body).scrape_call())
    return await gateway.scraping.answer(asked, request.receive)
