"""Channels of a scraper: where they point, and moving them."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from scrapeyard.errors import ScraperNotFound
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.patterns import CHANNEL
from scrapeyard.gateway.http.problems import Refusal
from scrapeyard.gateway.runs.documents import instant
from scrapeyard.gateway.scrapers.documents import answer
from scrapeyard.gateway.scrapers.routes import Site, Task
from scrapeyard.gateway.scrapers.schemas import ChannelsDocument, MoveCall
from scrapeyard.repository.catalogue.listings import Listings
from scrapeyard.repository.manifest.channels import MAX_CHANNELS
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.overrides import ChannelMove

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

HISTORY = 50
"""Maximum number of moves shown."""
_Channel = Annotated[str, Path(pattern=CHANNEL, description="Its name.", examples=["stable"])]


def routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["scrapers"])
    catalogue = gateway.services.catalogue
    here = "/api/scrapers/{site}/{task}/channels"

    @router.get(
        here,
        summary="Channels of a scraper",
        description="Where each points, which of them operators moved, and the last moves, newest first.",
        operation_id="get_channels",
        response_model=ChannelsDocument,
        responses=refusals(404, 422, 503),
    )
    async def get_channels(site: Site, task: Task) -> Response:
        document = await _document(gateway, f"{site}/{task}")
        if not Listings(catalogue).of(f"{site}/{task}") and not document["moves"]:
            raise ScraperNotFound(f"no scraper {site}/{task}")
        return answer(document)

    @router.put(
        here + "/{channel}",
        summary="Move a channel",
        description="Points a channel to a version that is there, over what the repository says. In force here when "
        "this answers, and in the other gateways a moment later. Moving `stable` back is a roll back.",
        operation_id="move_channel",
        response_model=ChannelsDocument,
        responses=refusals(400, 404, 409, 413, 422, 503),
    )
    async def move_channel(site: Site, task: Task, channel: _Channel, call: MoveCall) -> Response:
        await _check(catalogue, f"{site}/{task}", call.version)
        if len({*gateway.channels.of(f"{site}/{task}"), channel}) > MAX_CHANNELS:
            raise Refusal("conflict", 409, f"{site}/{task} has {MAX_CHANNELS} moved channels already")
        await gateway.channels.move(f"{site}/{task}", channel, call.version)
        return answer(await _document(gateway, f"{site}/{task}"))

    @router.delete(
        here + "/{channel}",
        summary="Take a move back",
        description="The repository decides again where the channel points. May be repeated.",
        operation_id="unmove_channel",
        response_model=ChannelsDocument,
        responses=refusals(404, 413, 422, 503),
    )
    async def unmove_channel(site: Site, task: Task, channel: _Channel) -> Response:
        move = await gateway.channels.take_back(f"{site}/{task}", channel)
        if move is None and not Listings(catalogue).of(f"{site}/{task}"):
            raise ScraperNotFound(f"no scraper {site}/{task}")
        return answer(await _document(gateway, f"{site}/{task}"))

    return router


async def _check(catalogue: Catalogue, scraper_id: str, version: str) -> None:
    """If the version is unknown here, refresh the repositories once. Raises ScraperNotFound, ScraperInvalid or Refusal
    (409) if a channel cannot point there."""
    if any(each.scraper is not None and each.scraper.is_builtin for each in Listings(catalogue).of(scraper_id)):
        raise Refusal("conflict", 409, f"{scraper_id} is built in and has no channels")
    await catalogue.obtain(f"{scraper_id}@{version}")


async def _document(gateway: "Gateway", scraper_id: str) -> dict[str, Any]:
    moves = await gateway.services.store.channels.moves(scraper_id, HISTORY)
    return {
        "scraper": scraper_id,
        "channels": dict(gateway.services.catalogue.channels(scraper_id)),
        "moved": dict(gateway.channels.of(scraper_id)),
        "moves": [_move(each) for each in moves],
    }


def _move(move: ChannelMove) -> dict[str, Any]:
    return {
        "channel": move.channel,
        "before": move.before,
        "after": move.after,
        "moved_at": instant(move.moved_at),
    }
