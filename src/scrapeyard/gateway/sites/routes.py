"""`/api/sites`: how each site is treated, and how it is doing."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.scrapers.documents import answer
from scrapeyard.gateway.sites.schemas import SITE, SiteCall, SiteDocument, SitePageDocument

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

_Site = Annotated[str, Path(pattern=SITE, description="A registrable domain or an address.", examples=["shop.example"])]


def routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["sites"])
    desk = gateway.sites
    here = "/api/sites/{site}"

    @router.get(
        "/api/sites",
        summary="List sites",
        description="Those that operators wrote rules for, and those asked for within a day, by name. Follow "
        "`next_cursor` for more.",
        operation_id="list_sites",
        response_model=SitePageDocument,
        responses=refusals(422, 503),
    )
    async def list_sites(
        cursor: Annotated[str | None, Query(pattern=SITE, description="From the page before.")] = None,
        limit: Annotated[int, Query(ge=1, le=200, description="Sites on one page.")] = 50,
    ) -> Response:
        return answer(await desk.page(cursor, limit))

    @router.get(
        here,
        summary="A site",
        description="How it is treated and how it is doing. Every site is treated somehow, so that there is no 404.",
        operation_id="get_site",
        response_model=SiteDocument,
        responses=refusals(400, 422, 503),
    )
    async def get_site(site: _Site) -> Response:
        return answer(await desk.get(site))

    @router.put(
        here,
        summary="Write a site's rules",
        description="Whole: what is left out is as the settings say. In force in every worker within a second, also "
        "for requests that wait already.",
        operation_id="put_site",
        response_model=SiteDocument,
        responses=refusals(400, 409, 413, 422, 503),
    )
    async def put_site(site: _Site, call: SiteCall) -> Response:
        return answer(await desk.put(site, call))

    @router.delete(
        here,
        summary="Delete a site's rules",
        description="The settings decide again. May be repeated.",
        operation_id="delete_site",
        response_model=SiteDocument,
        responses=refusals(400, 413, 422, 503),
    )
    async def delete_site(site: _Site) -> Response:
        return answer(await desk.remove(site))

    @router.post(
        here + "/reset",
        summary="Make a site well again",
        description="Closes its breaker and forgets slow-downs, latency and Retry-After, for all workers. Its rules "
        "stay. May be repeated.",
        operation_id="reset_site",
        response_model=SiteDocument,
        responses=refusals(400, 413, 422, 503),
    )
    async def reset_site(site: _Site) -> Response:
        return answer(await desk.reset(site))

    return router
