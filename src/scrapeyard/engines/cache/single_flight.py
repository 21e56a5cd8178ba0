"""Equal requests in flight become one: the first asks the site, the others wait for what it brings.

The first fetches on its own account, as its run's budget, turn and slot are its own. So when it is cancelled, or fails
for a reason of its own, the next one takes its place rather than the failure.
"""

import asyncio
from collections.abc import Awaitable, Callable

from scrapeyard.engines.port import FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

OWN_REASONS = frozenset({ExitReason.FETCH_BUDGET, ExitReason.FETCH_RATE_LIMITED})
"""What a run may use up and how long it can wait is not the others' affair."""


class _Flight:
    """One fetch under way. When it is over it has brought an answer, a failure for all, or neither."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.answer: FetchResponse | None = None
        self.failure: FetchFailed | None = None


class SingleFlight:
    """The fetches of one worker that others may wait for."""

    def __init__(self) -> None:
        self._under_way: dict[str, _Flight] = {}

    async def wait(self, name: str) -> FetchResponse | None:
        """What a fetch under way by this name brings. None: there is none, or it ended without anything for others;
        the caller must `run` or wait again. Raises FetchFailed where the site failed it."""
        flight = self._under_way.get(name)
        if flight is None:
            return None
        await flight.over.wait()
        if flight.failure is not None:
            raise _again(flight.failure)
        return flight.answer

    def busy(self, name: str) -> bool:
        """Whether there is one to wait for."""
        return name in self._under_way

    async def run(self, name: str, fetch: Callable[[], Awaitable[FetchResponse]]) -> FetchResponse:
        """Fetch, and let others wait for it meanwhile."""
        flight = self._under_way[name] = _Flight()
        try:
            flight.answer = await fetch()
            return flight.answer
        except FetchFailed as error:
            if error.reason not in OWN_REASONS:
                flight.failure = error
            raise
        finally:
            flight.over.set()
            if self._under_way.get(name) is flight:
                del self._under_way[name]

    def detach(self) -> None:
        """Who asks from now on does not wait for what is under way."""
        self._under_way.clear()


def _again(failure: FetchFailed) -> FetchFailed:
    """One exception for each who raises it: tracebacks grow on them."""
    return FetchFailed(failure.reason, failure.message, site_status=failure.site_status, **failure.details)
