"""One fetch that its first route did not bring: every other that is allowed, one after another."""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.engines.blocks import EMPTY_SHELL, Block, adds_content, glance, recognise_closely
from scrapeyard.engines.escalation.planner import (
    NO_POOL,
    SOLVER_COST,
    Pools,
    RouteOption,
    RoutePlanner,
    SoftBlockHistory,
)
from scrapeyard.engines.escalation.port import Remembered, WayMemory
from scrapeyard.engines.escalation.report import RouteReport
from scrapeyard.engines.escalation.solving import ChallengeSolver, SolveOrder
from scrapeyard.engines.http.stage import FetchContext, RoutedFetch
from scrapeyard.engines.port import FetchRequest, FetchResponse, Keep, Proxy, Route
from scrapeyard.engines.solver.port import Clearance
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import EscalationSettings

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that may be sent twice."""
_LEAST_SECONDS = 0.2
_CLEARANCES = 2
"""Clearances tried by one fetch: one that another left, and one of its own."""
_SKIPPED = (ExitReason.FETCH_PROXY, ExitReason.FETCH_BUDGET)
"""Failures of a way and not of the site: the next may do. A budget may bind one class of proxies only."""


class EscalationDeps(Struct, frozen=True, kw_only=True):
    """What every climb uses."""

    inner: RoutedFetch
    settings: EscalationSettings
    memory: WayMemory
    pools: Pools
    ladder: RoutePlanner
    clearing: ChallengeSolver | None
    doubts: SoftBlockHistory
    clock: Callable[[], float]


class Escalation:
    """Tries one way after another."""

    def __init__(self, gear: EscalationDeps, context: FetchContext, began: float) -> None:
        """`began` by the monotonic clock: the request's own time covers all ways."""
        self._gear = gear
        self._context = context
        self._request = context.request
        self._caller = context.caller
        self._site = context.site
        self._host = context.target.host
        self._began = began
        self._report = RouteReport(context.site, gear.doubts)
        self._failed: set[str] = set()
        """Ids of clearances that did not hold."""

    async def fetch(self) -> FetchResponse:
        """The page. Raises FetchFailed."""
        if self._request.via is not None:
            return await self._gear.inner(self._context, Route(engine="browser"))
        known = await self._gear.memory.recall(self._site)
        if self._request.engine == "solver":
            return await self._at_once()
        if self._request.engine in ("browser", "light"):
            return await self._by_browser_alone()
        if (held := self._held(known)) is not None:
            page = await self._with_clearance(held)
            if page is not None or not self._goes_on():
                return page or self._report.end()
            known = await self._gear.memory.recall(self._site)
        first = self._gear.ladder.first(self._request, self._caller)
        if known.blames(first.name):
            rungs = self._gear.ladder.rungs(self._request, self._caller, known)
            if rungs[0].kind != "solver":
                return await self._up(rungs)
        # The first is the cheapest: where it is not known to fail, the others need not be thought of. Before the solver
        # it is tried in any case, since a site may challenge some pages only.
        return await self._plain(first) or await self._after(first, known)

    async def after_failure(self, first: RouteOption, known: Remembered, error: FetchFailed) -> FetchResponse:
        """The first way failed. Raises the error if it is the site's."""
        self._skip(first, error)
        return await self._after(first, known)

    async def after_answer(
        self, first: RouteOption, known: Remembered, response: FetchResponse, block: Block | None
    ) -> FetchResponse:
        """The first way brought an answer that is not simply a page."""
        page = await self._judged(response, block, first.name, first.name, first.cost)
        return page or await self._after(first, known)

    async def _after(self, first: RouteOption, known: Remembered) -> FetchResponse:
        """The others."""
        rungs = self._gear.ladder.rungs(self._request, self._caller, known)
        return await self._up(tuple(rung for rung in rungs if rung != first), tried=first)

    async def _up(self, ladder: tuple[RouteOption, ...], tried: RouteOption | None = None) -> FetchResponse:
        """`tried` was tried before the first of these; None: nothing was."""
        rungs, left, rung = deque(ladder), self._gear.settings.max_ways - (tried is not None), tried
        again = set[RouteOption]()
        while left > 0 and self._goes_on():
            # Another exit of the same pool is cheaper than the next pool, and no other way: it does not count.
            if rung is not None and rung not in again and self._may_repeat():
                again.add(rung)
            elif (rung := self._take_next(rungs)) is not None:
                left -= 1
            else:
                break
            page = await (self._solved(rung) if rung.kind == "solver" else self._plain(rung))
            if page is not None:
                return page
        return self._report.end()

    async def _by_browser_alone(self) -> FetchResponse:
        """The script wants the page as a browser shows it."""
        page = await self._plain(self._gear.ladder.browsing(self._request, self._caller))
        return page or self._report.end()

    def _take_next(self, rungs: deque[RouteOption]) -> RouteOption | None:
        """The next rung. The solver is none unless this page was challenged: it cannot pass a site's own refusal, and
        it would call that a success. Where scripts would fill the page, only a browser helps."""
        for rung in rungs:
            if self._report.shell is not None and rung.kind != "browser":
                continue
            if rung.kind != "solver" or self._report.was_challenged:
                rungs.remove(rung)
                return rung
        return None

    def _may_repeat(self) -> bool:
        return self._report.proxy_failed and self._gear.ladder.escalates(self._caller)

    async def _plain(self, rung: RouteOption) -> FetchResponse | None:
        """None: blocked, or the way itself failed."""
        try:
            way = self._gear.ladder.route(rung, self._caller, site=self._site, session=self._request.session)
            response = await self._gear.inner(self._timed(), way)
        except FetchFailed as error:
            self._skip(rung, error)
            return None
        if (shell := self._report.shell) is not None and not adds_content(shell, response):
            self._report.blocked(rung.name, rung.name, rung.cost, response, EMPTY_SHELL)
            return None
        return await self._judged(response, self._block_of(response), rung.name, rung.name, rung.cost)

    def _skip(self, rung: RouteOption, error: FetchFailed) -> None:
        """Note that a way failed. Raises the error if no other way may do better."""
        if error.reason not in _SKIPPED or (error.reason is ExitReason.FETCH_BUDGET and self._report.is_empty):
            raise error
        self._report.failed(rung.name, error)

    async def _with_clearance(self, clearance: Clearance) -> FetchResponse | None:
        """None: it does not hold any more, or its exit failed; it is forgotten either way."""
        name = f"{clearance.profile or 'plain'} with a clearance" + (f" via {clearance.pool}" if clearance.pool else "")
        way = clearance.way(self._host, self._gear.clock())
        try:
            response = await self._gear.inner(self._timed(), way)
        except FetchFailed as error:
            if error.reason is not ExitReason.FETCH_PROXY:
                raise
            self._report.failed(name, error)
            await self._lose(clearance)
            return None
        block, solver = self._block_of(response), _solver_name(clearance.pool)
        page = await self._judged(response, block, name, solver, SOLVER_COST, cleared=True)
        if page is None:
            await self._lose(clearance)
            return None
        return replace(page, strategy="clearance")

    async def _solved(self, rung: RouteOption) -> FetchResponse | None:
        """By a clearance, which proves itself at once and brings the page as the site sends it; else the page that the
        solver's browser saw."""
        if self._gear.clearing is None or self._request.method.upper() not in ("GET", "HEAD"):
            return None
        for _ in range(_CLEARANCES):
            try:
                cleared = await self._gear.clearing.clear(self._order(rung, self._anonymous()))
            except FetchFailed as error:
                await self._note(rung.name, ok=False, cost=rung.cost)
                self._report.failed(rung.name, error)
                return None
            if cleared.clearance is not None and (page := await self._with_clearance(cleared.clearance)) is not None:
                await self._note(rung.name, ok=True, cost=rung.cost)
                return page
            if cleared.page is not None and self._request.method.upper() == "GET":
                return await self._seen_by_solver(cleared.page, rung)
        return None

    async def _seen_by_solver(self, page: FetchResponse, rung: RouteOption) -> FetchResponse | None:
        """The solver may call every page 200: one that reads like what was refused is that refusal."""
        block = self._report.same_refusal(page)
        if block is None:
            return await self._judged(page, self._block_of(page), rung.name, rung.name, rung.cost)
        await self._note(rung.name, ok=False, cost=rung.cost)
        self._report.blocked(rung.name, rung.name, rung.cost, page, block)
        return None

    async def _at_once(self) -> FetchResponse:
        """The script wants what the solver's browser sees. Nothing is repeated, so any method goes."""
        rung = self._gear.ladder.solving(self._request, self._caller)
        if self._gear.clearing is None:
            message = "this fetch wants the solver, and there is none; set escalation.solver_url (FLARESOLVERR_URL)"
            raise FetchFailed(ExitReason.FETCH_CAPTCHA, message)
        solved = await self._gear.clearing.open(self._order(rung, self._request))
        page = await self._judged(solved, self._block_of(solved), rung.name, rung.name, rung.cost)
        return page or self._report.end()

    async def _judged(
        self,
        response: FetchResponse,
        block: Block | None,
        name: str,
        remembered: str,
        cost: float,
        *,
        cleared: bool = False,
    ) -> FetchResponse | None:
        """The response, if it is a page; None: it is a block and another way may help, or there is no doubt. Behind a
        clearance (`cleared`) a doubtful refusal is the site's own answer."""
        response = response if response.way == name else replace(response, way=name)
        if block is None or not self._is_refusal(block) or (cleared and not block.certain):
            if not cleared and (block is None or block.kind != "rate_limited"):
                await self._note(remembered, ok=True, cost=cost)
            if not self._report.is_empty:
                response = replace(response, tried=self._report.shown())
                if block is None:
                    await self._blame()
            return response if self._request.keep is None else await self._handed_out(response, self._request.keep)
        self._report.blocked(name, remembered, cost, response, block)
        if block.certain and not cleared:
            await self._note(remembered, ok=False, cost=cost)
        return None

    async def _handed_out(self, response: FetchResponse, keep: Keep) -> FetchResponse:
        """A page of the solver's goes where the script wants its pages kept, as the client's do."""
        if response.kept is not None or not 200 <= response.status < 300:
            return response
        kind = next((value for name, value in response.headers if name.lower() == "content-type"), "")
        return replace(response, body=b"", kept=await keep(_whole(response.body), kind))

    def _block_of(self, response: FetchResponse) -> Block | None:
        return block_of(response, self._gear.ladder, self._context)

    def _is_refusal(self, block: Block) -> bool:
        if block.kind == "rate_limited":
            return False
        if block.certain:
            return True
        return block.worth_trying and self._gear.doubts.worth_it(self._site)

    async def _blame(self) -> None:
        """A page came: what was doubtful before it was a block."""
        for remembered, cost in self._report.doubtful():
            await self._note(remembered, ok=False, cost=cost)

    async def _note(self, way: str, *, ok: bool, cost: float) -> None:
        await self._gear.memory.note(self._site, way, ok=ok, cost=cost)

    async def _lose(self, clearance: Clearance) -> None:
        self._failed.add(clearance.id)
        await self._gear.memory.drop(self._site, clearance)

    def _held(self, known: Remembered) -> Clearance | None:
        """A clearance that goes with what the request fixes."""
        if not known.clearances:
            return None
        if any(name.lower() == "user-agent" for name in self._request.headers):
            return None
        now = self._gear.clock()
        return next((each for each in known.clearances if self._agrees(each) and each.fits(self._host, now)), None)

    def _agrees(self, clearance: Clearance) -> bool:
        pool = self._request.proxy or self._caller.policy.proxy
        profile = self._request.profile or self._caller.policy.profile
        if pool and (clearance.pool or NO_POOL) != pool:
            return False
        if clearance.proxy is not None and not self._gear.ladder.allows(clearance.proxy.proxy_class, self._caller):
            return False
        return not profile or clearance.profile.startswith(profile)

    def _goes_on(self) -> bool:
        """Whether another way may be tried: there is time, and nothing is sent twice that must not be."""
        if self._seconds_left() < _LEAST_SECONDS:
            return False
        return self._request.method.upper() in _SAFE or not self._report.was_answered

    def _seconds_left(self) -> float:
        asked = self._request.timeout_seconds
        return float("inf") if asked is None else asked - (time.monotonic() - self._began)

    def _timed(self) -> FetchContext:
        """The time that a request asks for covers all ways together."""
        if self._request.timeout_seconds is None or self._report.is_empty:
            return self._context
        return self._with(replace(self._request, timeout_seconds=max(_LEAST_SECONDS, self._seconds_left())))

    def _with(self, request: FetchRequest) -> FetchContext:
        return replace(self._context, request=request)

    def _exit(self, rung: RouteOption) -> Proxy | None:
        return self._gear.ladder.exit(rung, self._caller, site=self._site, session=self._request.session)

    def _anonymous(self) -> FetchRequest:
        """For a clearance that all may use, nothing of the script's own is handed to the solver."""
        return FetchRequest(url=self._request.url, max_bytes=self._request.max_bytes)

    def _order(self, rung: RouteOption, request: FetchRequest) -> SolveOrder:
        return SolveOrder(
            context=self._with(request),
            pool="" if rung.pool == NO_POOL else rung.pool,
            proxy=self._exit(rung),
            seconds=min(self._gear.settings.solver_seconds, self._seconds_left()),
            not_these=frozenset(self._failed),
        )


def block_of(response: FetchResponse, ladder: RoutePlanner, context: FetchContext) -> Block | None:
    """The block that an answer is; None: it is a page, or nobody has its body."""
    answer = None if response.kept is not None else glance(response)
    if answer is None:
        return None
    is_plain = response.strategy == "http" and ladder.may_browse(context.request, context.caller)
    return recognise_closely(answer, shells=is_plain)


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _solver_name(pool: str) -> str:
    return RouteOption(kind="solver", pool=pool or NO_POOL).name
