"""Browsers that the solver keeps open for us, by the names that scripts give their sessions.

A script's session is opened when first asked for and closed when too many are open, or when we stop; the solver itself
opens a fresh one when it grows old (`session_ttl_minutes`).
"""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.engines.route import Proxy
from scrapeyard.engines.solver.wire import proxy_words
from scrapeyard.errors import FetchFailed

TTL_MINUTES = 30
MAX_SESSIONS = 8

Say = Callable[[dict[str, Any]], Awaitable[Any]]


class SolverSessions:
    """Which browsers are open. Each is a few hundred megabytes at the solver's, so there are few."""

    def __init__(self, say: Say, *, limit: int = MAX_SESSIONS) -> None:
        self._say = say
        self._limit = limit
        self._open: OrderedDict[str, None] = OrderedDict()

    async def named(self, request: FetchRequest, caller: Caller, proxy: Proxy | None) -> str:
        """The solver's session for the script's, opened if need be. Empty: the script asked for none."""
        if not request.session:
            return ""
        name = _name(request, caller, proxy)
        if name in self._open:
            self._open.move_to_end(name)
            return name
        words: dict[str, Any] = {"cmd": "sessions.create", "session": name}
        if proxy is not None:
            words["proxy"] = proxy_words(proxy)
        await self._say(words)
        self._open[name] = None
        if len(self._open) > self._limit:
            await self._close(next(iter(self._open)))
        return name

    async def close(self) -> None:
        """Close all. One that is gone already is no matter."""
        for name in tuple(self._open):
            await self._close(name)

    async def _close(self, name: str) -> None:
        self._open.pop(name, None)
        try:
            await self._say({"cmd": "sessions.destroy", "session": name})
        except FetchFailed:
            return  # it was gone, or the solver is: either way it is closed


def _name(request: FetchRequest, caller: Caller, proxy: Proxy | None) -> str:
    """Scrapers may not share a session, nor may two exits; and the solver need not know what they are called."""
    owner = caller.scraper.ref.id if caller.scraper else ""
    told = "\n".join((owner, request.session, proxy.name if proxy else ""))
    return f"scrapeyard-{hashlib.sha256(told.encode()).hexdigest()[:24]}"
