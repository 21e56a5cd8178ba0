"""Answers 429 to clients that call more often, or have more calls running, than they may."""

import asyncio
import math
from typing import Final

import msgspec
from msgspec import Struct
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.background import Background
from scrapeyard.engines.budget.clients import ClientBudgets
from scrapeyard.errors import Refusal, ScrapeyardError
from scrapeyard.gateway.http.doors import refuse
from scrapeyard.gateway.http.problems import from_error
from scrapeyard.gateway.limits.port import ClientLimiter, Entry, burst_of, window_of
from scrapeyard.model.identity import NOBODY, ClientLimits, Identity
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.telemetry.events import get_log

log = get_log("limits")
SPENDS: Final = frozenset({"/api/scrape", "/api/map", "/api/extract", "/api/crawl", "/api/jobs", "/api/cache/warm"})
"""Paths on which a POST makes runs or jobs, which a budget must allow."""
HOLDS: Final = frozenset({"/api/scrape", "/api/map", "/api/extract"})
"""Paths on which a POST runs something while it is answered."""
LOOK_SECONDS: Final = 0.5
"""How often runs that were answered with a handle are looked up."""
_MOST_RUNS: Final = 500
"""Runs looked up at once."""
_NO_LIMITS: Final = ClientLimits()
_ACCEPTED: Final = 202
_STARTS: Final = ("http.response.start", "websocket.http.response.start")


class _Handle(Struct):
    id: str = ""
    runs: list["_Handle"] = []


_HANDLE: Final = msgspec.json.Decoder(_Handle)


class HandedOut:
    """Keeps the places of calls that were answered with a handle (202) until their runs have ended."""

    def __init__(self, limiter: ClientLimiter, runs: RunStore) -> None:
        self._limiter = limiter
        self._runs = runs
        self._held: dict[str, Entry] = {}
        """By run; the runs of one call share an entry."""
        self._background = Background()

    async def start(self) -> None:
        """Look runs up in the background. May be called twice."""
        self._background.start(self._keep_looking, name="limits-handles")

    async def stop(self) -> None:
        """Stop. Places on Redis come free when their leases end. May be called twice."""
        await self._background.stop()

    def keep(self, entry: Entry, answer: bytes) -> bool:
        """Keep the place for the runs of this answer. False if there are none, or all are kept by an earlier call."""
        try:
            handle = _HANDLE.decode(answer)
        except msgspec.DecodeError:
            return False
        new = [run.id for run in (handle, *handle.runs) if run.id and run.id not in self._held]
        self._held |= dict.fromkeys(new, entry)
        return bool(new)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except ScrapeyardError as error:
                log.debug("limits.handles_unknown", error=error.message)

    async def _look(self) -> None:
        known = list(self._held)
        for start in range(0, len(known), _MOST_RUNS):
            some = known[start : start + _MOST_RUNS]
            for run_id in set(some) - await self._runs.unfinished(some):
                entry = self._held.pop(run_id)
                if entry not in self._held.values():
                    self._limiter.leave(entry)


class Limited:
    """Counts the calls of clients that have limits; those of others cost nothing. Stands behind `Authentication`."""

    def __init__(
        self,
        app: ASGIApp,
        limiter: ClientLimiter,
        budgets: ClientBudgets,
        default: ClientLimits,
        handed_out: HandedOut,
    ) -> None:
        self._app = app
        self._handed_out = handed_out
        self._limiter = limiter
        self._budgets = budgets
        self._default = default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        limits, client = self._limits(scope)
        if limits is None:
            await self._app(scope, receive, send)
            return
        scope["body_mb"] = limits.body_mb
        holds = scope.get("method") == "POST" and scope["path"] in HOLDS
        entry = await self._limiter.enter(client, limits, holds=holds)
        telling = _telling(send, limits, entry)
        if entry.refused:
            await refuse(from_error(_refusal(limits, entry)), scope, receive, telling)
            return
        answer = bytearray()
        try:
            if (error := await self._spent(scope, client, limits)) is not None:
                await refuse(from_error(error), scope, receive, telling)
            else:
                await self._app(scope, receive, _watched(telling, answer) if entry.ticket else telling)
        finally:
            if not (answer and self._handed_out.keep(entry, bytes(answer))):
                self._limiter.leave(entry)

    def _limits(self, scope: Scope) -> tuple[ClientLimits | None, str]:
        """Of a client, its own or the settings'; None if there are none. Callers without a name have none."""
        identity: Identity | None = scope.get("identity")
        if identity is None or identity is NOBODY or not identity.client:
            return None, ""
        if identity.limits == _NO_LIMITS:
            return None if self._default == _NO_LIMITS else self._default, identity.client
        return identity.limits.over(self._default), identity.client

    async def _spent(self, scope: Scope, client: str, limits: ClientLimits) -> ScrapeyardError | None:
        """Why a call must not make runs or jobs; None if it may, or makes none."""
        if scope.get("method") != "POST" or scope["path"] not in SPENDS:
            return None
        try:
            over = await self._budgets.used_up(client, limits)
        except ScrapeyardError as error:
            return error
        if over is None:
            return None
        wait = max(1.0, over.until - self._budgets.clock())
        return Refusal("client_budget", 429, over.words, retry_after=wait)


def _refusal(limits: ClientLimits, entry: Entry) -> Refusal:
    if entry.refused == "rate":
        words = f"this client may call {limits.rate:g} times a second"
    else:
        words = f"{limits.concurrency} calls of this client run already, which is as many as may run at once"
    return Refusal("too_many_calls", 429, words, retry_after=entry.retry_after)


def _watched(send: Send, answer: bytearray) -> Send:
    """Collects the body of an answer with a handle."""
    is_handle = False

    async def watched(message: Message) -> None:
        nonlocal is_handle
        if message["type"] == "http.response.start":
            is_handle = message["status"] == _ACCEPTED
        elif is_handle and message["type"] == "http.response.body":
            answer.extend(message.get("body", b""))
        await send(message)

    return watched


def _telling(send: Send, limits: ClientLimits, entry: Entry) -> Send:
    """Adds RateLimit and RateLimit-Policy, as the IETF's draft describes them, to the answer."""
    if not limits.rate:
        return send
    quota, window = burst_of(limits.rate), window_of(limits.rate)
    reset = math.ceil(entry.retry_after) if entry.refused else window

    async def telling(message: Message) -> None:
        if message["type"] in _STARTS:
            headers = MutableHeaders(scope=message)
            headers["RateLimit-Policy"] = f'"calls";q={quota};w={window}'
            headers["RateLimit"] = f'"calls";r={math.floor(entry.remaining)};t={reset}'
        await send(message)

    return telling
