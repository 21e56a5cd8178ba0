"""Pools of proxies: what there is, how it does, and keeping more."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from scrapeyard.engines.proxies.stored import StoredPools, secrets_of
from scrapeyard.errors import NotFound
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.problems import Refusal
from scrapeyard.gateway.proxies.schemas import PoolCall, PoolDocument, PoolsDocument, all_pools
from scrapeyard.gateway.scrapers.documents import answer
from scrapeyard.model.fetching import POOL
from scrapeyard.settings import ProxyPool

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

MAX_POOLS = 200
"""Kept by the API."""
_Name = Annotated[str, Path(pattern=POOL, description="Its name.", examples=["home"])]


def routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["proxies"])
    kept = gateway.proxies

    @router.get(
        "/api/proxies",
        summary="Pools of proxies",
        description="The pools of the settings and those kept by the API, the cheapest first, with which exits rest "
        "and what went through them. Credentials are never shown.",
        operation_id="list_proxies",
        response_model=PoolsDocument,
        responses=refusals(503),
    )
    async def list_proxies() -> Response:
        await kept.look()
        return answer(await _documents(gateway))

    @router.put(
        "/api/proxies/{name}",
        summary="Keep a pool",
        description="Adds a pool, or replaces one that the API keeps. In force here when this answers, and in workers "
        "some seconds later. Its credentials are stored as they are given.",
        operation_id="put_proxies",
        response_model=PoolDocument,
        responses=refusals(400, 409, 413, 422, 503),
    )
    async def put_proxies(name: _Name, call: PoolCall) -> Response:
        await kept.look()
        _check_free(kept, name)
        await kept.put(_made(kept, name, call))
        document = await _documents(gateway)
        return answer(next(pool for pool in document["pools"] if pool["name"] == name))

    @router.delete(
        "/api/proxies/{name}",
        summary="Remove a pool",
        description="Of those that the API keeps. Runs that ask for it from then on end as `fetch_proxy`.",
        operation_id="remove_proxies",
        response_model=PoolsDocument,
        responses=refusals(404, 409, 413, 422, 503),
    )
    async def remove_proxies(name: _Name) -> Response:
        if kept.is_own(name):
            raise Refusal("conflict", 409, f"{name} is a pool of the settings; remove it there")
        if not await kept.remove(name):
            raise NotFound(f"no pool {name}")
        return answer(await _documents(gateway))

    return router


async def _documents(gateway: "Gateway") -> dict[str, Any]:
    services = gateway.services
    return await all_pools(gateway.proxies, services.store, services.clock())


def _check_free(kept: StoredPools, name: str) -> None:
    if kept.is_own(name):
        raise Refusal("conflict", 409, f"{name} is a pool of the settings; change it there")
    if kept.changed_at(name) is None and kept.count >= MAX_POOLS:
        raise Refusal("conflict", 409, f"there are {MAX_POOLS} pools already; remove one")


def _made(kept: StoredPools, name: str, call: PoolCall) -> ProxyPool:
    """Raises pydantic's ValidationError. What is secret and not given stays as it was, if the kind does."""
    before = next((pool for pool in kept.pools.tiers if pool.name == name and pool.kind == call.kind), None)
    hidden = secrets_of(before) if before else None
    fields = call.model_dump(exclude={"urls", "password"})
    urls = hidden.urls if call.urls is None and hidden else tuple(call.urls or ())
    password = hidden.password if call.password is None and hidden else call.password or ""
    return ProxyPool.model_validate({"name": name, **fields, "urls": urls, "password": password})
