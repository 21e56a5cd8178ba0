"""`/api/proxies`: pools of proxies: their state, and adding more. Secrets can be written but never read."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path
from fastapi.exceptions import RequestValidationError
from msgspec import Meta, Struct
from msgspec.structs import asdict
from pydantic import BaseModel, ConfigDict, Field

from scrapeyard.engines.budget.meters import day_of
from scrapeyard.engines.http.clients import proxy_target
from scrapeyard.engines.http.guard import Guard
from scrapeyard.engines.proxies import pool as brightdata
from scrapeyard.engines.proxies.stored import StoredPools, secrets_of
from scrapeyard.errors import FetchFailed, NotFound, Refusal
from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.model.fetching import POOL, read_proxy_url
from scrapeyard.model.instants import instant
from scrapeyard.settings import ProxyPool, Settings
from scrapeyard.store.ports.operations import MeterStore, Use
from scrapeyard.store.ports.overrides import PoolStanding
from scrapeyard.store.ports.store import Store

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

MAX_URLS = 10_000
Kind = Literal["list", "brightdata"]
ProxyClass = Literal["datacenter", "residential", "unlocker"]
Rotation = Literal["request", "session", "site"]


class PoolCall(BaseModel):
    """A pool, whole. Of a pool that is there, `urls` and `password` may be left out: they stay as they are."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={
            "examples": [
                {"urls": ["http://user:password@proxy.example:8080", "socks5h://proxy.example:1080"]},
                {
                    "kind": "brightdata",
                    "proxy_class": "residential",
                    "customer": "hl_12345678",
                    "zone": "residential1",
                    "password": "…",
                    "country": "us",
                    "rotation": "session",
                },
            ]
        },
    )

    kind: Kind = Field("list", description="A plain list, or a vendor's template.")
    proxy_class: ProxyClass = Field("datacenter", description="What it costs: its place among the tiers.")
    urls: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MAX_URLS,
        description="http, https, socks5 or socks5h URLs, with credentials. For a list.",
        json_schema_extra={"writeOnly": True},
    )
    host: str = Field("", max_length=300, description="Vendor's endpoint, host:port; empty: its usual one.")
    customer: str = Field("", pattern=r"^[A-Za-z0-9_]{0,64}$", description="Vendor's account.")
    zone: str = Field("", pattern=r"^[A-Za-z0-9_]{0,64}$", description="Vendor's zone.")
    password: str | None = Field(
        None, max_length=500, description="Vendor's password for the zone.", json_schema_extra={"writeOnly": True}
    )
    country: str = Field("", pattern=r"^([A-Za-z]{2})?$", description="Exit country, unless a policy names another.")
    rotation: Rotation = Field("request", description="When another exit is taken.")
    exits: int = Field(20, ge=1, le=1000, description="Exits of a vendor's zone that are used in turn.")
    cooldown_seconds: float = Field(60, gt=0, le=86_400, description="How long a proxy that failed rests.")
    ca_file: str | None = Field(
        None, max_length=1000, description="PEM file on the workers, of authorities trusted through this pool."
    )


class UseDocument(Struct, frozen=True, kw_only=True):
    """What went through."""

    requests: int
    failures: Annotated[int, Meta(description="Requests without an answer.")]
    bytes: Annotated[int, Meta(description="Received.")]


class RestingDocument(Struct, frozen=True, kw_only=True):
    """How the pool does in one worker."""

    worker: str
    exits: int
    resting: int
    names: Annotated[tuple[str, ...], Meta(description="Of exits that rest, at most 50.")]


class PoolDocument(Struct, frozen=True, kw_only=True):
    """A pool, without its secrets."""

    name: str
    tier: Annotated[int, Meta(description="1 is the cheapest; blocks lead to the next.")]
    source: Literal["settings", "api"]
    kind: Kind
    proxy_class: ProxyClass
    rotation: Rotation
    country: str
    exits: Annotated[int, Meta(description="How many there are to choose from.")]
    endpoints: Annotated[list[str], Meta(description="host:port, at most 100 of them.")]
    customer: str
    zone: str
    cooldown_seconds: float
    ca_file: str | None
    changed_at: Annotated[str | None, Meta(description="Null for a pool of the settings.")]
    health: Annotated[list[RestingDocument], Meta(description="Of workers that told lately.")]
    today: Annotated[UseDocument, Meta(description="Since midnight UTC.")]
    month: Annotated[UseDocument, Meta(description="Of the last 30 days.")]


class ClassUseDocument(UseDocument, frozen=True, kw_only=True):
    """What went through proxies of one class."""

    proxy_class: Annotated[str, Meta(description="`direct`: without a proxy.")]


class PoolsDocument(Struct, frozen=True, kw_only=True):
    """Every pool, the cheapest first, and what all fetches received in the last 30 days."""

    pools: list[PoolDocument]
    by_class: list[ClassUseDocument]


FRESH_SECONDS = 60.0
"""How long a worker's report about its pools is shown."""
DAYS = 30
DIRECT = "direct"
"""The class of requests without a proxy."""
MAX_ENDPOINTS = 100
LOCAL = IPv4Address("127.0.0.1")
_DAY = 86_400.0
_NONE = UseDocument(requests=0, failures=0, bytes=0)


async def all_pools(kept: StoredPools, store: Store, now: float) -> PoolsDocument:
    """Every pool, the cheapest first, and the traffic of each class."""
    since = day_of(now - DAYS * _DAY)
    today = {use.pool: _use(use) for use in await store.meters.use(["pool"], day_of(now))}
    month = {use.pool: _use(use) for use in await store.meters.use(["pool"], since)}
    told = await store.proxies.standings(now - FRESH_SECONDS)
    classes = await store.meters.use(["proxy_class"], since)
    pools = [
        _pool(
            pool,
            kept,
            tier=tier,
            health=_health(pool.name, told),
            today=today.get(pool.name, _NONE),
            month=month.get(pool.name, _NONE),
        )
        for tier, pool in enumerate(kept.pools.tiers, 1)
    ]
    by_class = [ClassUseDocument(proxy_class=use.proxy_class or DIRECT, **asdict(_use(use))) for use in classes]
    return PoolsDocument(pools=pools, by_class=by_class)


class UseOfSites:
    """Traffic of sites for `/api/sites`: under `received`, by proxy class, over the last 30 days."""

    def __init__(self, meters: MeterStore, clock: Callable[[], float]) -> None:
        self._meters = meters
        self._clock = clock

    async def __call__(self, sites: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Traffic of those sites from which anything was received."""
        since = day_of(self._clock() - DAYS * _DAY)
        found: dict[str, dict[str, Any]] = {}
        for use in await self._meters.use(["site", "proxy_class"], since, sites=sites, limit=4 * len(sites)):
            by_class = found.setdefault(use.site, {"received": {}})["received"]
            by_class[use.proxy_class or DIRECT] = _use(use)
        return found


def _pool(pool: ProxyPool, kept: StoredPools, **more: Any) -> PoolDocument:
    return PoolDocument(
        name=pool.name,
        source="settings" if kept.is_own(pool.name) else "api",
        kind=pool.kind,
        proxy_class=pool.proxy_class,
        rotation=pool.rotation,
        country=pool.country,
        exits=len(pool.urls) if pool.kind == "list" else pool.exits,
        endpoints=_endpoints(pool)[:MAX_ENDPOINTS],
        customer=pool.customer,
        zone=pool.zone,
        cooldown_seconds=pool.cooldown_seconds,
        ca_file=str(pool.ca_file) if pool.ca_file else None,
        changed_at=instant(kept.changed_at(pool.name)),
        **more,
    )


def _endpoints(pool: ProxyPool) -> list[str]:
    if pool.kind == "list":
        return [read_proxy_url(url.get_secret_value()).endpoint for url in pool.urls]
    host, port = brightdata.endpoint(pool)
    return [f"{host}:{port}"]


def _health(pool: str, told: dict[str, tuple[PoolStanding, ...]]) -> list[RestingDocument]:
    return [
        RestingDocument(worker=worker, exits=each.exits, resting=each.resting, names=each.names)
        for worker, standings in told.items()
        for each in standings
        if each.pool == pool
    ]


def _use(use: Use) -> UseDocument:
    return UseDocument(requests=use.requests, failures=use.failures, bytes=use.bytes)


MAX_POOLS = 200
"""Maximum number of pools created through the API."""
_Name = Annotated[str, Path(pattern=POOL, description="Its name.", examples=["home"])]


router = APIRouter(tags=["proxies"], route_class=AnswerRoute)


@router.get("/api/proxies", summary="Pools of proxies", responses=refusals(422, 503))
async def list_proxies(gateway: GatewayDep) -> PoolsDocument:
    """The pools of the settings and those kept by the API, the cheapest first, with which exits rest and what went
    through them. Credentials are never shown."""
    await gateway.proxies.refresh()
    return await _documents(gateway)


@router.put("/api/proxies/{name}", summary="Keep a pool", responses=refusals(400, 409, 413, 422, 503))
async def put_proxies(gateway: GatewayDep, audit: AuditDep, name: _Name, call: PoolCall) -> PoolDocument:
    """Adds a pool, or replaces one that the API keeps. In force here when this answers, and in workers some seconds
    later. Its credentials are stored as they are given. A proxy at a private address is refused, unless the settings
    allow to fetch from there."""
    kept = gateway.proxies
    await kept.refresh()
    _check_free(kept, name)
    pool = _made(kept, name, call)
    _check_addresses(pool, gateway.services.settings)
    before = next((_told(each) for each in kept.pools.tiers if each.name == name), None)
    await kept.put(pool)
    audit.change(before, _told(pool))
    return next(pool for pool in (await _documents(gateway)).pools if pool.name == name)


@router.delete("/api/proxies/{name}", summary="Remove a pool", responses=refusals(404, 409, 413, 422, 503))
async def remove_proxies(gateway: GatewayDep, audit: AuditDep, name: _Name) -> PoolsDocument:
    """Of those that the API keeps. Runs that ask for it from then on end as `fetch_proxy`."""
    if gateway.proxies.is_own(name):
        raise Refusal("conflict", 409, f"{name} is a pool of the settings; remove it there")
    before = next((_told(each) for each in gateway.proxies.pools.tiers if each.name == name), None)
    if not await gateway.proxies.remove(name):
        raise NotFound(f"no pool {name}")
    audit.change(before)
    return await _documents(gateway)


def _told(pool: ProxyPool) -> dict[str, Any]:
    """A pool for the audit: its endpoints without credentials."""
    fields = pool.model_dump(mode="json", exclude={"name", "urls", "password"})
    return {**fields, "endpoints": _endpoints(pool)[:10], "exits": len(pool.urls) or pool.exits}


async def _documents(gateway: "Gateway") -> PoolsDocument:
    services = gateway.services
    return await all_pools(gateway.proxies, services.store, services.clock())


def _check_free(kept: StoredPools, name: str) -> None:
    if kept.is_own(name):
        raise Refusal("conflict", 409, f"{name} is a pool of the settings; change it there")
    if kept.changed_at(name) is None and kept.count >= MAX_POOLS:
        raise Refusal("conflict", 409, f"there are {MAX_POOLS} pools already; remove one")


def _made(kept: StoredPools, name: str, call: PoolCall) -> ProxyPool:
    """Build the pool. Omitted secrets stay the same if the kind does. Raises pydantic's ValidationError."""
    before = next((pool for pool in kept.pools.tiers if pool.name == name and pool.kind == call.kind), None)
    hidden = secrets_of(before) if before else None
    fields = call.model_dump(exclude={"urls", "password"})
    urls = hidden.urls if call.urls is None and hidden else tuple(call.urls or ())
    password = hidden.password if call.password is None and hidden else call.password or ""
    return ProxyPool.model_validate({"name": name, **fields, "urls": urls, "password": password})


def _check_addresses(pool: ProxyPool, settings: Settings) -> None:
    """Raise RequestValidationError for proxies that no worker would use. Names other than `localhost` are resolved and
    checked by the worker at each fetch."""
    http = settings.http
    guard = Guard(allow_private=http.allow_private, allow_hosts=http.allow_hosts, own_port=settings.gateway.port)
    faults = []
    for place, endpoint in enumerate(_endpoints(pool)):
        try:
            at = proxy_target(f"http://{endpoint}")
            literal = LOCAL if at.host == "localhost" or at.host.endswith(".localhost") else at.literal
            if literal is not None:
                guard.check(at.host, [literal])
                guard.check_port(at.host, at.port, [literal])
        except FetchFailed as failure:
            loc = ("body", "urls", place) if pool.kind == "list" else ("body", "host")
            faults.append({"loc": loc, "msg": failure.message})
    if faults:
        raise RequestValidationError(faults)
