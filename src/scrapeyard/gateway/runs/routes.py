"""`/api/scrape`: call a scraper, look runs up, list, cancel, logs, explain."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import PlainTextResponse, Response

from scrapeyard.errors import NotFound, ScrapeyardError
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.owned import RunId
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.dialects import status_word
from scrapeyard.gateway.http.openapi import HEADERS, LOCATION, TRACEPARENT, Responses, bad_ends, parameter, refusals
from scrapeyard.gateway.http.parameters import GatewayDep, Instant, Wait, seconds_of
from scrapeyard.gateway.http.patterns import SCRAPER_ID
from scrapeyard.gateway.runs import answers
from scrapeyard.gateway.runs.calls import read_call
from scrapeyard.gateway.runs.documents import (
    Handle,
    Handles,
    LogsDocument,
    RunDocument,
    RunDocuments,
    RunPageDocument,
    summary,
)
from scrapeyard.gateway.runs.explain import Explanation, explain
from scrapeyard.model import ExitReason, Limits, LogLine, Run, RunStatus
from scrapeyard.store.ports.runs import RunFilter

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

SCRAPE_PATH = "/api/scrape"
_DESCRIPTION = """Runs a scraper, or `builtin/page` when only a `url` is given.

The call waits for the end (`wait` seconds) and answers 200 with the run. Not finished in time: 202 with a handle, and
the run goes on, or 504 after cancelling it with `"on_timeout": "cancel"`. A run that ended badly: 502, or 504 when a
time limit ended it. With `urls` there is one run for each, and the answer is 200 when all have ended, whatever way.

The same `Idempotency-Key` with the same body runs once and answers alike."""

_RESPONSES: Responses = {
    200: {"model": RunDocument | RunDocuments, "description": "Finished in time and succeeded.", "headers": HEADERS},
    202: {"model": Handle | Handles, "description": "Goes on; it is durable.", "headers": HEADERS | LOCATION},
    **refusals(400, 404, 410, 413, 415, 422, 429, 503),
    **bad_ends(),
}

_REQUEST = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ScrapeCall"}}},
    },
    "parameters": [
        parameter("Prefer", "header", "`wait=N` or `respond-async`; `wait` in the body wins.", {"type": "string"}),
        parameter(
            "Idempotency-Key",
            "header",
            "The same key and body run once.",
            {"type": "string", "pattern": r"^[\x21-\x7e]{1,255}$"},
        ),
        TRACEPARENT,
    ],
}


scrape_router = APIRouter(tags=["scrape"], route_class=AnswerRoute)
router = APIRouter(tags=["runs"], route_class=AnswerRoute)


def answerer(gateway: "Gateway") -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """The function that HotPath calls: the hottest path skips routing and injection."""
    settings = gateway.services.settings.gateway

    async def scrape(request: Request) -> Response:
        asked = await read_call(request, settings, trace_share=gateway.trace_share)
        return await gateway.scraping.answer(asked, request.receive)

    return scrape


@scrape_router.post(
    SCRAPE_PATH, summary="Scrape", description=_DESCRIPTION, responses=_RESPONSES, openapi_extra=_REQUEST
)
async def scrape(gateway: GatewayDep, request: Request) -> Response:
    """Described here; HotPath answers before a route is looked for."""
    return await answerer(gateway)(request)


_Statuses = Annotated[
    list[Annotated[RunStatus, status_word(RunStatus)]] | None,
    Query(max_length=5, description="Any of these; may be repeated."),
]
_Reasons = Annotated[list[ExitReason] | None, Query(max_length=40, description="Any of these; may be repeated.")]


@router.get("/api/scrape", summary="List runs", responses=refusals(400, 422, 503))
async def list_runs(
    gateway: GatewayDep,
    identity: IdentityDep,
    *,
    status: _Statuses = None,
    exit_reason: _Reasons = None,
    scraper: Annotated[str | None, Query(pattern=SCRAPER_ID, description="`site/task`, any version.")] = None,
    created_after: Instant = None,
    created_before: Instant = None,
    cursor: Annotated[
        str | None, Query(pattern=r"^[A-Za-z0-9_=.:-]{1,256}$", description="From the page before.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Runs on one page.")] = 50,
) -> RunPageDocument:
    """Newest first, without results; a client's own. Follow `next_cursor` for more."""
    where = RunFilter(
        statuses=tuple(status) if status else None,
        exit_reasons=tuple(exit_reason) if exit_reason else None,
        scraper=scraper,
        owner=identity.only,
        created_after=seconds_of(created_after),
        created_before=seconds_of(created_before),
    )
    page = await gateway.services.store.runs.page(where, cursor, limit)
    return RunPageDocument(runs=[summary(run, also=True) for run in page.runs], next_cursor=page.next_cursor)


@router.get(
    "/api/scrape/{run_id}",
    summary="Look a run up",
    response_model=RunDocument,
    responses=refusals(404, 410, 422, 429, 503),
)
async def get_run(gateway: GatewayDep, request: Request, run_id: RunId, wait: Wait = 0) -> Response:
    """200 for a run there is, however it ended; 410 if retention has removed its result. With `wait`, answers when it
    has ended or the wait is over, whichever is first."""
    run = await gateway.lookup.get(run_id)
    if wait and not run.status.is_final:
        run = await _follow(gateway, request, run, min(wait, gateway.services.settings.gateway.max_wait_seconds))
    return await answers.answer(run, gateway.services.blobs, also=True)


@router.delete(
    "/api/scrape/{run_id}", summary="Cancel a run", response_model=RunDocument, responses=refusals(404, 410, 422, 503)
)
async def cancel_run(gateway: GatewayDep, run_id: RunId) -> Response:
    """A queued run is cancelled at once; a running one is told to stop; one that has ended stays as it is. May be
    repeated."""
    run = await gateway.cancelling.cancel(run_id, gateway.services.clock())
    if run is None:
        raise NotFound(f"no run {run_id}")
    return await answers.answer(run, gateway.services.blobs, also=True)


@router.get(
    "/api/scrape/{run_id}/logs",
    summary="Read a run's logs",
    response_model=LogsDocument,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **refusals(404, 410, 422, 503),
    },
)
async def get_logs(gateway: GatewayDep, request: Request, run_id: RunId) -> Response:
    """What the last recorded attempt wrote to stdout, stderr and its log. As lines of text with `Accept:
    text/plain`."""
    run = await gateway.lookup.get(run_id)
    answers.check_swept(run, "logs")
    lines, cut = await gateway.services.store.runs.logs(run.id)
    if _wants_text(request):
        text = "".join(map(_line, lines)) + ("(cut)\n" if cut else "")
        return PlainTextResponse(text, headers={"X-Content-Type-Options": "nosniff"})
    return respond(LogsDocument(id=run.id, lines=lines, cut=cut))


@router.get("/api/scrape/{run_id}/explain", summary="Explain a run", responses=refusals(404, 422, 503))
async def explain_run(gateway: GatewayDep, run_id: RunId) -> Explanation:
    """Where the time went, each fetch, limits used against limits allowed, and what to do."""
    run = await gateway.lookup.get(run_id)
    now = gateway.services.clock()
    return explain(run, _allowed(gateway, run), now, has_worker=await _has_worker(gateway, run, now))


async def _has_worker(gateway: "Gateway", run: Run, now: float) -> bool:
    """Whether a worker takes from the lane where a run waits; True for one that does not wait."""
    if run.status is not RunStatus.QUEUED:
        return True
    services = gateway.services
    workers = await services.store.workers.alive(now - services.settings.worker.lease_seconds)
    return any(run.lane in worker.lanes for worker in workers)


async def _follow(gateway: "Gateway", request: Request, run: Run, seconds: float) -> Run:
    with gateway.waiters.join([run]) as call:
        await call.wait(seconds, request.receive)
        if not call.open:
            return call.runs[0]
    return await gateway.lookup.get(run.id)


def _allowed(gateway: "Gateway", run: Run) -> Limits:
    """The scraper's current limits, capped by the ceiling; the ceiling alone if the scraper is gone."""
    ceiling = gateway.services.settings.limits.as_limits()
    try:
        limits = gateway.services.catalogue.resolve(run.scraper).limits.within(ceiling)
    except ScrapeyardError:
        limits = ceiling
    return limits if run.timeout_seconds is None else limits.within(_shortened(limits, run.timeout_seconds))


def _shortened(limits: Limits, wall_seconds: float) -> Limits:
    return Limits(**{name: getattr(limits, name) for name in Limits.__struct_fields__} | {"wall_seconds": wall_seconds})


def _wants_text(request: Request) -> bool:
    return request.headers.get("accept", "").strip().lower().startswith("text/plain")


def _line(line: LogLine) -> str:
    return f"{line.at_ms:10.1f} {line.stream} {line.level} {line.text}\n"
