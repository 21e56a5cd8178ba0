"""Artifacts of runs. Scraped bytes are always sent as an attachment, never rendered in our origin or sniffed."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response, StreamingResponse

from scrapeyard.errors import NotFound
from scrapeyard.gateway.http.downloads import AnyResponse, attachment, safe_type
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import RunId
from scrapeyard.gateway.runs import documents
from scrapeyard.gateway.runs.schemas import ArtifactsDocument
from scrapeyard.model import Artifact, Run

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

_Name = Annotated[str, Path(pattern=r"^[^/\x00-\x1f\x7f]{1,255}$", description="As the listing names it.")]
_ANY = {
    "description": "The bytes, as an attachment.",
    "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
}


def routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["runs"])
    services = gateway.services

    @router.get(
        "/api/scrape/{run_id}/artifacts",
        summary="List a run's artifacts",
        description="Name, type and size of everything the run kept.",
        operation_id="list_artifacts",
        response_model=ArtifactsDocument,
        responses=refusals(404, 422, 503),
    )
    async def list_artifacts(run_id: RunId) -> Response:
        run = await gateway.lookup.get(run_id)
        kept = [documents.artifact(run.id, artifact) for artifact in run.artifacts]
        return Response(documents.encode({"artifacts": kept}), media_type=documents.JSON)

    @router.get(
        "/api/scrape/{run_id}/artifacts/{name}",
        summary="Download an artifact",
        description="Streamed, with its own content type.",
        operation_id="get_artifact",
        response_class=AnyResponse,
        response_model=None,
        responses={200: _ANY, **refusals(404, 422, 503)},
    )
    async def get_artifact(run_id: RunId, name: _Name) -> Response:
        artifact = _named(await gateway.lookup.get(run_id), name)
        pieces = services.blobs.stream(artifact.key)
        first = await anext(pieces, b"")
        content_type = safe_type(artifact.content_type)
        return StreamingResponse(_chain(first, pieces), headers=_headers(artifact), media_type=content_type)

    return router


def _named(run: Run, name: str) -> Artifact:
    for artifact in run.artifacts:
        if artifact.name == name:
            return artifact
    raise NotFound(f"run {run.id} kept no artifact of that name")


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def _headers(artifact: Artifact) -> dict[str, str]:
    return attachment(artifact.name) | {"Content-Length": str(artifact.size)}
