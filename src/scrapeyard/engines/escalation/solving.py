"""Passing a site's challenge once for all who wait: one solve at a time for each site and exit, of all workers."""

import asyncio
import time
from collections.abc import Callable

from msgspec import Struct

from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.escalation.port import WayMemory
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.port import FetchResponse, Proxy
from scrapeyard.engines.solver.port import Clearance, Solved, Solver
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.telemetry.events import get_log

log = get_log("solver")
REST_SECONDS = 15.0
"""After a failure a site's challenge is left alone for so long; those who come meanwhile hear of the same failure."""
_LOOK_SECONDS = 0.25
"""Between looks at what another worker is solving."""
_CLAIM_GRACE_SECONDS = 10.0
_OWN_FAULTS = (ExitReason.FETCH_NOT_ALLOWED, ExitReason.FETCH_BUDGET, ExitReason.FETCH_BAD_URL)
"""Failures of whoever led the solve; those who waited may fare better."""
_MAX_RESTS = 10_000


class Cleared(Struct, frozen=True, kw_only=True):
    """What a challenge came to."""

    clearance: Clearance | None
    """None: it was passed, but nothing is left of it that plain HTTP could use."""
    page: FetchResponse | None = None
    """What the solver's browser saw, for the one whose page it is; None: another's page was solved."""


class SolveOrder(Struct, frozen=True, kw_only=True):
    """One fetch that wants a clearance."""

    context: FetchContext
    pool: str
    """Empty: our own address."""
    proxy: Proxy | None
    seconds: float
    not_these: frozenset[str]
    """Clearances that failed this fetch already."""


class ChallengeSolver:
    """Hands out clearances, and has them made. One per worker."""

    def __init__(
        self,
        solver: Solver,
        memory: WayMemory,
        *,
        budgets: Budgets | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`budgets` pay for what the solver's browser loads; None: nobody counts."""
        self._solver = solver
        self._memory = memory
        self._budgets = budgets
        self._clock = clock
        self._flights: dict[tuple[str, str], asyncio.Task[Solved | Clearance]] = {}
        self._rests: dict[tuple[str, str], tuple[float, FetchFailed]] = {}

    async def stop(self) -> None:
        """Solves under way are given up. May be called twice."""
        flights = tuple(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    async def clear(self, order: SolveOrder) -> Cleared:
        """A clearance that holds, or the page itself. Raises FetchFailed as the solver does."""
        while True:
            held = await self._held(order)
            if held is not None:
                return Cleared(clearance=held)
            key = (order.context.site, order.pool)
            ours = key not in self._flights
            if ours:
                self._check_rest(key)
                self._take_off(key, order)
            try:
                outcome = await asyncio.shield(self._flights[key])
            except FetchFailed as error:
                if ours or error.reason not in _OWN_FAULTS:
                    raise
                continue
            if (cleared := self._cleared(order, outcome, ours=ours)) is not None:
                return cleared

    async def open(self, order: SolveOrder) -> FetchResponse:
        """The page as the solver's browser sees it, for this fetch alone. A clearance that comes of it is kept."""
        solved = await self._paid(order)
        if solved.clearance is not None:
            await self._memory.keep(order.context.site, solved.clearance)
        return solved.response

    def _cleared(self, order: SolveOrder, outcome: Solved | Clearance, *, ours: bool) -> Cleared | None:
        """None: what another solved is of no use here."""
        clearance = outcome.clearance if isinstance(outcome, Solved) else outcome
        if clearance is not None and not self._serves(order, clearance):
            clearance = None
        if ours and isinstance(outcome, Solved):
            return Cleared(clearance=clearance, page=outcome.response)
        return Cleared(clearance=clearance) if clearance is not None else None

    def _take_off(self, key: tuple[str, str], order: SolveOrder) -> None:
        """The flight is a task of its own: others wait for it when the one who began it is cancelled."""
        flight = asyncio.create_task(self._fly(key, order), name=f"solve {order.context.site}")
        self._flights[key] = flight

        def land(done: asyncio.Task[Solved | Clearance]) -> None:
            self._flights.pop(key, None)
            if not done.cancelled():
                done.exception()  # whoever waits hears it; nobody may wait any more

        flight.add_done_callback(land)

    async def _fly(self, key: tuple[str, str], order: SolveOrder) -> Solved | Clearance:
        until = asyncio.get_running_loop().time() + order.seconds
        while not await self._memory.claim(*key, order.seconds + _CLAIM_GRACE_SECONDS):
            held = await self._held(order)
            if held is not None:
                return held
            if asyncio.get_running_loop().time() >= until:
                raise _waited(order)
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            # Another worker may have solved between our look and our claim.
            return await self._held(order) or await self._solve(key, order)
        finally:
            await self._memory.release(*key)

    async def _solve(self, key: tuple[str, str], order: SolveOrder) -> Solved:
        began = self._clock()
        try:
            solved = await self._paid(order)
        except FetchFailed as error:
            if error.reason not in (*_OWN_FAULTS, ExitReason.FETCH_PROXY):
                self._rest(key, error)
            log.warning("solver.failed", site=order.context.site, reason=error.reason.value, error=error.message)
            raise
        self._rests.pop(key, None)
        if solved.clearance is not None:
            await self._memory.keep(order.context.site, solved.clearance)
        log.info("solver.solved", site=order.context.site, exit=order.pool, seconds=round(self._clock() - began, 1))
        return solved

    async def _paid(self, order: SolveOrder) -> Solved:
        caller = order.context.caller
        proxy_class = order.proxy.proxy_class if order.proxy else ""
        if self._budgets is not None:
            await self._budgets.begin(caller, proxy_class)
        began, size = time.perf_counter(), 0
        caller.ledger.solver_calls += 1
        try:
            solved = await self._solver.solve(order.context.request, caller, proxy=order.proxy, seconds=order.seconds)
            size = solved.response.bytes_received
            caller.ledger.solver_successes += 1
            return solved
        finally:
            if self._budgets is not None:
                seconds = time.perf_counter() - began
                await self._budgets.count(caller, proxy_class, size=size, seconds=seconds)

    async def _held(self, order: SolveOrder) -> Clearance | None:
        known = await self._memory.recall(order.context.site, fresh=True)
        return next((each for each in known.clearances if self._serves(order, each)), None)

    def _serves(self, order: SolveOrder, clearance: Clearance) -> bool:
        same = clearance.pool == order.pool and clearance.id not in order.not_these
        return same and clearance.fits(order.context.target.host, self._clock())

    def _check_rest(self, key: tuple[str, str]) -> None:
        rest = self._rests.get(key)
        if rest is not None and rest[0] > self._clock():
            raise rest[1]

    def _rest(self, key: tuple[str, str], error: FetchFailed) -> None:
        if len(self._rests) >= _MAX_RESTS:
            self._rests.clear()
        # A copy without the traceback, which would hold the first caller's frames for as long.
        again = FetchFailed(error.reason, error.message, site_status=error.site_status, **error.details)
        self._rests[key] = (self._clock() + REST_SECONDS, again)


def _waited(order: SolveOrder) -> FetchFailed:
    message = f"another worker has been solving {order.context.site} for {order.seconds:g} s; try again later"
    return FetchFailed(ExitReason.FETCH_TIMEOUT, message)
