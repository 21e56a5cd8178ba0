"""Which scrapers there are and how they are called."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.credentials import unauthenticated
from scrapeyard.gateway.auth.ownership import check_call
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.openapi import parameter, refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import NAME, VERSION_WANTED
from scrapeyard.gateway.scrapers import documents, refresh
from scrapeyard.gateway.scrapers.documents import HookDocument, ScraperDocument, ScrapersDocument
from scrapeyard.model.identity import NOBODY

Site = Annotated[str, Path(pattern=NAME, description="The part of the id before the slash.", examples=["builtin"])]
Task = Annotated[str, Path(pattern=NAME, description="The part after it.", examples=["page"])]
_OfSite = Annotated[str | None, Query(pattern=NAME, description="Only of this site.", examples=["shop"])]
_Words = Annotated[
    str | None, Query(max_length=100, description="Only where this is in the id, the name or the description.")
]
WantedVersion = Annotated[
    str | None,
    Query(pattern=VERSION_WANTED, description="A version, a range (`^1.4`) or a channel; default: what a call gets."),
]
_REFRESH = """Looks at every repository here and tells every process to look; answers when this gateway has looked.

A Git host may call it after a push (GitHub, GitLab, Gitea, Forgejo): it is then answered at once. Where
`repository.hook_secret` is set, such a call must prove that it knows it. A `ping` is answered and does nothing."""
_HOOK = {
    "parameters": [
        parameter(name, "header", "Sent by Git hosts.", {"type": "string"})
        for name in ("X-GitHub-Event", "X-Hub-Signature-256", "X-Gitlab-Token", "X-Gitea-Signature")
    ],
    "requestBody": {
        "required": False,
        "description": "A Git host's own words; only its signature is looked at.",
        "content": {"application/json": {"schema": {}}},
    },
}


router = APIRouter(tags=["scrapers"], route_class=AnswerRoute)


@router.get("/api/scrapers", summary="List scrapers", responses=refusals(422))
async def list_scrapers(
    gateway: GatewayDep, identity: IdentityDep, site: _OfSite = None, q: _Words = None
) -> ScrapersDocument:
    """Every version that the caller may call, by id; an invalid one says why it cannot run. And every repository, with
    how fresh it is, unless the caller is a client."""
    return documents.listed(gateway.services.catalogue, identity, site, q)


@router.post(
    "/api/scrapers/refresh",
    summary="Look for new scrapers now",
    description=_REFRESH,
    response_model=ScrapersDocument | HookDocument,
    responses={
        202: {"model": HookDocument, "description": "A Git host's hook: the look has begun."},
        **refusals(401, 413, 422, 503),
    },
    openapi_extra=_HOOK,
)
async def refresh_scrapers(gateway: GatewayDep, identity: IdentityDep, request: Request) -> Response:
    secret = gateway.services.settings.repository.hook_secret.get_secret_value()
    event = refresh.event_of(request.headers, await request.body(), secret)
    if identity is NOBODY and (event is None or not secret):
        raise unauthenticated("the request carries neither a key nor the signature of a Git host's hook")
    if event is None:
        await gateway.refreshing.refresh()
        return respond(documents.listed(gateway.services.catalogue, identity))
    if event == "ping":
        return respond(HookDocument(event=event, refreshing=False))
    gateway.refreshing.begin(tell=True)
    return respond(HookDocument(event=event, refreshing=True), 202)


@router.get("/api/scrapers/{site}/{task}", summary="Describe a scraper", responses=refusals(400, 404, 422, 503))
async def get_scraper(
    gateway: GatewayDep, identity: IdentityDep, site: Site, task: Task, version: WantedVersion = None
) -> ScraperDocument:
    """How it is called: schemas, limits with the platform's ceiling applied, hosts it may reach; where it comes from,
    how fresh that is, and all its versions."""
    check_call(identity, f"{site}/{task}")
    return await documents.described(gateway, f"{site}/{task}", version)
