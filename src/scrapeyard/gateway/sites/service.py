"""Sites as operators see and change them, and the routes that worked there."""

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from scrapeyard.engines.escalation.port import Remembered
from scrapeyard.engines.http.site import Sites, is_host
from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.port import SiteGate, SiteState
from scrapeyard.errors import BadRequest
from scrapeyard.gateway.http.problems import Refusal
from scrapeyard.gateway.runs.documents import instant
from scrapeyard.gateway.sites.schemas import SiteCall, SiteLimitsDocument
from scrapeyard.store.ports.runs import SiteRules


def ways(known: Remembered) -> dict[str, Any]:
    """Without cookies and credentials."""
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
_LIMITS = tuple(name for name in SiteLimitsDocument.model_fields if name != "robots")

MoreOfSites = Callable[[Sequence[str]], Awaitable[Mapping[str, Mapping[str, Any]]]]
"""What another part knows of some of these sites, by site; each part under a key of its own."""


class SiteService:
    """Rules, limits in force and state, together. Without a gate no state is known."""

    def __init__(
        self, policies: SitePolicies, gate: SiteGate | None, sites: Sites, more: Sequence[MoreOfSites] = ()
    ) -> None:
        self._policies = policies
        self._gate = gate
        self._sites = sites
        self._more = more

    async def page(self, cursor: str | None, limit: int) -> dict[str, Any]:
        """Sites that operators wrote something for, and those asked for lately, by name."""
        names = sorted({*self._policies.written(), *(await self._gate.known() if self._gate else ())})
        first = bisect_right(names, cursor) if cursor else 0
        here = names[first : first + limit]
        more_follow = first + limit < len(names)
        return {"sites": await self._describe(here), "next_cursor": here[-1] if more_follow and here else None}

    async def get(self, site: str) -> dict[str, Any]:
        """One, known or not: the limits that would hold are always known."""
        self._check(site)
        return (await self._describe([site]))[0]

    async def put(self, site: str, call: SiteCall) -> dict[str, Any]:
        """Write its rules, whole. Raises Refusal (409) when too many sites have some."""
        self._check(site)
        if self._policies.rules(site) is None and len(self._policies.written()) >= MAX_RULES:
            raise Refusal("conflict", 409, f"{MAX_RULES} sites have rules of their own already; delete some first")
        await self._policies.put(SiteRules(site=site, **call.model_dump()))
        return await self.get(site)

    async def remove(self, site: str) -> dict[str, Any]:
        """The settings decide again."""
        self._check(site)
        await self._policies.remove(site)
        return await self.get(site)

    async def reset(self, site: str) -> dict[str, Any]:
        """Close its breaker and forget what slowed it down."""
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

    async def _describe(self, sites: Sequence[str]) -> list[dict[str, Any]]:
        states = await self._gate.states(sites) if self._gate and sites else {}
        more: dict[str, dict[str, Any]] = {}
        for part in self._more:
            for site, known in (await part(sites)).items():
                more.setdefault(site, {}).update(known)
        return [self._document(site, states.get(site), more.get(site, {})) for site in sites]

    def _document(self, site: str, state: SiteState | None, more: Mapping[str, Any]) -> dict[str, Any]:
        limits, rules = self._policies.limits(site), self._policies.rules(site)
        return {
            "site": site,
            "limits": {**{name: getattr(limits, name) for name in _LIMITS}, "robots": self._policies.robots(site)},
            "rules": None if rules is None else _rules(rules),
            "state": None if state is None else _state(state),
            "more": dict(more),
        }


def _rules(rules: SiteRules) -> dict[str, Any]:
    shown = {**asdict(rules), "updated_at": instant(rules.updated_at)}
    del shown["site"]
    return shown


def _state(state: SiteState) -> dict[str, Any]:
    latency = state.latency_seconds
    return {
        "rate": None if state.rate is None else round(state.rate, 4),
        "slowed": state.slowed,
        "closed_seconds": round(state.closed_seconds, 3),
        "waiting": state.waiting,
        "in_flight": state.in_flight,
        "breaker": state.breaker,
        "breaker_seconds": round(state.breaker_seconds, 3),
        "recent": state.recent,
        "success_share": None if state.success_share is None else round(state.success_share, 4),
        "latency_ms": None if latency is None else round(latency * 1000, 2),
        "requests_a_second": round(state.requests_a_second, 3),
        "seen_at": instant(state.seen_at) if state.seen_at else None,
    }
