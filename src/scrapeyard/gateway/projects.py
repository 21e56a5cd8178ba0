"""`/api/projects`: Scrapy projects that are uploaded, where the operator has set a folder for them."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Request
from msgspec import Meta, Struct

from scrapeyard.errors import Refusal, Unavailable
from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import NAME
from scrapeyard.repository.scrapy.uploads import UploadedProjects

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

_Project = Annotated[str, Path(pattern=NAME, description="The site of its scrapers.", examples=["quotes"])]
_Version = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="As its author calls it.", examples=["1763464000"])
]
_EGG = {
    "requestBody": {
        "required": True,
        "description": "An egg: a zip with the project's packages and `EGG-INFO/entry_points.txt`.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_HERE = "/api/projects/{project}/versions/{version}"


class UploadDocument(Struct, frozen=True, kw_only=True):
    """A project that was uploaded."""

    project: Annotated[str, Meta(description="The site of its scrapers.")]
    version: Annotated[str, Meta(description="The version of its scrapers.")]
    scrapers: Annotated[tuple[str, ...], Meta(description="Ids of the scrapers made of its spiders.")]


class ProjectDocument(Struct, frozen=True, kw_only=True):
    """The uploads of a project that are there."""

    project: Annotated[str, Meta(description="The site of its scrapers.")]
    versions: Annotated[list[str], Meta(description="Versions of its scrapers, oldest first.")]


router = APIRouter(tags=["projects"], route_class=AnswerRoute)


@router.put(_HERE, summary="Upload a Scrapy project", responses=refusals(400, 409, 413, 422, 503), openapi_extra=_EGG)
async def put_project(
    gateway: GatewayDep, audit: AuditDep, request: Request, project: _Project, version: _Version
) -> UploadDocument:
    """Makes a scraper of each spider, without running anything. The scrapers can be called when the answer comes.

    Needs `repository.uploads`, the folder where they are stored. An older upload of the same version is replaced."""
    uploads = _uploads(gateway)
    egg = await request.body()
    try:
        added, ids = await asyncio.to_thread(uploads.add, project, version, egg)
    except OSError as error:
        raise Unavailable(f"the upload cannot be stored in repository.uploads: {error.strerror or error}") from None
    told = UploadDocument(project=project, version=added.version, scrapers=ids)
    audit.change(None, told)
    await gateway.refreshing.refresh()
    return told


@router.get("/api/projects/{project}", summary="List the uploads of a project", responses=refusals(409, 422))
async def get_project(gateway: GatewayDep, project: _Project) -> ProjectDocument:
    """Versions that were uploaded; none for a project that was not."""
    return await _document(_uploads(gateway), project)


@router.delete(_HERE, summary="Delete an upload", responses=refusals(400, 404, 409, 413, 422, 503))
async def delete_version(gateway: GatewayDep, audit: AuditDep, project: _Project, version: _Version) -> ProjectDocument:
    """Calls that name this version are refused from then on. Answers with those that are left."""
    return await _delete(gateway, audit, project, version)


@router.delete("/api/projects/{project}", summary="Delete a project", responses=refusals(400, 404, 409, 413, 422, 503))
async def delete_project(gateway: GatewayDep, audit: AuditDep, project: _Project) -> ProjectDocument:
    """Removes every upload of it. Answers with those that are left: none."""
    return await _delete(gateway, audit, project)


async def _delete(gateway: "Gateway", audit: AuditDep, project: str, version: str = "") -> ProjectDocument:
    uploads = _uploads(gateway)
    try:
        await asyncio.to_thread(uploads.delete, project, version)
    except OSError as error:
        raise Unavailable(f"repository.uploads cannot be changed: {error.strerror or error}") from None
    audit.change({"project": project, "version": version})
    await gateway.refreshing.refresh()
    return await _document(uploads, project)


async def _document(uploads: UploadedProjects, project: str) -> ProjectDocument:
    known = await asyncio.to_thread(uploads.versions, project)
    return ProjectDocument(project=project, versions=[each.version for each in known])


def _uploads(gateway: "Gateway") -> UploadedProjects:
    """Raises Refusal (409) if the operator has set no folder, or only signed scrapers run."""
    repository = gateway.services.settings.repository
    if repository.uploads is None:
        words = (
            "projects cannot be uploaded here: scrapers come from repositories; the operator may set repository.uploads"
        )
        raise Refusal("conflict", 409, words)
    if repository.public_keys:
        raise Refusal("conflict", 409, "only signed scrapers run here; sign the project and publish it")
    return UploadedProjects(repository.uploads)
