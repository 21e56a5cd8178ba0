"""The HTTP API as an ASGI application."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute
from starlette.types import Scope

from scrapeyard.gateway import cache, extraction, forgetting, projects, proxies, secrets, sinks, sites, usage, webhooks
from scrapeyard.gateway.audit import routes as audit
from scrapeyard.gateway.audit.addresses import CallerAddresses
from scrapeyard.gateway.audit.middleware import REQUEST_ID, Audited
from scrapeyard.gateway.auth import routes as keys
from scrapeyard.gateway.auth import session_routes as sessions
from scrapeyard.gateway.auth.authentication import Authentication
from scrapeyard.gateway.auth.permissions import RouteAccess
from scrapeyard.gateway.crawls import routes as crawls
from scrapeyard.gateway.crawls.calls import MapCall
from scrapeyard.gateway.document import reference
from scrapeyard.gateway.document.describe import describe
from scrapeyard.gateway.doors.door import CompatibleDoors, Door
from scrapeyard.gateway.doors.firecrawl.door import FirecrawlDoor
from scrapeyard.gateway.doors.firecrawl.watching import FirecrawlWatching
from scrapeyard.gateway.doors.flaresolverr import FlareSolverrDoor
from scrapeyard.gateway.doors.scrapy.scrapyd import ScrapydDoor
from scrapeyard.gateway.doors.scrapy.scrapyrt import ScrapyrtDoor
from scrapeyard.gateway.extraction import ExtractCall
from scrapeyard.gateway.graphql import routes as graphql
from scrapeyard.gateway.graphql.routes import GraphqlCall
from scrapeyard.gateway.http import problems
from scrapeyard.gateway.http.doors import Doors
from scrapeyard.gateway.http.middleware import BodyLimit, HeadAnswers, HotPath, LastResort
from scrapeyard.gateway.http.paths import PathAliases
from scrapeyard.gateway.http.preferences import Preferences
from scrapeyard.gateway.jobs import exports, items, metrics
from scrapeyard.gateway.jobs import routes as jobs
from scrapeyard.gateway.jobs import stream_routes as job_streams
from scrapeyard.gateway.jobs.calls import AppendCall, JobCall
from scrapeyard.gateway.jobs.uploads import takes_upload
from scrapeyard.gateway.limits.middleware import Limited
from scrapeyard.gateway.operations import alerts
from scrapeyard.gateway.operations import routes as operations
from scrapeyard.gateway.operations.request_metrics import RequestMetrics, RouteWitness
from scrapeyard.gateway.page import Dashboard
from scrapeyard.gateway.runs import artifacts, events, live
from scrapeyard.gateway.runs import routes as runs
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.gateway.runs.submit import RunProblem
from scrapeyard.gateway.schedules import routes as schedules
from scrapeyard.gateway.scrapers import channels, drift, source, state
from scrapeyard.gateway.scrapers import routes as scrapers
from scrapeyard.gateway.services import Gateway, GatewayServices
from scrapeyard.model import Scraper
from scrapeyard.settings import GatewaySettings, Settings

__all__ = ["GatewayServices", "api_document", "create_app"]

ROUTERS = (
    *(runs.scrape_router, runs.router, events.router, live.router, artifacts.router),
    crawls.router,
    extraction.router,
    *(jobs.router, items.router, exports.result_router, metrics.router, job_streams.router, exports.router),
    *(sinks.router, schedules.router, webhooks.router),
    *(
        scrapers.router,
        channels.router,
        source.router,
        projects.router,
        drift.router,
        state.router,
        sites.router,
        proxies.router,
        cache.router,
        secrets.router,
        forgetting.router,
    ),
    *(operations.router, alerts.router, keys.router, sessions.router, sessions.callback_router),
    *(usage.router, audit.router, graphql.router),
)
"""In the order in which the document lists their routes."""
CALLS = (ScrapeCall, ExtractCall, MapCall, JobCall, AppendCall, GraphqlCall)
"""Bodies that routes read themselves."""
PROBLEMS = (problems.Problem, RunProblem)
"""What routes answer if they refuse a call."""
DOORS: Final[dict[str, Callable[[Settings], Door]]] = {
    "firecrawl": FirecrawlDoor,
    "flaresolverr": FlareSolverrDoor,
    "scrapyd": ScrapydDoor,
    "scrapyrt": ScrapyrtDoor,
}
"""By the name that `gateway.doors` has for each."""
TAKEN = (
    *("Authorization", "X-API-Key", "Content-Type", "Idempotency-Key"),
    *("Last-Event-ID", "Prefer", "Range", "traceparent"),
)
EXPOSED = (
    *("Location", "Retry-After", "Preference-Applied", "Idempotency-Replayed", "traceparent"),
    *("Content-Disposition", "Content-Range", "ETag", "Next-Cursor", REQUEST_ID),
    *("RateLimit", "RateLimit-Policy"),
)


def create_app(services: GatewayServices) -> FastAPI:
    """Build the application. Its lifespan starts and stops the gateway's own parts, never the services passed in."""
    return application(Gateway(services))


def application(gateway: Gateway) -> FastAPI:
    """Build the application around a gateway that the caller keeps a reference to."""
    settings = gateway.services.settings.gateway
    app = FastAPI(
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(gateway),
        routes=[*_routes(), *reference.ROUTES],
    )
    app.state.gateway = gateway
    problems.install(app)
    app.add_middleware(HotPath, path=runs.SCRAPE_PATH, answer=runs.answerer(gateway))
    app.add_middleware(RouteWitness, hot=runs.SCRAPE_PATH)
    app.add_middleware(BodyLimit, max_bytes=int(settings.max_body_mb * 2**20), larger=_upload_limit(settings))
    default = gateway.services.settings.clients.as_limits()
    app.add_middleware(
        Limited,
        limiter=gateway.services.limiter,
        budgets=gateway.client_budgets,
        default=default,
        handed_out=gateway.handed_out,
    )
    access = RouteAccess(app.routes)
    app.add_middleware(Authentication, authenticator=gateway.authenticator, access=access, key_fault=gateway.keys.fault)
    _wrap(app, settings, gateway.services.settings.log.lang)
    _audit(app, gateway)
    app.add_middleware(Dashboard)
    app.add_middleware(RequestMetrics, metrics=gateway.metrics)
    doors = [DOORS[name](gateway.services.settings) for name in settings.doors]
    app.add_middleware(CompatibleDoors, doors=doors, max_body=int(settings.max_body_mb * 2**20))
    if "firecrawl" in settings.doors:
        app.add_middleware(FirecrawlWatching)
    _document(app, gateway)
    return app


def _lifespan(gateway: Gateway) -> Any:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await gateway.start()
        try:
            yield
        finally:
            await gateway.stop()

    return lifespan


def _wrap(app: FastAPI, settings: GatewaySettings, language: str) -> None:
    app.add_middleware(LastResort)
    app.add_middleware(HeadAnswers)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=list(TAKEN),
            expose_headers=list(EXPOSED),
        )
    app.add_middleware(Preferences, dialect=settings.dialect, language=language)
    app.add_middleware(Doors, hosts=(settings.host, *settings.hosts), origins=settings.cors_origins)


def _audit(app: FastAPI, gateway: Gateway) -> None:
    """Around everything that may refuse a call, and with the paths that routes have."""
    services = gateway.services
    app.add_middleware(
        Audited,
        audit=gateway.audit,
        routes=app.routes,
        addresses=CallerAddresses(services.settings.gateway.trusted_proxies),
        clock=services.clock,
    )
    app.add_middleware(PathAliases)


def _upload_limit(settings: GatewaySettings) -> Callable[[Scope], int | None]:
    """Uploaded lists may be larger than other bodies, on the paths that accept them."""
    most = int(settings.max_upload_mb * 2**20)

    def limit(scope: Scope) -> int | None:
        return most if takes_upload(scope) else None

    return limit


def _document(app: FastAPI, gateway: Gateway) -> None:
    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            known = gateway.services.catalogue.listings()
            builtins = [listing.scraper for listing in known if listing.scraper and listing.scraper.is_builtin]
            app.openapi_schema = api_document(gateway.services.settings.gateway, builtins)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def api_document(settings: GatewaySettings, builtins: Iterable[Scraper]) -> dict[str, Any]:
    """The OpenAPI document of a gateway with these settings and built-in scrapers."""
    return describe(_routes(), settings, CALLS, PROBLEMS, builtins)


def _routes() -> list[BaseRoute]:
    return [route for router in ROUTERS for route in router.routes]
