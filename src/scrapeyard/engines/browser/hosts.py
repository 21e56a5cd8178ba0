"""The browsers of one worker: started on first need, started anew when used up, stopped when idle."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from scrapeyard.background import Background
from scrapeyard.engines.browser.port import USUAL_HOST, BrowserHost, HostKind
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import BrowserSettings
from scrapeyard.telemetry.events import get_log

log = get_log("browser")
_LOOK_SECONDS = 5.0
_REST_SECONDS = 5.0
"""After a browser did not start, those who come meanwhile hear of the same failure."""

_MAX_KINDS = 4
"""Browsers that take contexts at once; each is for another language."""

StartHost = Callable[[HostKind], Awaitable[BrowserHost]]
"""Raises FetchFailed (`browser_unavailable`)."""


class _Host:
    """One host and what is known of it."""

    def __init__(self, host: BrowserHost) -> None:
        self.host = host
        self.began = time.monotonic()
        self.opened = 0
        self.open = 0
        self.free_since = self.began
        self.worn = ""
        """Why it takes no more contexts; empty: it does."""


class BrowserHosts:
    """Lends hosts. At most one of each kind takes new contexts; one that is worn ends with its last context."""

    def __init__(self, settings: BrowserSettings, start_host: StartHost) -> None:
        self._settings = settings
        self._start_host = start_host
        self._current: dict[HostKind, _Host] = {}
        self._worn: set[_Host] = set()
        self._starting = asyncio.Lock()
        self._failed: dict[HostKind, tuple[float, FetchFailed]] = {}
        self._background = Background()
        self._stopped = False

    async def start(self) -> None:
        """Look after the hosts from now on. Starts none."""
        self._background.start(self._keep_looking, name="browser hosts")

    async def stop(self) -> None:
        """End every host. May be called twice."""
        self._stopped = True
        await self._background.stop()
        async with self._starting:
            hosts = [*self._worn, *self._current.values()]
            self._current.clear()
            self._worn.clear()
        for each in hosts:
            await each.host.end()

    @property
    def pids(self) -> list[int]:
        """Of the hosts that run."""
        return [each.host.pid for each in (*self._worn, *self._current.values())]

    @asynccontextmanager
    async def lent(self, kind: HostKind = USUAL_HOST) -> AsyncIterator[BrowserHost]:
        """A host for one context. Raises FetchFailed (`browser_unavailable`)."""
        async with self._starting:
            mine = await self._ready(await self._make_room(kind))
            mine.open += 1
            mine.opened += 1
        try:
            yield mine.host
        finally:
            mine.open -= 1
            mine.free_since = time.monotonic()
            if mine.worn and not mine.open:
                self._worn.discard(mine)
                await asyncio.shield(mine.host.end())

    async def _make_room(self, kind: HostKind) -> HostKind:
        """The kind, or the usual one if all others are in use: it serves every language, if less well."""
        if kind in self._current or len(self._current) < _MAX_KINDS or kind.light:
            return kind
        if free := [each for each in self._current.items() if not each[1].open]:
            oldest = min(free, key=lambda each: each[1].free_since)
            await self._retire(oldest[0], "another language is needed")
            return kind
        return USUAL_HOST

    async def _ready(self, kind: HostKind) -> _Host:
        current = self._current.get(kind)
        if current is not None and not (worn := self._wear(current)):
            return current
        if current is not None:
            await self._retire(kind, worn)
        if self._stopped:
            raise FetchFailed(ExitReason.BROWSER_UNAVAILABLE, "this worker is stopping")
        if kind in self._failed and self._failed[kind][0] > time.monotonic():
            raise _copy(self._failed[kind][1])
        try:
            started = self._current[kind] = _Host(await self._start_host(kind))
        except FetchFailed as error:
            self._failed[kind] = (time.monotonic() + _REST_SECONDS, _copy(error))
            raise
        self._failed.pop(kind, None)
        log.info("browser.started", pid=started.host.pid)
        return started

    def _wear(self, host: _Host) -> str:
        """Why it should take no more contexts; empty: it may."""
        if not host.host.is_alive:
            return "it died"
        if host.opened >= self._settings.contexts_each:
            return f"it had {host.opened} contexts"
        if time.monotonic() - host.began > 60 * self._settings.minutes_each:
            return f"it ran for {self._settings.minutes_each:g} minutes"
        return host.worn

    async def _retire(self, kind: HostKind, why: str) -> None:
        host = self._current.pop(kind)
        log.info("browser.retired", pid=host.host.pid, why=why, contexts=host.opened)
        host.worn = why
        if host.open:
            self._worn.add(host)
        else:
            await host.host.end()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(min(_LOOK_SECONDS, max(0.05, self._settings.idle_seconds / 4)))
            async with self._starting:
                await self._look()

    async def _look(self) -> None:
        for kind, host in list(self._current.items()):
            if not host.open and time.monotonic() - host.free_since >= self._settings.idle_seconds:
                await self._retire(kind, "nobody needs it")
            elif (memory := await host.host.memory_mb()) > self._settings.memory_mb:
                await self._retire(kind, f"it uses {memory:.0f} MB")


def _copy(error: FetchFailed) -> FetchFailed:
    """Without the traceback, which would hold the first caller's frames."""
    return FetchFailed(error.reason, error.message, **error.details)
