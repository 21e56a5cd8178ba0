"""How the fields of a scraper's results are doing: how often each is filled, and whether it drifts."""

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter
from msgspec import Meta, Struct

from scrapeyard.errors import ScraperNotFound
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.scrapers.routes import Site, Task
from scrapeyard.model.drift import FieldSketch
from scrapeyard.model.instants import instant
from scrapeyard.repository.catalogue.listings import Listings
from scrapeyard.store.ports.operations import Watched

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway


class FieldHealthDocument(Struct, frozen=True, kw_only=True):
    """One field of the results."""

    name: Annotated[str, Meta(description="Its name; `offer.price` for one inside another.")]
    fill_rate: Annotated[float, Meta(description="Share of earlier pages that had a value, from 0 to 1.")]
    recent_fill_rate: Annotated[float, Meta(description="The same of the last 20 pages.")]
    drift: Annotated[
        Literal["emptied", "filled", "changed", "repeated"] | None,
        Meta(description="How it is not as it was; null while it is."),
    ]
    since: Annotated[str | None, Meta(description="When that was noticed.")]
    before: Annotated[str | None, Meta(description="What it was, in words.")]
    now: Annotated[str | None, Meta(description="What it was in the 20 pages in which that was noticed.")]


class SiteHealthDocument(Struct, frozen=True, kw_only=True):
    """The fields of the results from one site."""

    site: Annotated[str, Meta(description="Host of the first page that a run fetched; empty if it fetched none.")]
    version: Annotated[str, Meta(description="Version of the scraper; another one begins anew.")]
    pages: Annotated[int, Meta(description="Results that were looked at.")]
    seen_at: Annotated[str, Meta(description="When the last of them was added.")]
    fields: Annotated[list[FieldHealthDocument], Meta(description="At most 60.")]


class DriftDocument(Struct, frozen=True, kw_only=True):
    """How the fields of a scraper's results are doing."""

    scraper: Annotated[str, Meta(description="Its id.")]
    drifted: Annotated[int, Meta(description="Fields that are not as they were, of all sites.")]
    sites: Annotated[list[SiteHealthDocument], Meta(description="By host, at most 1,000.")]


_HERE = "/api/scrapers/{site}/{task}/drift"
router = APIRouter(tags=["scrapers"], route_class=AnswerRoute)


@router.get(_HERE, summary="Drift of a scraper", responses=refusals(404, 422, 503))
async def get_drift(gateway: GatewayDep, site: Site, task: Task) -> DriftDocument:
    """How often each field of its results is filled, and which have emptied or changed, some seconds old."""
    return await _document(gateway, f"{site}/{task}")


@router.delete(_HERE, summary="Accept the drift of a scraper", responses=refusals(404, 413, 422, 503))
async def accept_drift(gateway: GatewayDep, site: Site, task: Task) -> DriftDocument:
    """Forgets what is known of its fields: what the next results have is normal. May be repeated."""
    await gateway.services.store.drift.forget(f"{site}/{task}")
    return await _document(gateway, f"{site}/{task}")


async def _document(gateway: "Gateway", scraper_id: str) -> DriftDocument:
    found = await gateway.services.store.drift.watched(scraper_id)
    if not found and not Listings(gateway.services.catalogue).of(scraper_id):
        raise ScraperNotFound(f"no scraper {scraper_id}")
    drifted = sum(len(each.sketch.drifted) for each in found)
    return DriftDocument(scraper=scraper_id, drifted=drifted, sites=[_site(each) for each in found])


def _site(watched: Watched) -> SiteHealthDocument:
    return SiteHealthDocument(
        site=watched.site,
        version=watched.sketch.version,
        pages=watched.sketch.pages,
        seen_at=instant(watched.changed_at),
        fields=[_field(name, sketch) for name, sketch in watched.sketch.fields.items()],
    )


def _field(name: str, sketch: FieldSketch) -> FieldHealthDocument:
    drifts = sketch.drift is not None
    return FieldHealthDocument(
        name=name,
        fill_rate=round(sketch.fill_rate, 4),
        recent_fill_rate=round(sketch.recent_fill_rate, 4),
        drift=sketch.drift,
        since=instant(sketch.since) if drifts else None,
        before=sketch.before if drifts else None,
        now=sketch.now if drifts else None,
    )
