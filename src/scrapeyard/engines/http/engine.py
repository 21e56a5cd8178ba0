"""Plain HTTP by wreq: pooled, browser-like, timed, and never at an address that the guard has not passed."""

import asyncio
import time
from collections.abc import Coroutine
from functools import lru_cache
from types import TracebackType
from typing import Any

from msgspec.structs import replace
from wreq import Client

from scrapeyard.engines.http.checks import (
    Hop,
    check_certificate,
    connect_limit,
    first_hop,
    keep_limit,
    page_limit,
    time_limit,
)
from scrapeyard.engines.http.clients import ClientIdentity, Clients, profile_of, proxy_target
from scrapeyard.engines.http.cookies import Cookie, Jar, MemorySessions, Sessions
from scrapeyard.engines.http.dns import GuardedDns, Resolve, system_resolve
from scrapeyard.engines.http.hops import HopLoop, RequestTerms
from scrapeyard.engines.http.shares import BodyMemory, BodyShare
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.http.url import Target
from scrapeyard.engines.port import PLAIN, Caller, FetchRequest, FetchResponse, Proxy, Route
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import HttpSettings
from scrapeyard.store.ports.operations import SessionStore

_EVERY_SECONDS = 0.5


class Deadlines:
    """For the tasks of one event loop."""

    def __init__(self, every_seconds: float = _EVERY_SECONDS) -> None:
        """`every_seconds`: how often those that are far from their end are looked through."""
        self._every = every_seconds
        self._far: set[Limit] = set()
        self._looking = False

    def within(self, seconds: float | None) -> "Limit":
        """A context that raises TimeoutError, as asyncio.timeout does, when it lasts longer. None: it may last."""
        return Limit(self, seconds)

    def watch(self, limit: "Limit", seconds: float) -> None:
        """From now on."""
        loop = asyncio.get_running_loop()
        limit.ends = loop.time() + seconds
        if seconds <= self._every:
            limit.timer = loop.call_at(limit.ends, limit.end)
            return
        self._far.add(limit)
        if not self._looking:
            self._looking = True
            loop.call_later(self._every, self._poll)

    def leave(self, limit: "Limit") -> None:
        """No longer."""
        self._far.discard(limit)
        if limit.timer is not None:
            limit.timer.cancel()

    def _poll(self) -> None:
        """Those that end before the next look get timers of their own."""
        loop = asyncio.get_running_loop()
        next_look = loop.time() + self._every
        for limit in [limit for limit in self._far if limit.ends <= next_look]:
            self._far.remove(limit)
            limit.timer = loop.call_at(limit.ends, limit.end)
        self._looking = bool(self._far)
        if self._looking:
            loop.call_at(next_look, self._poll)


class Limit:
    """One task's, entered once."""

    __slots__ = ("_before", "_deadlines", "_is_over", "_seconds", "_task", "ends", "timer")

    def __init__(self, deadlines: Deadlines, seconds: float | None) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._task: asyncio.Task[object] | None = None
        self._is_over = False
        self.ends = 0.0
        self.timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        if self._seconds is None:
            return
        self._task = asyncio.current_task()
        if self._task is None:
            raise RuntimeError("a time limit holds for a task, and there is none")
        self._before = self._task.cancelling()
        self._deadlines.watch(self, self._seconds)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.leave(self)
        # Who cancels the task beside us is heard: then the count stays above what it was.
        if self._is_over and self._task and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def end(self) -> None:
        """The time is over."""
        self._is_over = True
        if self._task is not None:
            self._task.cancel()


class WreqEngine:
    """The HTTP engine's innermost stage. One per worker."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        resolve: Resolve = system_resolve,
        sessions: SessionStore | None = None,
        own_port: int | None = None,
    ) -> None:
        """`sessions` keeps the cookies of named sessions; None: in memory, as long as this engine lives. `own_port` is
        the gateway's on this machine, which nobody reaches; None: there is none.

        Raises SettingsInvalid when the profile, the CA bundle or an allowed host makes no sense.
        """
        self._settings = settings
        self._dns = GuardedDns(settings, resolve=resolve, own_port=own_port)
        self._clients = Clients(settings)
        self._sessions = Sessions(sessions or MemorySessions(), settings.session_days)
        self._site_of = Sites().of  # a cookie's domain is the public suffix list's matter, not of our settings
        self._free = asyncio.Semaphore(settings.concurrency)
        self._memory = BodyMemory(int(settings.bodies_mb * 1024 * 1024))
        self._deadlines = Deadlines()

    async def start(self) -> None:
        """Ready to fetch. Connections are made when first needed."""

    async def stop(self) -> None:
        """Close connections; fetches in flight fail. May be called twice."""
        self._clients.close()
        await self._dns.stop()

    async def fetch(self, request: FetchRequest, caller: Caller, way: Route = PLAIN) -> FetchResponse:
        """As `HttpEngine`, without any stage around it."""
        return await self._fetch(first_hop(request), request, caller, way)

    def __call__(self, context: FetchContext, way: Route = PLAIN) -> Coroutine[Any, Any, FetchResponse]:
        """As `RoutedFetch`."""
        request = context.request
        return self._fetch(first_hop(request, context.target), request, context.caller, way)

    async def _fetch(self, hop: Hop, request: FetchRequest, caller: Caller, way: Route) -> FetchResponse:
        """The time limit covers everything: waiting for a free connection, redirects, the whole body."""
        check_certificate(request, self._settings)
        terms = self._terms(request, caller, way)
        seconds = time_limit(request, caller.policy, self._settings)
        has_cookies = request.session or way.cookies
        jar = await self._open_jar(request, caller, way, hop.target) if has_cookies else Jar(self._site_of)
        share = BodyShare(self._memory)
        walk = HopLoop(self._connect, terms, jar, share)
        try:
            with self._deadlines.within(seconds):
                async with self._free:
                    return await walk.run(hop)
        except TimeoutError:
            raise _too_slow(hop, seconds, "waiting for memory" if share.is_waiting else walk.stage) from None
        finally:
            share.close()
            if request.session and jar.changed:
                await self._sessions.keep(_owner(caller), request.session, jar.changes(), jar.changed, time.time())

    async def _connect(self, target: Target, dress: ClientIdentity) -> Client:
        addresses = self._dns.known(target) or await self._dns.addresses(target)
        if dress.proxy_guarded:
            dress = replace(dress, proxy_at=await self._dns.addresses(proxy_target(dress.proxy)))
        try:
            return self._clients.get(target.host, addresses, dress)
        except ValueError as error:
            raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, f"the request cannot be made so: {error}") from None

    def _terms(self, request: FetchRequest, caller: Caller, way: Route) -> RequestTerms:
        settings = self._settings
        profile = way.profile or request.profile or caller.policy.profile or profile_of(way.user_agent)
        return RequestTerms(
            allowed_hosts=caller.scraper.allowed_hosts if caller.scraper else (),
            dress=self._dress(
                profile or settings.profile,
                way.user_agent,
                way.proxy,
                request.certificate,
                connect_limit(caller.policy, settings),
            ),
            way=way,
            page_limit=page_limit(request, settings),
            keep_limit=keep_limit(request, settings),
            keep=request.keep,
            max_redirects=settings.max_redirects if request.follow_redirects else None,
        )

    @staticmethod
    @lru_cache(maxsize=1024)
    def _dress(
        profile: str, user_agent: str, proxy: Proxy | None, certificate: str, connect_seconds: float
    ) -> ClientIdentity:
        """Remembered, since most fetches look alike."""
        return ClientIdentity(
            profile=profile,
            user_agent=user_agent,
            proxy=proxy.url if proxy else "",
            proxy_guarded=proxy.guarded if proxy else False,
            certificate=certificate,
            ca_file=proxy.ca_file if proxy else None,
            connect_seconds=connect_seconds,
        )

    async def _open_jar(self, request: FetchRequest, caller: Caller, way: Route, target: Target) -> Jar:
        kept = await self._sessions.open(_owner(caller), request.session, time.time()) if request.session else []
        jar = Jar(self._site_of, kept)
        for name, value in way.cookies:
            jar.put(Cookie(name=name, value=value, domain=self._site_of(target.host)))
        return jar


def _too_slow(hop: Hop, seconds: float | None, stage: str) -> FetchFailed:
    return FetchFailed(
        ExitReason.FETCH_TIMEOUT,
        f"{hop.target.host} took longer than {seconds:g} s, {stage}; "
        "raise the fetch's timeout, policy.request_seconds or http.total_seconds, or try again later",
        stage=stage,
    )


def _owner(caller: Caller) -> str:
    return caller.scraper.ref.id if caller.scraper else ""
