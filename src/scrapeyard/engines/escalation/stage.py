"""The stage that chooses the way, recognises a block and tries the next."""

import time
from collections.abc import Callable

from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.escalation.escalation import Escalation, EscalationDeps
from scrapeyard.engines.escalation.planner import Pools, RoutePlanner, SoftBlockHistory
from scrapeyard.engines.escalation.port import WayMemory
from scrapeyard.engines.escalation.solving import ChallengeSolver
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, RoutedFetch
from scrapeyard.engines.solver.port import Solver, host_of
from scrapeyard.settings import EscalationSettings


class Ways:
    """A Fetch around a RoutedFetch. One per worker.

    A site's answer that is a refusal without doubt raises FetchFailed (`fetch_blocked`, `fetch_captcha`) when no way
    that policy allows helped, with what was tried in `details["tried"]`. A doubtful one (a plain 403) is handed out as
    it is when no other way got more. A rate limit is handed out at once: the gate sees to it.
    """

    def __init__(
        self,
        inner: RoutedFetch,
        settings: EscalationSettings,
        *,
        memory: WayMemory,
        pools: Pools,
        sites: Sites,
        profile: str,
        default_pool: str = "none",
        solver: Solver | None = None,
        budgets: Budgets | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`profile` is what the client looks like by itself (http.profile); `solver` None: there is none."""
        self._memory = memory
        self._sites = sites
        self._solver = solver
        self._clearing = ChallengeSolver(solver, memory, budgets=budgets, clock=clock) if solver else None
        self._gear = EscalationDeps(
            inner=inner,
            settings=settings,
            memory=memory,
            pools=pools,
            ladder=RoutePlanner(settings, pools, profile=profile, default_pool=default_pool, solver=solver is not None),
            clearing=self._clearing,
            doubts=SoftBlockHistory(clock),
            clock=clock,
        )

    async def start(self) -> None:
        """Starts its memory and its solver."""
        await self._memory.start()
        if self._solver is not None:
            await self._solver.start()

    async def stop(self) -> None:
        """Stops them. May be called twice."""
        if self._clearing is not None:
            await self._clearing.stop()
        if self._solver is not None:
            await self._solver.stop()
        await self._memory.stop()

    async def __call__(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        """As `Fetch`."""
        host = host_of(request.url)
        return await Escalation(self._gear, request, caller, site=self._sites.of(host), host=host).go()

    async def forget(self, site: str) -> None:
        """Begin anew with a site."""
        await self._memory.forget(site)
