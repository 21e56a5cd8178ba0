"""The state of a scraper: small values that its scripts keep between runs. Shown and removed here, never written."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path
from msgspec import Meta, Raw, Struct

from scrapeyard.errors import NotFound, ScraperNotFound
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.scrapers.routes import Site, Task
from scrapeyard.model.instants import instant
from scrapeyard.repository.catalogue.listings import Listings
from scrapeyard_sdk.state import STATE_KEY

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

_Key = Annotated[str, Path(pattern=STATE_KEY, description="As the script names it.", examples=["last_seen"])]


class StateEntryDocument(Struct, frozen=True, kw_only=True):
    """One value, without the value itself."""

    key: Annotated[str, Meta(description="As the script names it.")]
    bytes: Annotated[int, Meta(description="Size of the value as JSON.")]
    changed_at: Annotated[str, Meta(description="When a run wrote it last.")]


class StateDocument(Struct, frozen=True, kw_only=True):
    """What a scraper keeps between its runs."""

    scraper: Annotated[str, Meta(description="Its id; all versions share one state.")]
    entries: Annotated[list[StateEntryDocument], Meta(description="By key, at most 1,000.")]


class StateValueDocument(Struct, frozen=True, kw_only=True):
    """One value of a scraper's state."""

    scraper: Annotated[str, Meta(description="Its id; all versions share one state.")]
    key: Annotated[str, Meta(description="As the script names it.")]
    value: Annotated[Raw, Meta(description="Any JSON value.")]


_HERE = "/api/scrapers/{site}/{task}/state"
router = APIRouter(tags=["scrapers"], route_class=AnswerRoute)


@router.get(_HERE, summary="State of a scraper", responses=refusals(404, 422, 503))
async def get_state(gateway: GatewayDep, site: Site, task: Task) -> StateDocument:
    """The keys that its scripts keep between runs, with `ctx.state`."""
    return await _document(gateway, f"{site}/{task}")


@router.delete(_HERE, summary="Remove the state of a scraper", responses=refusals(404, 413, 422, 503))
async def clear_state(gateway: GatewayDep, site: Site, task: Task) -> StateDocument:
    """Removes every key: the next run begins as the first did. May be repeated."""
    await gateway.services.store.state.clear(f"{site}/{task}")
    return await _document(gateway, f"{site}/{task}")


@router.get(_HERE + "/{key}", summary="A value of a scraper's state", responses=refusals(404, 422, 503))
async def get_state_value(gateway: GatewayDep, site: Site, task: Task, key: _Key) -> StateValueDocument:
    """One value, as the script wrote it."""
    value = await gateway.services.store.state.read(f"{site}/{task}", key)
    if value is None:
        raise NotFound(f"{site}/{task} keeps nothing under {key}")
    return StateValueDocument(scraper=f"{site}/{task}", key=key, value=Raw(value))


@router.delete(_HERE + "/{key}", summary="Remove a value of a scraper's state", responses=refusals(404, 413, 422, 503))
async def remove_state_value(gateway: GatewayDep, site: Site, task: Task, key: _Key) -> StateDocument:
    """Removes one key. May be repeated."""
    store, scraper_id = gateway.services.store.state, f"{site}/{task}"
    await store.change(scraper_id, key, None, gateway.services.clock())
    return await _document(gateway, scraper_id)


async def _document(gateway: "Gateway", scraper_id: str) -> StateDocument:
    found = await gateway.services.store.state.entries(scraper_id)
    if not found and not Listings(gateway.services.catalogue).of(scraper_id):
        raise ScraperNotFound(f"no scraper {scraper_id}")
    entries = [
        StateEntryDocument(key=each.key, bytes=each.bytes, changed_at=instant(each.changed_at)) for each in found
    ]
    return StateDocument(scraper=scraper_id, entries=entries)
