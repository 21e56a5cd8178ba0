"""A solver passes a challenge with a browser of its own."""

from typing import Protocol

from msgspec import Struct

from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.engines.route import Proxy
from scrapeyard.engines.solver.clearance import Clearance
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason


class SolverAway(FetchFailed):
    """The solver itself does not answer. The site is not to blame; check escalation.solver_url."""

    code = "solver_away"

    def __init__(self, message: str) -> None:
        super().__init__(ExitReason.FETCH_CAPTCHA, message)


class Solved(Struct, frozen=True, kw_only=True):
    """What a solver came back with."""

    response: FetchResponse
    """The page as its browser shows it. The status is what the solver says, which may be 200 for every page."""
    clearance: Clearance | None
    """None: there were no cookies, or they belong to somebody's session."""


class Solver(Protocol):
    """Passes challenges. Bounded: a call waits for a free place within its time."""

    async def start(self) -> None:
        """Ready to solve."""

    async def stop(self) -> None:
        """Let go of browsers that were kept. May be called twice."""

    async def solve(self, request: FetchRequest, caller: Caller, *, proxy: Proxy | None, seconds: float) -> Solved:
        """Open the page. Raises FetchFailed: fetch_captcha (not passed), fetch_blocked, fetch_timeout, fetch_proxy and
        so on, as the browser found; SolverAway when there is no solver to speak of; fetch_private_address before
        anything is handed over."""

    async def healthy(self) -> bool:
        """Whether it answers now. For health pages, not for deciding."""
