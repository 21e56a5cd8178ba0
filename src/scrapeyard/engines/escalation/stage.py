"""The stage that chooses the route of a fetch, recognises a block and tries the next."""

import time
from collections.abc import Callable

from msgspec.structs import replace

from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.escalation.escalation import Escalation, EscalationDeps, block_of
from scrapeyard.engines.escalation.planner import Pools, RoutePlanner, SoftBlockHistory
from scrapeyard.engines.escalation.port import WayMemory
from scrapeyard.engines.escalation.solving import ChallengeSolver
from scrapeyard.engines.http.stage import FetchContext, RoutedFetch
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, Proxy
from scrapeyard.engines.solver.port import Solver
from scrapeyard.errors import FetchFailed
from scrapeyard.settings import EscalationSettings

_BY_HTTP = ("auto", "http")
"""Values of `engine` that begin with plain HTTP."""


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
        profile: str,
        default_pool: str = "none",
        solver: Solver | None = None,
        budgets: Budgets | None = None,
        browser: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`profile` is what the client looks like by itself (http.profile); `solver` None: there is none. `browser`:
        whether `inner` has one."""
        self._memory = memory
        self._solver = solver
        self._clearing = ChallengeSolver(solver, memory, budgets=budgets, clock=clock) if solver else None
        self._gear = EscalationDeps(
            inner=inner,
            settings=settings,
            memory=memory,
            pools=pools,
            ladder=RoutePlanner(
                settings,
                pools,
                profile=profile,
                default_pool=default_pool,
                solver=solver is not None,
                browser=browser,
            ),
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

    async def __call__(self, context: FetchContext) -> FetchResponse:
        """As `Fetch`. The first way brings most pages; an escalation begins only where it does not, or where it is not
        the way to begin with."""
        gear, request, caller, began = self._gear, context.request, context.caller, time.monotonic()
        if request.engine not in _BY_HTTP or request.via is not None:
            return await Escalation(gear, context, began).fetch()
        known = await gear.memory.recall(context.site)
        first = gear.ladder.first(request, caller)
        name = first.name
        if known.clearances or known.blames(name):
            return await Escalation(gear, context, began).fetch()
        try:
            way = gear.ladder.route(first, caller, site=context.site, session=request.session)
            response = await gear.inner(context, way)
        except FetchFailed as error:
            return await Escalation(gear, context, began).after_failure(first, known, error)
        block = block_of(response, gear.ladder, context)
        if block is not None or request.keep is not None:
            return await Escalation(gear, context, began).after_answer(first, known, response, block)
        if name not in known.settled:
            await gear.memory.note(context.site, name, ok=True, cost=first.cost)
        return response if response.way == name else replace(response, way=name)

    def exit(self, caller: Caller, session: str) -> Proxy | None:
        """The exit of a browser's context that no single request chooses. Raises FetchFailed."""
        ladder = self._gear.ladder
        rung = ladder.browsing(FetchRequest(url="", engine="browser"), caller)
        return ladder.exit(rung, caller, session=session or caller.run_id)

    async def forget(self, site: str) -> None:
        """Begin anew with a site."""
        await self._memory.forget(site)
