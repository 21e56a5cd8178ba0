"""`/api/sites`: how each site is treated, how it is doing, and the routes that worked there."""

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from msgspec import Meta, Struct
from msgspec.structs import asdict
from pydantic import BaseModel, ConfigDict, Field

from scrapeyard.engines.escalation.port import Remembered
from scrapeyard.engines.http.site import Sites, is_host
from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.port import SiteGate, SiteState
from scrapeyard.errors import BadRequest, Refusal
from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import NEXT
from scrapeyard.model.fetching import RobotsMode
from scrapeyard.model.instants import instant
from scrapeyard.store.ports.overrides import SiteRules

SITE = r"^[a-z0-9_](?:[a-z0-9_.:-]{0,251}[a-z0-9_:])?$"
"""A registrable domain in lower-case punycode, or an IP address without brackets."""


class SiteCall(BaseModel):
    """How a site is to be treated. What is left out, or null, is as the settings say for every site."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={"examples": [{"rate": 2, "concurrency": 4, "note": "their wish"}, {"robots": "obey"}]},
    )

    rate: float | None = Field(None, ge=0, le=100_000, description="Requests a second of all workers; 0: no limit.")
    burst: int | None = Field(None, ge=1, le=10_000, description="Requests that may come at once after a rest.")
    concurrency: int | None = Field(None, ge=0, le=10_000, description="Requests in flight; 0: any number.")
    adapt: bool | None = Field(None, description="Whether 429, 503 and rising latency slow it down.")
    min_rate: float | None = Field(None, gt=0, le=100_000, description="Slowed down no further than this.")
    breaker_failures: int | None = Field(
        None, ge=1, le=1_000_000, description="Failures in a row that make us leave it alone."
    )
    breaker_ratio: float | None = Field(None, gt=0, le=1, description="Share of failures among the last that does.")
    breaker_seconds: float | None = Field(None, gt=0, le=86_400, description="For how long.")
    robots: RobotsMode | None = Field(None, description="What its robots.txt means unless the call says.")
    note: str = Field("", max_length=2000, pattern=r"^[^\x00]*$", description="Note for other operators.")


_CALL = SiteCall.model_json_schema()["properties"]


def _as_called(name: str) -> Meta:
    """What the call's own field says."""
    return Meta(extra_json_schema=_CALL[name])


class SiteRulesDocument(Struct, frozen=True, kw_only=True):
    """What operators wrote for a site."""

    rate: Annotated[Any, _as_called("rate")]
    burst: Annotated[Any, _as_called("burst")]
    concurrency: Annotated[Any, _as_called("concurrency")]
    adapt: Annotated[Any, _as_called("adapt")]
    min_rate: Annotated[Any, _as_called("min_rate")]
    breaker_failures: Annotated[Any, _as_called("breaker_failures")]
    breaker_ratio: Annotated[Any, _as_called("breaker_ratio")]
    breaker_seconds: Annotated[Any, _as_called("breaker_seconds")]
    robots: Annotated[Any, _as_called("robots")]
    note: Annotated[Any, _as_called("note")]
    updated_at: str


class SiteLimitsDocument(Struct, frozen=True, kw_only=True):
    """What is in force for a site."""

    rate: Annotated[float, Meta(description="0: no limit.")]
    burst: int
    concurrency: Annotated[int, Meta(description="0: any number.")]
    adapt: bool
    min_rate: float
    breaker_failures: int
    breaker_ratio: float
    breaker_seconds: float
    robots: RobotsMode


class SiteStateDocument(Struct, frozen=True, kw_only=True):
    """How a site is doing, as all workers know it."""

    rate: Annotated[
        float | None, Meta(description="In force now, slow-downs and crawl delays included; null: no limit.")
    ]
    slowed: Annotated[bool, Meta(description="Whether its own answers brought the rate down.")]
    closed_seconds: Annotated[float, Meta(description="Left of what it asked for with Retry-After.")]
    waiting: Annotated[int, Meta(description="Requests that wait for their turn.")]
    in_flight: Annotated[int | None, Meta(description="Null: not counted, since it is not limited.")]
    breaker: Literal["closed", "open", "half_open"]
    breaker_seconds: Annotated[float, Meta(description="Until one request may try it.")]
    recent: Annotated[int, Meta(description="How many of the last requests `success_share` is of, 40 at most.")]
    success_share: float | None
    latency_ms: float | None
    requests_a_second: float
    seen_at: str | None


class SiteDocument(Struct, frozen=True, kw_only=True):
    """A site."""

    site: str
    limits: SiteLimitsDocument
    rules: Annotated[SiteRulesDocument | None, Meta(description="What operators wrote; null: nothing.")]
    state: Annotated[SiteStateDocument | None, Meta(description="Null: it was not asked for lately.")]
    more: Annotated[dict[str, Any], Meta(description="What other parts know of it, by part.")]


class SitePageDocument(Struct, frozen=True, kw_only=True):
    """One page of the listing, by name."""

    sites: list[SiteDocument]
    next_cursor: Annotated[str | None, NEXT]


def ways(known: Remembered) -> dict[str, Any]:
    """Known ways and clearances, without cookies and credentials."""
    return {
        "ways": [
            {
                "way": each.way,
                "cost": each.cost,
                "successes": round(each.successes, 2),
                "failures": round(each.failures, 2),
                "success_share": round(each.share, 3),
                "used_at": instant(each.used_at),
            }
            for each in sorted(known.tried, key=lambda tried: tried.cost)
        ],
        "clearances": [
            {
                "host": each.host,
                "exit": each.exit,
                "user_agent": each.user_agent,
                "got_at": instant(each.got_at),
                "expires_at": instant(each.expires_at),
            }
            for each in known.clearances
        ],
    }


MAX_RULES = 10_000
_LIMITS = tuple(name for name in SiteLimitsDocument.__struct_fields__ if name != "robots")

MoreOfSites = Callable[[Sequence[str]], Awaitable[Mapping[str, Mapping[str, Any]]]]
"""Returns more fields for some of these sites, by site, under keys of its own."""


class SiteService:
    """Rules, effective limits and state of sites. Without a gate no state is known."""

    def __init__(
        self, policies: SitePolicies, gate: SiteGate | None, sites: Sites, more: Sequence[MoreOfSites] = ()
    ) -> None:
        self._policies = policies
        self._gate = gate
        self._sites = sites
        self._more = more

    async def page(self, cursor: str | None, limit: int) -> SitePageDocument:
        """Sites with rules, and those requested lately, by name."""
        names = sorted({*self._policies.written(), *(await self._gate.known() if self._gate else ())})
        first = bisect_right(names, cursor) if cursor else 0
        here = names[first : first + limit]
        more_follow = first + limit < len(names)
        next_cursor = here[-1] if more_follow and here else None
        return SitePageDocument(sites=await self._describe(here), next_cursor=next_cursor)

    async def get(self, site: str) -> SiteDocument:
        """One site, known or not: its effective limits are always known."""
        self._check(site)
        return (await self._describe([site]))[0]

    async def put(self, site: str, call: SiteCall) -> SiteDocument:
        """Replace its rules. Raises Refusal (409) if too many sites have rules."""
        self._check(site)
        if self._policies.rules(site) is None and len(self._policies.written()) >= MAX_RULES:
            raise Refusal("conflict", 409, f"{MAX_RULES} sites have rules of their own already; delete some first")
        await self._policies.put(SiteRules(site=site, **call.model_dump()))
        return await self.get(site)

    async def remove(self, site: str) -> SiteDocument:
        """Remove its rules, so that the settings apply again."""
        self._check(site)
        await self._policies.remove(site)
        return await self.get(site)

    async def reset(self, site: str) -> SiteDocument:
        """Close its breaker and reset its slow-down."""
        self._check(site)
        if self._gate is not None:
            await self._gate.reset(site)
        return await self.get(site)

    def _check(self, site: str) -> None:
        if not is_host(site):
            raise BadRequest(f"{site[:100]!r} is not a site; write a registrable domain, such as shop.example")
        named = self._sites.of(site)
        if named != site:
            raise BadRequest(f"{site[:100]} is a host of the site {named[:100]}, and is treated as that; write {named}")

    async def _describe(self, sites: Sequence[str]) -> list[SiteDocument]:
        states = await self._gate.states(sites) if self._gate and sites else {}
        more: dict[str, dict[str, Any]] = {}
        for part in self._more:
            for site, known in (await part(sites)).items():
                more.setdefault(site, {}).update(known)
        return [self._document(site, states.get(site), more.get(site, {})) for site in sites]

    def _document(self, site: str, state: SiteState | None, more: Mapping[str, Any]) -> SiteDocument:
        limits, rules = self._policies.limits(site), self._policies.rules(site)
        in_force = {name: getattr(limits, name) for name in _LIMITS}
        return SiteDocument(
            site=site,
            limits=SiteLimitsDocument(**in_force, robots=self._policies.robots(site)),
            rules=None if rules is None else _rules(rules),
            state=None if state is None else _state(state),
            more=dict(more),
        )


def _rules(rules: SiteRules) -> SiteRulesDocument:
    shown = {**asdict(rules), "updated_at": instant(rules.updated_at)}
    del shown["site"]
    return SiteRulesDocument(**shown)


def _state(state: SiteState) -> SiteStateDocument:
    latency = state.latency_seconds
    return SiteStateDocument(
        rate=None if state.rate is None else round(state.rate, 4),
        slowed=state.slowed,
        closed_seconds=round(state.closed_seconds, 3),
        waiting=state.waiting,
        in_flight=state.in_flight,
        breaker=state.breaker,
        breaker_seconds=round(state.breaker_seconds, 3),
        recent=state.recent,
        success_share=None if state.success_share is None else round(state.success_share, 4),
        latency_ms=None if latency is None else round(latency * 1000, 2),
        requests_a_second=round(state.requests_a_second, 3),
        seen_at=instant(state.seen_at) if state.seen_at else None,
    )


_Site = Annotated[str, Path(pattern=SITE, description="A registrable domain or an address.", examples=["shop.example"])]


_HERE = "/api/sites/{site}"
router = APIRouter(tags=["sites"], route_class=AnswerRoute)


@router.get("/api/sites", summary="List sites", responses=refusals(422, 503))
async def list_sites(
    gateway: GatewayDep,
    cursor: Annotated[str | None, Query(pattern=SITE, description="From the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Sites on one page.")] = 50,
) -> SitePageDocument:
    """Those that operators wrote rules for, and those asked for within a day, by name. Follow `next_cursor` for
    more."""
    return await gateway.sites.page(cursor, limit)


@router.get(_HERE, summary="A site", responses=refusals(400, 422, 503))
async def get_site(gateway: GatewayDep, site: _Site) -> SiteDocument:
    """How it is treated and how it is doing. Every site is treated somehow, so that there is no 404."""
    return await gateway.sites.get(site)


@router.put(_HERE, summary="Write a site's rules", responses=refusals(400, 409, 413, 422, 503))
async def put_site(gateway: GatewayDep, audit: AuditDep, site: _Site, call: SiteCall) -> SiteDocument:
    """Whole: what is left out is as the settings say. In force in every worker within a second, also for requests that
    wait already."""
    before, changed = await gateway.sites.get(site), await gateway.sites.put(site, call)
    audit.change(before.rules, changed.rules)
    return changed


@router.delete(_HERE, summary="Delete a site's rules", responses=refusals(400, 413, 422, 503))
async def delete_site(gateway: GatewayDep, audit: AuditDep, site: _Site) -> SiteDocument:
    """The settings decide again. May be repeated."""
    before, changed = await gateway.sites.get(site), await gateway.sites.remove(site)
    audit.change(before.rules)
    return changed


@router.post(_HERE + "/reset", summary="Make a site well again", responses=refusals(400, 413, 422, 503))
async def reset_site(gateway: GatewayDep, site: _Site) -> SiteDocument:
    """Closes its breaker and forgets slow-downs, latency and Retry-After, for all workers. Its rules stay. May be
    repeated."""
    return await gateway.sites.reset(site)
