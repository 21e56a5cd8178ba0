"""Builds what HTTP engines share, from the settings: on Redis for many processes, in memory and on disk for one."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.engines.cache.invalidation import invalidation_signals
from scrapeyard.engines.cache.memory import MemoryPages
from scrapeyard.engines.cache.port import PageStore
from scrapeyard.engines.escalation.memory import MemoryWays
from scrapeyard.engines.escalation.port import WayMemory
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.ledger import JobLedgers, OwnLedgers
from scrapeyard.engines.politeness.memory import MemoryGate
from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.port import SiteGate
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.engines.proxies.stored import StoredPools
from scrapeyard.queues.port import Queue
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.metrics import Metrics
from scrapeyard.wiring.pipeline import Engine, Shared, assemble, near_pages

_MEGABYTE = 2**20
Up = Callable[[Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]], Awaitable[None]]
"""Starts something and remembers how to stop it."""


class WebParts:
    """The engine parts that the gateway and the worker of one process share. `start` starts all of them. Without Redis,
    cached pages are in the folder `pages`, or in the data directory if None."""

    def __init__(self, settings: Settings, pages: Path | None = None, sealer: Sealer | None = None) -> None:
        url = settings.redis_url.get_secret_value()
        self.near = near_pages(settings)
        self.gate = _gate(url)
        self.pages = _pages(settings, url, self.near, pages)
        self.ways = _ways(settings, url, sealer)

    async def ways_of(self, sites: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What worked at sites, for `/api/sites`."""
        from scrapeyard.gateway.sites import ways  # noqa: PLC0415 - only a gateway is asked for them

        found: dict[str, dict[str, Any]] = {}
        for site in sites:
            known = ways(await self.ways.recall(site, fresh=True))
            if any(known.values()):
                found[site] = known
        return found

    async def start(self, up: Up) -> None:
        """Start all of them with `up`."""
        for part in (self.gate, self.pages, self.ways):
            await up(part.start, part.stop)


async def start_engine(
    settings: Settings,
    web: WebParts,
    store: Store,
    queue: Queue,
    *,
    worker_id: str,
    up: Up,
    metrics: Metrics | None = None,
) -> Engine:
    """The worker's engine with everything around it, each part started by `up`. Raises SettingsInvalid."""
    sites = Sites(settings.sites.whole_hosts)
    policies = SitePolicies(settings.sites, store.sites, queue)
    await up(policies.start, policies.stop)
    pools = ProxyPools(settings.proxies.pools)
    kept = StoredPools(store.proxies, settings.proxies.pools, pools, worker_id=worker_id)
    await up(kept.start, kept.stop)
    meters = Meters(store.meters)
    await up(meters.start, meters.stop)
    jobs = _ledgers(settings.redis_url.get_secret_value())
    await up(jobs.start, jobs.stop)
    shared = Shared(
        sites=sites,
        policies=policies,
        gate=web.gate,
        pages=web.pages,
        near=web.near,
        ways=web.ways,
        pools=pools,
        meters=meters,
        jobs=jobs,
        sessions=store.sessions,
    )
    wreq = WreqEngine(settings.http, sessions=store.sessions, own_port=settings.gateway.port)
    engine = assemble(settings, shared, wreq, metrics)
    await up(engine.start, engine.stop)
    signals = invalidation_signals(queue, engine.invalidate)
    await up(signals.start, signals.stop)
    return engine


def _gate(url: str) -> SiteGate:
    if not url:
        return MemoryGate()
    from scrapeyard.wiring.on_redis import RedisGate  # noqa: PLC0415 - an extra

    return RedisGate(url)


def _ledgers(url: str) -> JobLedgers:
    if not url:
        return OwnLedgers()
    from scrapeyard.wiring.on_redis import RedisJobLedgers  # noqa: PLC0415 - an extra

    return RedisJobLedgers(url)


def _pages(settings: Settings, url: str, near: MemoryPages, folder: Path | None) -> PageStore:
    limit, largest = int(settings.cache.shared_mb * _MEGABYTE), int(settings.cache.max_page_mb * _MEGABYTE)
    if url:
        from scrapeyard.wiring.on_redis import RedisPages  # noqa: PLC0415 - an extra

        return RedisPages(url, limit_bytes=limit, max_page_bytes=largest, on_return=near.drop_all)
    folder = folder or settings.data_dir.resolve() / "cache" / "pages"
    return DiskPages(folder, limit_bytes=limit, max_page_bytes=largest)


def _ways(settings: Settings, url: str, sealer: Sealer | None) -> WayMemory:
    seconds = settings.escalation.remember_seconds
    if not url:
        return MemoryWays(seconds)
    from scrapeyard.wiring.on_redis import RedisWays  # noqa: PLC0415 - an extra

    return RedisWays(url, seconds, sealer=sealer)
