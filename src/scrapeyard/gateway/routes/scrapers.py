"""Which scrapers there are and how they are called."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from scrapeyard.errors import QueueUnavailable, ScraperNotFound
from scrapeyard.gateway import documents
from scrapeyard.gateway.openapi import refusals
from scrapeyard.gateway.operation_schemas import ScraperDocument, ScrapersDocument
from scrapeyard.gateway.schemas import NAME
from scrapeyard.gateway.services import Gateway
from scrapeyard.model import Limits, Refresh
from scrapeyard.queues import channels
from scrapeyard.repository.port import Listing
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
_Site = Annotated[str, Path(pattern=NAME, description="The part of the id before the slash.", examples=["builtin"])]
_Task = Annotated[str, Path(pattern=NAME, description="The part after it.", examples=["page"])]


def routes(gateway: Gateway) -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["scrapers"])
    services = gateway.services

    @router.get(
        "/api/scrapers",
        summary="List scrapers",
        description="All of them, by id; an invalid one says why it cannot run.",
        operation_id="list_scrapers",
        response_model=ScrapersDocument,
        responses=refusals(),
    )
    async def list_scrapers() -> Response:
        return _listed(gateway)

    @router.post(
        "/api/scrapers/refresh",
        summary="Look for new scrapers now",
        description="Looks at the repository here and tells every worker to look; answers with what is there.",
        operation_id="refresh_scrapers",
        response_model=ScrapersDocument,
        responses=refusals(413, 503),
    )
    async def refresh_scrapers() -> Response:
        await services.catalogue.refresh()
        try:
            await services.queue.send(channels.SIGNALS, channels.encode(Refresh()))
        except QueueUnavailable as error:
            log.warning("gateway.signal_lost", run="-", error=error.message)
            raise
        return _listed(gateway)

    @router.get(
        "/api/scrapers/{site}/{task}",
        summary="Describe a scraper",
        description="How it is called: schemas, limits with the platform's ceiling applied, hosts it may reach.",
        operation_id="get_scraper",
        response_model=ScraperDocument,
        responses=refusals(404, 422),
    )
    async def get_scraper(site: _Site, task: _Task) -> Response:
        wanted = f"{site}/{task}"
        for listing in services.catalogue.listings():
            if listing.id == wanted:
                return _json(_whole(listing, services.settings.limits.as_limits()))
        raise ScraperNotFound(f"no scraper {wanted}")

    return router


def _listed(gateway: Gateway) -> Response:
    return _json({"scrapers": [_brief(listing) for listing in gateway.services.catalogue.listings()]})


def _brief(listing: Listing) -> dict[str, Any]:
    scraper = listing.scraper
    return {
        "id": listing.id,
        "version": listing.version,
        "name": scraper.name if scraper else "",
        "description": scraper.description if scraper else "",
        "builtin": scraper.is_builtin if scraper else False,
        "valid": scraper is not None,
        "problem": listing.problem,
    }


def _whole(listing: Listing, ceiling: Limits) -> dict[str, Any]:
    scraper = listing.scraper
    names = ("entry", "lane", "network", "allowed_hosts", "requirements", "input_schema", "output_schema")
    more: dict[str, Any] = {name: getattr(scraper, name, None) for name in names}
    return {**_brief(listing), **more, "limits": scraper.limits.within(ceiling) if scraper else None}


def _json(document: dict[str, Any]) -> Response:
    return Response(documents.encode(document), media_type=documents.JSON)
