"""Channels of a scraper: where they point, and moving them."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path
from msgspec import Meta, Struct
from pydantic import BaseModel, ConfigDict, Field

from scrapeyard.errors import Refusal, ScraperNotFound
from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.ownership import check_call
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import CHANNEL, VERSION
from scrapeyard.gateway.scrapers.routes import Site, Task
from scrapeyard.model.instants import instant
from scrapeyard.repository.catalogue.listings import Listings
from scrapeyard.repository.manifest.channels import MAX_CHANNELS
from scrapeyard.repository.port import Catalogue

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

HISTORY = 50
"""Maximum number of moves shown."""
_Channel = Annotated[str, Path(pattern=CHANNEL, description="Its name.", examples=["stable"])]


class MoveCall(BaseModel):
    """Where to point a channel."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"example": {"version": "1.4.1"}})

    version: str = Field(pattern=VERSION, max_length=64, description="A version that is there.")


class MoveDocument(Struct, frozen=True, kw_only=True):
    """One move."""

    channel: str
    before: Annotated[str, Meta(description="Empty: it was where the repository says.")]
    after: Annotated[str, Meta(description="Empty: the move was taken back.")]
    moved_at: str


class ChannelsDocument(Struct, frozen=True, kw_only=True):
    """A scraper's channels."""

    scraper: str
    channels: Annotated[
        dict[str, str], Meta(description="Channel → version, as now in force. An unset `stable` is the newest release.")
    ]
    moved: Annotated[dict[str, str], Meta(description="Those that operators moved.")]
    moves: Annotated[list[MoveDocument], Meta(description="The last moves, newest first.")]


_HERE = "/api/scrapers/{site}/{task}/channels"
router = APIRouter(tags=["scrapers"], route_class=AnswerRoute)


@router.get(_HERE, summary="Channels of a scraper", responses=refusals(404, 422, 503))
async def get_channels(gateway: GatewayDep, identity: IdentityDep, site: Site, task: Task) -> ChannelsDocument:
    """Where each points, which of them operators moved, and the last moves, newest first."""
    check_call(identity, f"{site}/{task}")
    document = await _document(gateway, f"{site}/{task}")
    if not Listings(gateway.services.catalogue).of(f"{site}/{task}") and not document.moves:
        raise ScraperNotFound(f"no scraper {site}/{task}")
    return document


@router.put(_HERE + "/{channel}", summary="Move a channel", responses=refusals(400, 404, 409, 413, 422, 503))
async def move_channel(
    gateway: GatewayDep, audit: AuditDep, *, site: Site, task: Task, channel: _Channel, call: MoveCall
) -> ChannelsDocument:
    """Points a channel to a version that is there, over what the repository says. In force here when this answers, and
    in the other gateways a moment later. Moving `stable` back is a roll back."""
    await _check(gateway.services.catalogue, f"{site}/{task}", call.version)
    if len({*gateway.channels.of(f"{site}/{task}"), channel}) > MAX_CHANNELS:
        raise Refusal("conflict", 409, f"{site}/{task} has {MAX_CHANNELS} moved channels already")
    before = gateway.channels.of(f"{site}/{task}").get(channel)
    await gateway.channels.move(f"{site}/{task}", channel, call.version)
    audit.change(before, call.version)
    return await _document(gateway, f"{site}/{task}")


@router.delete(_HERE + "/{channel}", summary="Take a move back", responses=refusals(404, 413, 422, 503))
async def unmove_channel(
    gateway: GatewayDep, audit: AuditDep, site: Site, task: Task, channel: _Channel
) -> ChannelsDocument:
    """The repository decides again where the channel points. May be repeated."""
    move = await gateway.channels.take_back(f"{site}/{task}", channel)
    audit.change(move.before if move else None)
    if move is None and not Listings(gateway.services.catalogue).of(f"{site}/{task}"):
        raise ScraperNotFound(f"no scraper {site}/{task}")
    return await _document(gateway, f"{site}/{task}")


async def _check(catalogue: Catalogue, scraper_id: str, version: str) -> None:
    """If the version is unknown here, refresh the repositories once. Raises ScraperNotFound, ScraperInvalid or Refusal
    (409) if a channel cannot point there."""
    if any(each.scraper is not None and each.scraper.is_builtin for each in Listings(catalogue).of(scraper_id)):
        raise Refusal("conflict", 409, f"{scraper_id} is built in and has no channels")
    await catalogue.obtain(f"{scraper_id}@{version}")


async def _document(gateway: "Gateway", scraper_id: str) -> ChannelsDocument:
    moves = await gateway.services.store.channels.moves(scraper_id, HISTORY)
    return ChannelsDocument(
        scraper=scraper_id,
        channels=dict(gateway.services.catalogue.channels(scraper_id)),
        moved=dict(gateway.channels.of(scraper_id)),
        moves=[
            MoveDocument(channel=move.channel, before=move.before, after=move.after, moved_at=instant(move.moved_at))
            for move in moves
        ],
    )
