"""The browser engine of a worker: lends contexts, each with its own way out, and settles what they used."""

import asyncio
import itertools
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from scrapeyard.engines.browser.hosts import BrowserHosts
from scrapeyard.engines.browser.operations import Operation
from scrapeyard.engines.browser.places import place_of
from scrapeyard.engines.browser.port import (
    LIGHT_HOST,
    USUAL_HOST,
    BrowserHost,
    ContextEnd,
    ContextOptions,
    Done,
    ForwardProxy,
    HostContext,
    HostKind,
    LogMessage,
    Passage,
)
from scrapeyard.engines.browser.sessions import BrowserSessions
from scrapeyard.engines.port import Caller, Proxy
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import BrowserSettings
from scrapeyard.telemetry.events import get_log

log = get_log("browser")
_CONTEXT_MB = 80
_CONTAINER_FILES = (
    ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""Limit and use of memory: cgroup version 2, and version 1."""
_FETCH_SECONDS, _PUT_BACK_SECONDS = 10.0, 10.0
_CLOSE_SECONDS = 20.0
_BY_PROXY = (ExitReason.FETCH_CONNECT, ExitReason.FETCH_PROXY, ExitReason.FETCH_DNS, ExitReason.FETCH_PROTOCOL)
"""Reasons by which the browser tells that the forward proxy refused; the proxy knows why."""
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?")
"""The rest is for the driver to refuse."""

ChooseExit = Callable[[Caller, str], Proxy | None]
"""The exit that policy asks for, by caller and session. Raises FetchFailed."""


class Browsers:
    """As `BrowserEngine`."""

    def __init__(
        self,
        settings: BrowserSettings,
        *,
        hosts: BrowserHosts,
        proxy: ForwardProxy,
        sessions: BrowserSessions,
        choose_exit: ChooseExit,
        max_bytes: int,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._hosts = hosts
        self._proxy = proxy
        self._sessions = sessions
        self._choose_exit = choose_exit
        self._max_bytes = max_bytes
        self._on_stop = on_stop
        self._most = settings.max_contexts or contexts_by_memory()
        self._free = asyncio.Semaphore(self._most)
        self._numbers = itertools.count(1)
        self.open_now = 0

    async def start(self) -> None:
        """Ready. Starts no browser."""
        await self._hosts.start()

    async def stop(self) -> None:
        """End every browser; contexts fail. May be called twice."""
        await self._hosts.stop()
        await self._proxy.stop()
        self._on_stop()

    @asynccontextmanager
    async def open(
        self,
        options: ContextOptions,
        caller: Caller,
        *,
        way: Proxy | Literal["policy"] | None = "policy",
        light: bool = False,
    ) -> AsyncIterator["OpenContext"]:
        """As `BrowserEngine.open`."""
        exit_proxy = self._choose_exit(caller, options.session) if way == "policy" else way
        options = _placed(options, (exit_proxy.country if exit_proxy else caller.policy.country) or "")
        async with (
            self._seat(may_wait_outside=way != "policy"),
            self._hosts.lent(LIGHT_HOST if light else _kind(options)) as host,
        ):
            state = await self._state(options, caller)
            user, password = self._proxy.admit(Passage(caller=caller, exit=exit_proxy))
            context = OpenContext(host, next(self._numbers), self._proxy, user, exit_proxy)
            began = asyncio.get_running_loop().time()
            try:
                told = HostContext(
                    options=options, user=user, password=password, state=state, max_bytes=self._max_bytes
                )
                await host.open(context.number, told)
                yield context
            finally:
                await asyncio.shield(self._close(context, caller, options, state))
                caller.ledger.count_browser(pages=0, saved=0, ms=1000 * (asyncio.get_running_loop().time() - began))

    async def _state(self, options: ContextOptions, caller: Caller) -> dict[str, Any]:
        return await self._sessions.open(_owner(caller), options.session) if options.session else {}

    @asynccontextmanager
    async def _seat(self, *, may_wait_outside: bool) -> AsyncIterator[None]:
        """`may_wait_outside`: a fetch that has to wait for long is put back, as one whose site is busy; waiting here
        would use up the time of its run."""
        seconds = min(_FETCH_SECONDS, self._settings.wait_seconds) if may_wait_outside else self._settings.wait_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        except TimeoutError:
            raise self._none_free(seconds, may_wait_outside=may_wait_outside) from None
        self.open_now += 1
        try:
            yield
        finally:
            self.open_now -= 1
            self._free.release()

    def _none_free(self, seconds: float, *, may_wait_outside: bool) -> FetchFailed:
        words = f"all {self._most} pages of this worker's browser were in use for {seconds:g} s"
        if may_wait_outside:
            message = f"{words}; the run is put back for {_PUT_BACK_SECONDS:g} s"
            return FetchFailed(ExitReason.FETCH_RATE_LIMITED, message, retry_after=_PUT_BACK_SECONDS)
        return FetchFailed(ExitReason.BROWSER_TIMEOUT, f"{words}; raise browser.max_contexts, or add workers")

    async def _close(
        self, context: "OpenContext", caller: Caller, options: ContextOptions, before: dict[str, Any]
    ) -> None:
        """Whatever state it is in: a browser that does not close it is given up."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                context.end = await context.host.close(context.number)
        except (FetchFailed, TimeoutError) as error:
            log.warning("browser.not_closed", run=caller.run_id, error=repr(error))
            if isinstance(error, TimeoutError):
                await context.host.end()
        counted = await self._proxy.dismiss(context.user)
        context.received = counted.received
        end = context.end or ContextEnd()
        caller.ledger.count_browser(pages=end.pages, saved=end.blocked_bytes)
        if options.session and context.end is not None:
            await self._sessions.keep(_owner(caller), options.session, before, end.state)


class OpenContext:
    """As `BrowserContext`."""

    def __init__(
        self, host: BrowserHost, number: int, proxy: ForwardProxy, user: str, exit_proxy: Proxy | None
    ) -> None:
        self.host = host
        self.number = number
        self.user = user
        self.exit = exit_proxy
        self.end: ContextEnd | None = None
        self.received = 0
        """Bytes, once it is closed."""
        self._proxy = proxy

    async def perform(self, operation: Operation, raw: bytes = b"") -> Done:
        """As `BrowserContext.perform`."""
        before = self._proxy.count(self.user).refused
        try:
            done = await self.host.perform(self.number, operation, raw)
        except FetchFailed as error:
            counted = self._proxy.count(self.user)
            if error.reason not in _BY_PROXY or counted.refused == before:
                raise
            raise _by_proxy(counted.last_refusal, error) from None
        counted = self._proxy.count(self.user)
        if counted.refused > before and counted.last_refusal.startswith(ExitReason.FETCH_BUDGET.value):
            # Parts of the page are missing, and nobody would notice.
            raise _by_proxy(counted.last_refusal, FetchFailed(ExitReason.FETCH_BUDGET, counted.last_refusal))
        return done

    def messages(self) -> list[LogMessage]:
        """As `BrowserContext.messages`."""
        return self.host.messages(self.number)

    def watch(self) -> AsyncGenerator[bytes]:
        """As `BrowserContext.watch`."""
        return self.host.watch(self.number)

    @property
    def received_so_far(self) -> int:
        """Bytes, as on the wire."""
        return self.received or self._proxy.count(self.user).received


def contexts_by_memory(root: Path = Path("/")) -> int:
    """How many contexts half of the memory has room for that can be had now, on this machine and in this container."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        free_mb = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) / 1024
    except (OSError, ValueError, StopIteration):
        free_mb = 2048
    return max(2, min(200, int(min(free_mb, _left_in_container(root)) / 2 / _CONTEXT_MB)))


def _left_in_container(root: Path) -> float:
    """Megabytes that the limit of a container leaves, as it sees itself; without one, there is no end."""
    left = float("inf")
    for limit, used in _CONTAINER_FILES:
        with suppress(OSError, ValueError):  # `max`, or no such file
            left = min(left, int((root / limit).read_text()) - int((root / used).read_text()))
    return max(0.0, left / 2**20)


def _placed(options: ContextOptions, country: str) -> ContextOptions:
    """With the language, the time zone and the position of the exit's country, where the script names none."""
    place = place_of(country) if country else None
    if place is None:
        return options
    has_position = options.latitude is not None and options.longitude is not None
    return replace(
        options,
        locale=options.locale or place.locale,
        timezone=options.timezone or place.timezone,
        latitude=options.latitude if has_position else place.latitude,
        longitude=options.longitude if has_position else place.longitude,
    )


def _kind(options: ContextOptions) -> HostKind:
    return HostKind(language=options.locale) if _LANGUAGE.fullmatch(options.locale) else USUAL_HOST


def _by_proxy(refusal: str, error: FetchFailed) -> FetchFailed:
    """`fetch_private_address: 10.0.0.1 is private` as the error that it is."""
    reason, _, words = refusal.partition(": ")
    try:
        return FetchFailed(ExitReason(reason), words)
    except ValueError:
        return error


def _owner(caller: Caller) -> str:
    return caller.scraper.ref.id if caller.scraper else ""
