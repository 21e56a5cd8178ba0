"""The stages of the HTTP engine, put together in their order. docs/design/engine.md tells why in this one."""

import contextlib
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from scrapeyard.engines.budget.meters import Metered, Meters
from scrapeyard.engines.budget.stage import Budgeted, Budgets
from scrapeyard.engines.cache.memory import MemoryPages
from scrapeyard.engines.cache.port import PageStore
from scrapeyard.engines.cache.stage import Cached
from scrapeyard.engines.escalation.port import WayMemory
from scrapeyard.engines.escalation.stage import Ways
from scrapeyard.engines.http.checks import check_headers
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.ledger import JobLedgers
from scrapeyard.engines.politeness.policies import FixedPolicies
from scrapeyard.engines.politeness.port import SiteGate
from scrapeyard.engines.politeness.stage import RateLimited
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.engines.robots.copies import RobotsCopies
from scrapeyard.engines.robots.stage import Robots
from scrapeyard.engines.solver.flaresolverr import FlareSolverr, SolverGuard
from scrapeyard.errors import FetchFailed
from scrapeyard.model import Invalidate
from scrapeyard.settings import Settings

_MEGABYTE = 2**20


class Shared(Struct, frozen=True, kw_only=True):
    """What the engine shares with other workers or the gateway; its creator starts and stops it."""

    sites: Sites
    policies: FixedPolicies
    gate: SiteGate
    pages: PageStore
    near: MemoryPages
    """This process's own tier of the cache."""
    ways: WayMemory
    pools: ProxyPools
    meters: Meters | None
    """None if there is no store to count for."""
    jobs: JobLedgers


class Part(Protocol):
    """Something that the engine owns and must stop."""

    async def stop(self) -> None:
        """May be called twice."""


class Engine:
    """The whole engine, as workers use it."""

    def __init__(self, sites: Sites, cached: Cached, budgets: Budgets, ways: Ways, parts: Sequence[Part]) -> None:
        """`parts` are stopped in their order, after the cache and before the ways."""
        self._sites = sites
        self._cached = cached
        self._budgets = budgets
        self._ways = ways
        self._parts = parts

    async def start(self) -> None:
        """Ready to fetch."""
        await self._ways.start()

    async def stop(self) -> None:
        """Close connections; fetches in flight fail. May be called twice."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._ways.stop)
            for part in reversed(self._parts):
                stack.push_async_callback(part.stop)
            await self._cached.stop()

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        """As `HttpEngine`: check headers and parse the URL, before anything waits with them; then through all stages
        from the cache inwards."""
        try:
            check_headers(request.headers)
            context = FetchContext.of(request, caller, self._sites)
        except FetchFailed:
            if not self._cached.concerns(request, caller):  # so that a used-up budget is the first error a script sees
                await self._budgets.check(caller)
            raise
        return await self._cached(context)

    async def invalidate(self, signal: Invalidate) -> None:
        """Remove cached pages. Raises Unavailable if the shared tier is away."""
        await self._cached.invalidate(signal)


def assemble(settings: Settings, shared: Shared, client: WreqEngine) -> Engine:
    """Stage around stage, the client innermost. Raises SettingsInvalid."""
    budgets = Budgets(settings.budget, shared.jobs)
    metered = Metered(client, budgets=budgets, meters=shared.meters, pools=shared.pools)
    passage = SolverGuard(settings.http, own_port=settings.gateway.port)
    ways = Ways(
        metered,
        settings.escalation,
        memory=shared.ways,
        pools=shared.pools,
        profile=settings.http.profile,
        default_pool=settings.proxies.default,
        solver=_solver(settings, passage),
        budgets=budgets,
    )
    gated = RateLimited(ways, shared.gate, shared.policies)
    robots = Robots(gated, RobotsCopies(ways, settings.sites.robots_agent), shared.policies)
    budgeted = Budgeted(robots, budgets)
    cached = Cached(budgeted, shared.near, shared.pages, settings.cache)
    return Engine(shared.sites, cached, budgets, ways, (robots, client, passage))


def near_pages(settings: Settings) -> MemoryPages:
    """This process's own tier of the cache."""
    return MemoryPages(int(settings.cache.memory_mb * _MEGABYTE))


def _solver(settings: Settings, passage: SolverGuard) -> FlareSolverr | None:
    if not settings.escalation.solver_url:
        return None
    max_bytes = int(settings.http.max_body_mb * _MEGABYTE)
    return FlareSolverr(settings.escalation, passage=passage, max_bytes=max_bytes)
