"""Plain HTTP by wreq: pooled, browser-like, and never at an address that the guard has not passed.

A fetch is a walk: for each hop the host is checked against the scraper's allowed hosts, resolved, checked by the guard
and asked through a client pinned to those addresses. Redirects are followed here, not in wreq, so that each is checked.

Limits: cookies live for one fetch; a page is held in memory whole, at most `max_body_mb` on the wire and as much again
decompressed.
"""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from wreq import Client, Jar, Response

from scrapeyard.engines.admission import METHODS, check_allowed, first_hop, page_limit, time_limit
from scrapeyard.engines.body import read_wire, undo_encoding
from scrapeyard.engines.charset import find_charset
from scrapeyard.engines.clients import Clients
from scrapeyard.engines.failures import WREQ_ERRORS, explain, is_stale_connection
from scrapeyard.engines.guard import Guard
from scrapeyard.engines.names import Names, Resolve, system_resolve
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.engines.redirects import Hop, next_hop
from scrapeyard.engines.target import Address, Target
from scrapeyard.engines.way import PLAIN, Way
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import HttpSettings

if TYPE_CHECKING:
    from wreq.wreq import Request as Options

_SAFE_TO_REPEAT = frozenset({"GET", "HEAD", "OPTIONS"})


class WreqEngine:
    """The HTTP engine. One per worker."""

    def __init__(
        self, settings: HttpSettings, *, resolve: Resolve = system_resolve, authorities: Path | None = None
    ) -> None:
        """`authorities` is a PEM file of certificate authorities trusted beside the usual ones.

        Raises SettingsInvalid when the profile or an allowed host makes no sense.
        """
        self._settings = settings
        self._guard = Guard(allow_private=settings.allow_private, allow_hosts=settings.allow_hosts)
        self._names = Names(resolve)
        self._clients = Clients(settings, authorities=authorities)
        self._free = asyncio.Semaphore(settings.concurrency)

    async def start(self) -> None:
        """Ready to fetch. Connections are made when first needed."""

    async def stop(self) -> None:
        """Close connections; fetches in flight fail. May be called twice."""
        self._clients.close()
        await self._names.stop()

    async def fetch(self, request: FetchRequest, caller: Caller, way: Way = PLAIN) -> FetchResponse:
        """Get a page. The time limit covers everything: waiting for a free connection, redirects, the whole body."""
        hop = first_hop(request)
        scraper = caller.scraper
        walk = _Walk(self, scraper.allowed_hosts if scraper else (), page_limit(request, self._settings))
        seconds = time_limit(request, self._settings)
        try:
            async with asyncio.timeout(seconds), self._free:
                return await walk.go(hop, self._settings.max_redirects if request.follow_redirects else None)
        except TimeoutError:
            raise FetchFailed(
                ExitReason.FETCH_TIMEOUT,
                f"{hop.target.host} took longer than {seconds:g} s, {walk.stage}; "
                "raise timeout_seconds or http.total_seconds, or try again later",
            ) from None

    async def addresses(self, target: Target) -> tuple[Address, ...]:
        """The checked addresses of a target. Raises FetchFailed."""
        if target.literal is not None:
            found: tuple[Address, ...] = (target.literal,)
        else:
            found = await self._names.addresses(target.host, target.port)
        self._guard.check(target.host, found)
        return found

    def client(self, target: Target, addresses: tuple[Address, ...]) -> Client:
        """A client that reaches a target at these addresses only."""
        return self._clients.get(target.host, addresses)


class _Walk:
    """One fetch from the first hop to the last."""

    def __init__(self, engine: WreqEngine, allowed_hosts: tuple[str, ...], limit: int) -> None:
        self._engine = engine
        self._allowed_hosts = allowed_hosts
        self._limit = limit
        self._jar: Jar | None = None
        self._seen: list[str] = []
        self._began = time.perf_counter()
        self.stage = "waiting for a free connection"

    async def go(self, hop: Hop, max_redirects: int | None) -> FetchResponse:
        """`max_redirects` None means that the first answer is the last."""
        while True:
            response = await self._ask(hop)
            status = response.status.as_int()
            onward = None if max_redirects is None else next_hop(hop, status, _header(response, "location"))
            if onward is None:
                return await self._read(hop, status, response)
            self._seen.append(hop.target.url)
            if len(self._seen) > (max_redirects or 0):
                raise _too_many(self._seen)
            self._keep_cookies(hop, response)
            await response.close()
            hop = onward

    async def _ask(self, hop: Hop) -> Response:
        check_allowed(hop.target, self._allowed_hosts)
        self.stage = "resolving its name"
        addresses = await self._engine.addresses(hop.target)
        client = self._engine.client(hop.target, addresses)
        self.stage = "waiting for its answer"
        try:
            return await self._send(client, hop)
        except WREQ_ERRORS as error:
            if hop.method not in _SAFE_TO_REPEAT or not is_stale_connection(error):
                raise explain(error, hop.target) from None
        try:
            return await self._send(client, hop)
        except WREQ_ERRORS as error:
            raise explain(error, hop.target) from None

    async def _send(self, client: Client, hop: Hop) -> Response:
        options: Options = {}
        if hop.headers:
            options["headers"] = hop.headers
        if hop.body:
            options["body"] = hop.body
        if self._jar is not None and not hop.sends_own_cookies:
            options["cookie_provider"] = self._jar
        try:
            return await client.request(METHODS[hop.method], hop.target.url, **options)
        except asyncio.CancelledError:
            # wreq reports a closed client so; a true cancellation is counted on the task.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise FetchFailed(ExitReason.FETCH_CONNECT, "the engine is stopping; the run will be tried again") from None

    def _keep_cookies(self, hop: Hop, response: Response) -> None:
        cookies = response.headers.get_all("set-cookie")
        if cookies and self._jar is None:
            self._jar = Jar()
        for cookie in cookies:
            if self._jar is not None:
                self._jar.add(bytes(cookie).decode("latin-1"), hop.target.url)

    async def _read(self, hop: Hop, status: int, response: Response) -> FetchResponse:
        self.stage = "sending its page"
        wire = await read_wire(hop.target, status, response, self._limit)
        body = await undo_encoding(hop.target, status, _header(response, "content-encoding"), wire, self._limit)
        return FetchResponse(
            url=hop.target.url,
            status=status,
            headers=tuple((_text(name), _text(value)) for name, value in response.headers),
            body=body,
            encoding=find_charset(_header(response, "content-type") or "", body),
            elapsed_ms=(time.perf_counter() - self._began) * 1000,
            redirects=tuple(self._seen),
            bytes_received=len(wire),
        )


def _header(response: Response, name: str) -> str | None:
    value = response.headers.get(name)
    return None if value is None else _text(value)


def _text(value: memoryview) -> str:
    return str(value, "latin-1")


def _too_many(seen: list[str]) -> FetchFailed:
    loop = ", in a loop" if len(set(seen)) < len(seen) else ""
    message = f"more than {len(seen) - 1} redirects{loop}; the last came from {seen[-1][:200]}"
    return FetchFailed(ExitReason.FETCH_REDIRECTS, message, redirects=seen)
