"""Pools of proxies as the API shows them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scrapeyard.engines.budget.meters import day_of
from scrapeyard.engines.proxies import pool as brightdata
from scrapeyard.engines.proxies.stored import KeptPools
from scrapeyard.gateway.runs.documents import instant
from scrapeyard.model.fetching import read_proxy_url
from scrapeyard.settings import ProxyPool
from scrapeyard.store.ports.runs import PoolStanding, Store, Use

FRESH_SECONDS = 60.0
"""What a worker told of its pools is shown for so long."""
DAYS = 30
DIRECT = "direct"
"""The class of what came through no proxy."""
MAX_ENDPOINTS = 100
_DAY = 86_400.0
_NONE = {"requests": 0, "failures": 0, "bytes": 0}


async def all_pools(kept: KeptPools, store: Store, now: float) -> dict[str, Any]:
    """Every pool, the cheapest first, and what was received through each class."""
    since = day_of(now - DAYS * _DAY)
    today = {use.pool: _use(use) for use in await store.use(["pool"], day_of(now))}
    month = {use.pool: _use(use) for use in await store.use(["pool"], since)}
    told = await store.standings(now - FRESH_SECONDS)
    classes = await store.use(["proxy_class"], since)
    pools = [
        {
            **_pool(pool, tier, kept),
            "health": _health(pool.name, told),
            "today": today.get(pool.name, _NONE),
            "month": month.get(pool.name, _NONE),
        }
        for tier, pool in enumerate(kept.pools.tiers, 1)
    ]
    return {"pools": pools, "by_class": [{"proxy_class": use.proxy_class or DIRECT, **_use(use)} for use in classes]}


class UseOfSites:
    """What was received from sites, for `/api/sites`: under `received`, by class of proxy, of the last 30 days."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def __call__(self, sites: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Of those among them from which anything was received."""
        since = day_of(self._clock() - DAYS * _DAY)
        found: dict[str, dict[str, Any]] = {}
        for use in await self._store.use(["site", "proxy_class"], since, sites=sites, limit=4 * len(sites)):
            by_class = found.setdefault(use.site, {"received": {}})["received"]
            by_class[use.proxy_class or DIRECT] = _use(use)
        return found


def _pool(pool: ProxyPool, tier: int, kept: KeptPools) -> dict[str, Any]:
    endpoints = _endpoints(pool)
    return {
        "name": pool.name,
        "tier": tier,
        "source": "settings" if kept.is_own(pool.name) else "api",
        "kind": pool.kind,
        "proxy_class": pool.proxy_class,
        "rotation": pool.rotation,
        "country": pool.country,
        "exits": len(pool.urls) if pool.kind == "list" else pool.exits,
        "endpoints": endpoints,
        "customer": pool.customer,
        "zone": pool.zone,
        "cooldown_seconds": pool.cooldown_seconds,
        "ca_file": str(pool.ca_file) if pool.ca_file else None,
        "changed_at": instant(kept.changed_at(pool.name)),
    }


def _endpoints(pool: ProxyPool) -> list[str]:
    if pool.kind == "list":
        return [read_proxy_url(url.get_secret_value()).endpoint for url in pool.urls[:MAX_ENDPOINTS]]
    host, port = brightdata.endpoint(pool)
    return [f"{host}:{port}"]


def _health(pool: str, told: dict[str, tuple[PoolStanding, ...]]) -> list[dict[str, Any]]:
    return [
        {"worker": worker, "exits": each.exits, "resting": each.resting, "names": each.names}
        for worker, standings in told.items()
        for each in standings
        if each.pool == pool
    ]


def _use(use: Use) -> dict[str, int]:
    return {"requests": use.requests, "failures": use.failures, "bytes": use.bytes}
