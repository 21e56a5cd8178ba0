"""Plain HTTP by wreq: pooled, browser-like, timed, and never at an address that the guard has not passed."""

import asyncio
import time
from collections.abc import Coroutine
from functools import lru_cache
from types import TracebackType
from typing import Any

from scrapeyard.engines.http.checks import (
    Hop,
    check_certificate,
    connect_limit,
    first_hop,
    keep_limit,
    page_limit,
    time_limit,
)
from scrapeyard.engines.http.clients import ClientIdentity, Clients, PinnedClients, profile_of
from scrapeyard.engines.http.cookies import Cookie, Jar, MemorySessions, Sessions
from scrapeyard.engines.http.dns import GuardedDns, Resolve, system_resolve
from scrapeyard.engines.http.hops import SITE_OF, HopLoop, RequestTerms
from scrapeyard.engines.http.shares import BodyMemory, RequestSlots
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.http.url import Target
from scrapeyard.engines.port import PLAIN, Caller, FetchRequest, FetchResponse, Route
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import HttpSettings
from scrapeyard.store.ports.operations import SessionStore

_EVERY_SECONDS = 0.5


class Deadlines:
    """For the tasks of one event loop. Far ends share one timer, which looks through them now and then."""

    def __init__(self, every_seconds: float = _EVERY_SECONDS) -> None:
        """`every_seconds`: how often those that are far from their end are looked through."""
        self.every = every_seconds
        self.far: set[Limit] = set()
        self.is_looking = False

    def within(self, seconds: float | None) -> "Limit":
        """A context that raises TimeoutError, as asyncio.timeout does, when it lasts longer. None: it may last."""
        return Limit(self, seconds)

    def look(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on, while there are far ends."""
        self.is_looking = True
        loop.call_later(self.every, self._poll)

    def _poll(self) -> None:
        """Those that end before the next look get timers of their own."""
        loop = asyncio.get_running_loop()
        next_look = loop.time() + self.every
        for limit in [limit for limit in self.far if limit.ends <= next_look]:
            self.far.remove(limit)
            limit.timer = loop.call_at(limit.ends, limit.end)
        self.is_looking = bool(self.far)
        if self.is_looking:
            loop.call_at(next_look, self._poll)


class Limit:
    """One task's, entered once."""

    __slots__ = ("_before", "_deadlines", "_is_over", "_seconds", "_task", "ends", "timer")

    def __init__(self, deadlines: Deadlines, seconds: float | None) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._is_over = False
        self.timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        seconds = self._seconds
        if seconds is None:
            return
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        if self._task is None:
            raise RuntimeError("a time limit holds for a task, and there is none")
        self._before = self._task.cancelling()
        self.ends = loop.time() + seconds
        if seconds <= self._deadlines.every:
            self.timer = loop.call_at(self.ends, self.end)
        else:
            self._deadlines.far.add(self)
            if not self._deadlines.is_looking:
                self._deadlines.look(loop)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.far.discard(self)
        if self.timer is not None:
            self.timer.cancel()
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
        self._connect_seconds, self._total_seconds = settings.connect_seconds, settings.total_seconds
        self._dns = GuardedDns(settings, resolve=resolve, own_port=own_port)
        self._clients = PinnedClients(Clients(settings), self._dns)
        self._sessions = Sessions(sessions or MemorySessions(), settings.session_days)
        self._slots = RequestSlots(settings.concurrency)
        self._memory = BodyMemory(int(settings.bodies_mb * 1024 * 1024))
        self._deadlines = Deadlines()
        self._terms = lru_cache(maxsize=1024)(self._make_terms)
        """Remembered, since most fetches look alike."""

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
        if request.certificate:
            check_certificate(request, self._settings)
        policy, scraper = caller.policy, caller.scraper
        terms = self._terms(
            way,
            way.profile or request.profile or policy.profile,
            scraper.allowed_hosts if scraper else (),
            self._connect_seconds if policy.connect_seconds is None else connect_limit(policy, self._settings),
            (request.certificate, request.max_bytes, request.follow_redirects),
        )
        is_usual = request.timeout_seconds is None and policy.request_seconds is None and request.keep is None
        seconds = self._total_seconds if is_usual else time_limit(request, policy, self._settings)
        has_cookies = request.session or way.cookies
        jar = await self._open_jar(request, caller, way, hop.target) if has_cookies else None
        walk = HopLoop(self._clients, terms, self._memory, jar, request.keep)
        try:
            with self._deadlines.within(seconds):
                if not self._slots.take():
                    await self._slots.wait()
                try:
                    return await walk.run(hop)
                finally:
                    self._slots.give()
        except TimeoutError:
            raise _too_slow(hop, seconds, walk.stage) from None
        finally:
            if jar is not None and request.session and jar.changed:
                await self._sessions.keep(_owner(caller), request.session, jar.changes(), jar.changed, time.time())

    def _make_terms(
        self,
        way: Route,
        profile: str,
        allowed_hosts: tuple[str, ...],
        connect_seconds: float,
        wishes: tuple[str, int | None, bool],
    ) -> RequestTerms:
        """`wishes` are the request's own: certificate, `max_bytes` and whether redirects are followed."""
        settings, proxy = self._settings, way.proxy
        certificate, max_bytes, follow_redirects = wishes
        dress = ClientIdentity(
            profile=profile or profile_of(way.user_agent) or settings.profile,
            user_agent=way.user_agent,
            proxy=proxy.url if proxy else "",
            proxy_guarded=proxy.guarded if proxy else False,
            certificate=certificate,
            ca_file=proxy.ca_file if proxy else None,
            connect_seconds=connect_seconds,
        )
        name = (proxy.name or "in use") if proxy else ""
        return RequestTerms(
            allowed_hosts=allowed_hosts,
            dress=dress,
            way=way,
            page_limit=page_limit(max_bytes, settings),
            keep_limit=keep_limit(max_bytes, settings),
            max_redirects=settings.max_redirects if follow_redirects else None,
            proxy=name,
            told=f"{dress.profile} via {name}" if name else dress.profile,
            adds_headers=bool(way.user_agent or way.headers),
        )

    async def _open_jar(self, request: FetchRequest, caller: Caller, way: Route, target: Target) -> Jar:
        kept = await self._sessions.open(_owner(caller), request.session, time.time()) if request.session else []
        jar = Jar(SITE_OF, kept)
        for name, value in way.cookies:
            jar.put(Cookie(name=name, value=value, domain=SITE_OF(target.host)))
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
