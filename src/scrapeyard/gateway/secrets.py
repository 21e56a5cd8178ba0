"""`/api/secrets`: secrets of scrapers. Values can be written but never read."""

import time
from typing import Annotated

from fastapi import APIRouter, Path
from msgspec import Meta, Struct
from pydantic import BaseModel, ConfigDict, Field

from scrapeyard.errors import NotFound, Refusal
from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.model.instants import instant
from scrapeyard.repository.trust.secrets import MAX_VALUE
from scrapeyard.store.ports.keys import StoredSecret

MAX_SECRETS = 10_000


class SecretCall(BaseModel):
    """The value of a secret."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, json_schema_extra={"examples": [{"value": "t0k3n"}]}
    )

    value: str = Field(
        min_length=1,
        max_length=MAX_VALUE,
        description="Encrypted in the database, given to runs of the scraper, and never shown again.",
        json_schema_extra={"writeOnly": True},
    )


class SecretDocument(Struct, frozen=True, kw_only=True):
    """A secret, without its value."""

    scrapers: Annotated[str, Meta(description="Who gets it: `site/task`, or `site/*` for all scrapers of a site.")]
    name: Annotated[str, Meta(description='As a manifest names it: `{ secret = "name" }`.')]
    changed_at: Annotated[str, Meta(description="When it was last set.")]


class SecretsDocument(Struct, frozen=True, kw_only=True):
    """Every secret, without values."""

    secrets: Annotated[list[SecretDocument], Meta(description="By scraper and name.")]


_Site = Annotated[
    str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Site of the scrapers.", examples=["shop"])
]
_Task = Annotated[
    str,
    Path(
        pattern=r"^([a-z0-9][a-z0-9._-]{0,63}|\*)$",
        description="Task of the scraper; `*` for all of the site.",
        examples=["product"],
    ),
]
_Name = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="The secret.", examples=["API_TOKEN"])
]
_HERE = "/api/secrets/{site}/{task}/{name}"
router = APIRouter(tags=["secrets"], route_class=AnswerRoute)


@router.get("/api/secrets", summary="List secrets", responses=refusals(422, 503))
async def list_secrets(gateway: GatewayDep) -> SecretsDocument:
    """Names, never values."""
    return SecretsDocument(secrets=[_document(kept) for kept in await gateway.services.store.scraper_secrets.all()])


@router.put(_HERE, summary="Set a secret", responses=refusals(400, 409, 413, 422, 503))
async def put_secret(  # noqa: PLR0917 - FastAPI reads them by name
    gateway: GatewayDep, audit: AuditDep, site: _Site, task: _Task, name: _Name, call: SecretCall
) -> SecretDocument:
    """Grants it to the scraper, in place of an older value. In force in every worker within two seconds."""
    store = gateway.services.store.scraper_secrets
    secret = StoredSecret(scrapers=f"{site}/{task}", name=name, value=call.value, changed_at=time.time())
    known = {(kept.scrapers, kept.name) for kept in await store.all()}
    if (secret.scrapers, name) not in known and len(known) >= MAX_SECRETS:
        raise Refusal("conflict", 409, f"there are {MAX_SECRETS} secrets already; remove some first")
    await store.put(secret)
    audit.change(None, _document(secret))
    return _document(secret)


@router.delete(_HERE, summary="Remove a secret", responses=refusals(400, 404, 413, 422, 503))
async def delete_secret(gateway: GatewayDep, audit: AuditDep, site: _Site, task: _Task, name: _Name) -> SecretsDocument:
    """Runs that start two seconds later do not get it. Answers with those that are left."""
    store = gateway.services.store.scraper_secrets
    if not await store.remove(f"{site}/{task}", name):
        raise NotFound(f"{site}/{task} has no secret {name}")
    audit.change({"scrapers": f"{site}/{task}", "name": name})
    return await list_secrets(gateway)


def _document(kept: StoredSecret) -> SecretDocument:
    return SecretDocument(scrapers=kept.scrapers, name=kept.name, changed_at=instant(kept.changed_at) or "")
