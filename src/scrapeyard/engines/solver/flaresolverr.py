"""FlareSolverr: a browser behind an HTTP door that the operator set up."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec
from wreq import Client, Method, Response
from wreq.redirect import Policy

from scrapeyard.engines.http.body import read_wire
from scrapeyard.engines.http.checks import check_allowed
from scrapeyard.engines.http.clients import proxy_target
from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.failures import WREQ_ERRORS
from scrapeyard.engines.http.url import Target, parse_target
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, Proxy
from scrapeyard.engines.solver.clearance import clearance_of
from scrapeyard.engines.solver.port import Clearance, Solved, SolverAway
from scrapeyard.engines.solver.wire import (
    Solution,
    SolverAnswer,
    cleared_cookies,
    failure,
    header_pairs,
    proxy_words,
    read_answer,
)
from scrapeyard.errors import FetchFailed, SettingsInvalid
from scrapeyard.model import ExitReason
from scrapeyard.settings import EscalationSettings
from scrapeyard.telemetry.events import get_log

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


log = get_log("solver")
_NO_ANSWER: tuple[type[Exception], ...] = (TimeoutError, *WREQ_ERRORS)
_CONNECT_SECONDS = 5.0
_SMALL_SECONDS = 15.0
_GRACE_SECONDS = 5.0
"""What it may take beyond the time it was given, to start and end its browser."""


class FlareSolverr:
    """A Solver. One per worker; its `concurrency` places are this worker's share of the solver."""

    def __init__(
        self,
        settings: EscalationSettings,
        *,
        dns: GuardedDns,
        max_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`dns` asks the guard; the browser resolves again for itself, and may get another answer. `max_bytes` bounds
        a page.

        Raises SettingsInvalid when solver_url cannot be used.
        """
        self._settings = settings
        self._door = _door(settings.solver_url)
        self._dns = dns
        self._max_bytes = max_bytes
        self._clock = clock
        self._free = asyncio.Semaphore(settings.solver_concurrency)
        self._sessions = SolverSessions(self._say_small)
        self._client: Client | None = None

    async def start(self) -> None:
        """Connections are made when first needed."""
        if self._client is None:
            self._client = Client(
                redirect=Policy.none(), no_proxy=True, connect_timeout=timedelta(seconds=_CONNECT_SECONDS)
            )

    async def stop(self) -> None:
        """Closes the sessions that we opened."""
        client = self._client
        if client is not None:
            with suppress(FetchFailed, TimeoutError):
                async with asyncio.timeout(_SMALL_SECONDS):
                    await self._sessions.close()
            self._client = None
            client.close()
        await self._dns.stop()

    async def solve(self, request: FetchRequest, caller: Caller, *, proxy: Proxy | None, seconds: float) -> Solved:
        """As `Solver`. GET and POST of a form or text; another method is fetch_not_allowed."""
        target = parse_target(request.url)
        await self._passes(target, caller)
        if proxy is not None and proxy.guarded:
            await self._dns.addresses(proxy_target(proxy.url))
        began = time.perf_counter()
        try:
            async with asyncio.timeout(seconds + _GRACE_SECONDS):
                async with self._free:
                    solution = await self._ask(request, caller, target, proxy, seconds - (time.perf_counter() - began))
                await self._passes(parse_target(solution.url), caller)
        except TimeoutError:
            raise failure(f"Timeout after {seconds:g} seconds", target.host) from None
        response = self._page(solution, (time.perf_counter() - began) * 1000, proxy)
        keeps = not request.session and request.method.upper() == "GET"
        return Solved(response=response, clearance=self._clearance(solution, target, proxy) if keeps else None)

    async def healthy(self) -> bool:
        """By its /health."""
        parts = urlsplit(self._door)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                response = await self._made().get(f"{parts.scheme}://{parts.netloc}/health")
                return response.status.as_int() == 200
        except _NO_ANSWER:
            return False

    async def _passes(self, target: Target, caller: Caller) -> None:
        check_allowed(target, caller.scraper.allowed_hosts if caller.scraper else ())
        await self._dns.addresses(target)

    async def _ask(
        self, request: FetchRequest, caller: Caller, target: Target, proxy: Proxy | None, seconds: float
    ) -> Solution:
        words = {"url": target.url, "maxTimeout": max(1, int(seconds * 1000)), **_verb(request)}
        session = await self._sessions.named(request, caller, proxy)
        if session:
            words |= {"session": session, "session_ttl_minutes": TTL_MINUTES}
        elif proxy is not None:
            words["proxy"] = proxy_words(proxy)
        answer = await self._say(words, target.host)
        if answer.solution is None:
            raise failure(answer.message or "it gave no solution", target.host)
        return answer.solution

    async def _say_small(self, words: dict[str, Any]) -> SolverAnswer:
        async with asyncio.timeout(_SMALL_SECONDS):
            return await self._say(words, "its session")

    async def _say(self, words: dict[str, Any], host: str) -> SolverAnswer:
        door = parse_target(self._door)
        headers = {"content-type": "application/json", "accept": "application/json"}
        try:
            response = await self._made().request(
                Method.POST, self._door, headers=headers, body=msgspec.json.encode(words)
            )
        except WREQ_ERRORS as error:
            log.warning("solver.away", error=type(error).__name__)
            raise SolverAway(
                f"the solver at {door.host}:{door.port} does not answer; check escalation.solver_url"
            ) from None
        status = response.status.as_int()
        answer = read_answer(await self._read(door, status, response))
        if answer is None:
            log.warning("solver.away", error=f"status {status}")
            raise SolverAway(f"{door.host}:{door.port} does not speak FlareSolverr's protocol (status {status})")
        if answer.status != "ok":
            raise failure(answer.message, host)
        return answer

    async def _read(self, door: Target, status: int, response: Response) -> bytes:
        try:
            return await read_wire(door, status, response, 2 * self._max_bytes)
        except FetchFailed as error:
            if error.reason is ExitReason.FETCH_TOO_LARGE:
                raise
            raise SolverAway(f"the solver at {door.host}:{door.port} broke off its answer") from None

    def _made(self) -> Client:
        if self._client is None:
            raise SolverAway("the solver's client is not started")
        return self._client

    def _page(self, solution: Solution, elapsed_ms: float, proxy: Proxy | None) -> FetchResponse:
        body = (solution.response or "").encode("utf-8", "replace")
        if len(body) > self._max_bytes:
            message = f"the solver's page holds more than {self._max_bytes} bytes; raise http.max_body_mb"
            raise FetchFailed(ExitReason.FETCH_TOO_LARGE, message, site_status=solution.status)
        return FetchResponse(
            url=parse_target(solution.url).url,
            status=solution.status if 100 <= solution.status <= 999 else 200,
            headers=header_pairs(solution) or (("content-type", "text/html; charset=utf-8"),),
            body=body,
            encoding="utf-8",
            elapsed_ms=elapsed_ms,
            bytes_received=len(body),
            way="solver",
            proxy_class=proxy.proxy_class if proxy else "",
            proxy=proxy.name if proxy else "",
            strategy="solver",
        )

    def _clearance(self, solution: Solution, target: Target, proxy: Proxy | None) -> Clearance | None:
        return clearance_of(
            cleared_cookies(solution),
            solution.user_agent,
            host=target.host,
            proxy=proxy,
            now=self._clock(),
            most_seconds=self._settings.remember_seconds,
        )


def _verb(request: FetchRequest) -> dict[str, Any]:
    method = request.method.upper()
    if method == "GET":
        return {"cmd": "request.get"}
    if method != "POST":
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, f"the solver sends GET and POST, not {method[:20]}")
    try:
        return {"cmd": "request.post", "postData": request.body.decode("utf-8")}
    except UnicodeDecodeError:
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, "the solver sends text, and this body is binary") from None


def _door(url: str) -> str:
    try:
        return parse_target(url).url
    except FetchFailed:
        raise SettingsInvalid("escalation.solver_url: write FlareSolverr's address as http://host:8191/v1") from None
