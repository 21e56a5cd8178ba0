"""Artifacts of runs. Scraped bytes are always sent as an attachment, never rendered in our origin or sniffed."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response, StreamingResponse

from scrapeyard.errors import NotFound, Swept
from scrapeyard.gateway.auth.owned import RunId
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.downloads import BYTES, AnyResponse, attachment, begun, safe_type
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.runs.answers import check_swept
from scrapeyard.gateway.runs.documents import ArtifactsDocument, artifact
from scrapeyard.model import Artifact, Run

_Name = Annotated[str, Path(pattern=r"^[^/\x00-\x1f\x7f]{1,255}$", description="As the listing names it.")]
_ANY = {"description": "The bytes, as an attachment.", "content": BYTES}


router = APIRouter(tags=["runs"], route_class=AnswerRoute)


@router.get("/api/scrape/{run_id}/artifacts", summary="List a run's artifacts", responses=refusals(404, 422, 503))
async def list_artifacts(gateway: GatewayDep, run_id: RunId) -> ArtifactsDocument:
    """Name, type and size of everything the run kept."""
    run = await gateway.lookup.get(run_id)
    return ArtifactsDocument(artifacts=[artifact(run.id, kept) for kept in run.artifacts])


@router.get(
    "/api/scrape/{run_id}/artifacts/{name}",
    summary="Download an artifact",
    response_class=AnyResponse,
    responses={200: _ANY, **refusals(404, 410, 422, 503)},
)
async def get_artifact(gateway: GatewayDep, run_id: RunId, name: _Name) -> Response:
    """Streamed, with its own content type."""
    run = await gateway.lookup.get(run_id)
    kept = _named(run, name)
    check_swept(run, kept.kind)
    try:
        pieces = await begun(gateway.services.blobs.stream(kept.key))
    except NotFound:
        raise Swept(f"artifact {name} of run {run_id} is no longer in the blob store") from None
    return StreamingResponse(pieces, headers=_headers(kept), media_type=safe_type(kept.content_type))


def _named(run: Run, name: str) -> Artifact:
    for kept in run.artifacts:
        if kept.name == name:
            return kept
    raise NotFound(f"run {run.id} kept no artifact of that name")


def _headers(artifact: Artifact) -> dict[str, str]:
    return attachment(artifact.name) | {"Content-Length": str(artifact.size)}
