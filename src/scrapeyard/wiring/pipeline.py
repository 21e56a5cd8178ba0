"""The stages of the HTTP engine, put together in their order. docs/design/engine.md tells why in this one."""

import contextlib
import time
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from scrapeyard.builtin.services import Search, search_nowhere
from scrapeyard.engines.browser.engine import ChooseExit
from scrapeyard.engines.browser.found import find_browser, find_light
from scrapeyard.engines.browser.pages import BrowserPages, EngineChoice
from scrapeyard.engines.browser.port import BrowserEngine
from scrapeyard.engines.browser.solver import BrowserSolver
from scrapeyard.engines.budget.meters import Metered, Meters
from scrapeyard.engines.budget.stage import Budgeted, Budgets
from scrapeyard.engines.cache.memory import MemoryPages
from scrapeyard.engines.cache.port import PageStore
from scrapeyard.engines.cache.stage import Cached
from scrapeyard.engines.escalation.port import WayMemory
from scrapeyard.engines.escalation.stage import Ways
from scrapeyard.engines.fetch_metrics import FetchMetrics
from scrapeyard.engines.http.checks import check_headers
from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.ledger import JobLedgers
from scrapeyard.engines.models.engine import Models
from scrapeyard.engines.politeness.policies import FixedPolicies
from scrapeyard.engines.politeness.port import SiteGate
from scrapeyard.engines.politeness.stage import RateLimited
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, Proxy
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.engines.robots.copies import RobotsCopies
from scrapeyard.engines.robots.stage import Robots
from scrapeyard.engines.solver.firecrawl import FirecrawlSolver
from scrapeyard.engines.solver.flaresolverr import FlareSolverr
from scrapeyard.engines.solver.port import Solver
from scrapeyard.errors import FetchFailed
from scrapeyard.model import Invalidate
from scrapeyard.settings import Settings
from scrapeyard.store.ports.operations import SessionStore
from scrapeyard.telemetry.metrics import Metrics

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
    sessions: SessionStore


class Part(Protocol):
    """Something that the engine owns and must stop."""

    async def stop(self) -> None:
        """May be called twice."""


class Engine:
    """The whole engine, as workers use it."""

    def __init__(
        self,
        sites: Sites,
        cached: Cached,
        budgets: Budgets,
        ways: Ways,
        parts: Sequence[Part],
        *,
        browsers: BrowserEngine | None = None,
        names: Sequence[str] = ("http",),
        meters: Meters | None = None,
        counted: FetchMetrics | None = None,
        models: Models | None = None,
        search: Search = search_nowhere,
    ) -> None:
        """`parts` are stopped in their order, after the cache and before the ways. `browsers` None: there are none."""
        self.browsers = browsers
        self.meters = meters
        self.models = models
        """None: this engine asks none."""
        self.search = search
        self.names = tuple(names)
        """The engines that a worker tells it has."""
        self._sites = sites
        self._cached = cached
        self._budgets = budgets
        self._ways = ways
        self._parts = parts
        self._counted = counted or FetchMetrics(Metrics(), ())

    async def start(self) -> None:
        """Ready to fetch."""
        await self._ways.start()
        if self.browsers is not None:
            await self.browsers.start()

    async def stop(self) -> None:
        """Close connections; fetches in flight fail. May be called twice."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._ways.stop)
            for part in reversed(self._parts):
                stack.push_async_callback(part.stop)
            if self.browsers is not None:
                stack.push_async_callback(self.browsers.stop)
            await self._cached.stop()

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        """As `HttpEngine`: check headers and parse the URL, before anything waits with them; then through all stages
        from the cache inwards."""
        began, site = time.perf_counter(), ""
        try:
            try:
                if request.headers:
                    check_headers(request.headers)
                context = FetchContext.of(request, caller, self._sites)
            except FetchFailed:
                await self._check_first(request, caller)
                raise
            site = context.site
            response = await self._cached(context)
        except FetchFailed as error:
            self._counted.failed(site, error, began)
            raise
        self._counted.brought(site, response, began)
        return response

    async def _check_first(self, request: FetchRequest, caller: Caller) -> None:
        """Raises FetchFailed (`fetch_budget`): a used-up budget is the first error that a script sees."""
        if not self._cached.concerns(request, caller):
            await self._budgets.check(caller)

    async def invalidate(self, signal: Invalidate) -> None:
        """Remove cached pages. Raises Unavailable if the shared tier is away."""
        await self._cached.invalidate(signal)


def assemble(settings: Settings, shared: Shared, client: WreqEngine, metrics: Metrics | None = None) -> Engine:
    """Stage around stage, the client innermost. Raises SettingsInvalid."""
    metrics = metrics or Metrics()
    budgets = Budgets(settings.budget, shared.jobs, metrics.fetches.received)
    metered = Metered(client, budgets=budgets, meters=shared.meters, pools=shared.pools)
    dns = GuardedDns(settings.http, own_port=settings.gateway.port)

    def choose_exit(caller: Caller, session: str) -> Proxy | None:
        return ways.exit(caller, session)

    has_browser, has_light = not find_browser(settings.browser).missing, not find_light(settings.browser).missing
    browsers = _browsers(settings, shared, budgets, choose_exit) if has_browser or has_light else None
    pages = BrowserPages(browsers, budgets=budgets, meters=shared.meters) if browsers is not None else None
    solver = _solver(settings, dns, browsers if has_browser else None)
    ways = Ways(
        EngineChoice(metered, pages, find_light(settings.browser).missing),
        settings.escalation,
        memory=shared.ways,
        pools=shared.pools,
        profile=settings.http.profile,
        default_pool=settings.proxies.default,
        solver=solver,
        budgets=budgets,
        browser=has_browser,
    )
    gated = RateLimited(ways, shared.gate, shared.policies)
    robots = Robots(gated, RobotsCopies(ways, settings.sites.robots_agent), shared.policies)
    budgeted = Budgeted(robots, budgets)
    models = Models(settings.ai, budgets, shared.pages, meters=shared.meters)
    cached = Cached(budgeted, shared.near, shared.pages, settings.cache)
    has = {"browser": has_browser, "light": has_light, "solver": bool(settings.escalation.solver_url)}
    names = ("http", *(name for name, is_there in has.items() if is_there))
    parts = (models, robots, client, dns)
    return Engine(
        shared.sites,
        cached,
        budgets,
        ways,
        parts,
        browsers=browsers,
        names=names,
        meters=shared.meters,
        counted=FetchMetrics(metrics, settings.telemetry.site_classes),
        models=models,
        search=solver.search if isinstance(solver, FirecrawlSolver) else search_nowhere,
    )


def near_pages(settings: Settings) -> MemoryPages:
    """This process's own tier of the cache."""
    return MemoryPages(int(settings.cache.memory_mb * _MEGABYTE))


def _browsers(settings: Settings, shared: Shared, budgets: Budgets, choose_exit: ChooseExit) -> BrowserEngine:
    from scrapeyard.wiring.browser import make_browsers  # noqa: PLC0415 - most machines have none

    return make_browsers(
        settings,
        sites=shared.sites,
        pools=shared.pools,
        meters=shared.meters,
        budgets=budgets,
        sessions=shared.sessions,
        choose_exit=choose_exit,
    )


def _solver(settings: Settings, dns: GuardedDns, browsers: BrowserEngine | None) -> Solver | None:
    """FlareSolverr or Firecrawl where there is one, otherwise our own browser."""
    if settings.escalation.solver_url:
        max_bytes = int(settings.http.max_body_mb * _MEGABYTE)
        kind = FirecrawlSolver if settings.escalation.solver == "firecrawl" else FlareSolverr
        return kind(settings.escalation, dns=dns, max_bytes=max_bytes)
    if browsers is None or not settings.escalation.browser:
        return None
    return BrowserSolver(browsers, settings.escalation)
