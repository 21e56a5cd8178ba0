"""The stage at which a fetch waits for its site's turn.

A fetch is charged to the site of its first URL. What it is redirected to, also at another site, is part of the same
turn: a redirect is the first site's answer, and a page rarely leads away more than once.

Failures count for the site once its origin (host and port) has answered. Until then they count for that origin alone,
so that nobody can close a site for all by asking for a port or a name of it that was never there.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from scrapeyard.engines.http.guard import is_public
from scrapeyard.engines.http.stage import Fetch, FetchContext
from scrapeyard.engines.http.url import Target
from scrapeyard.engines.politeness import verdicts
from scrapeyard.engines.politeness.policies import FixedPolicies
from scrapeyard.engines.politeness.port import UNUSED, SiteGate, SiteLimits, SiteVerdict, Ticket, job_key, origin_key
from scrapeyard.engines.port import Caller, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

Limits = Callable[[], SiteLimits]
"""The limits in force now: they may change while a request waits."""
_FREE = SiteLimits()
_UNKNOWN = SiteVerdict(answer="unknown")
_ANSWERED = SiteVerdict(answer="ok", sent=False)
_BREAKER = ("breaker_failures", "breaker_ratio", "breaker_seconds")
_MAX_ORIGINS = 20_000
_ALMOST = 0.002
"""Seconds too few to wait for: an event loop is no more exact."""
_SLEEP_THROUGH = 1.0
"""Seconds that are waited in one go; of a longer wait half is, since a new limit may bring the turn forward."""
_ASKING_A_SECOND = 100
"""How often all who wait for one site may ask together, which lets a few wait in small steps and many in large."""


class _Origins:
    """Origins that have answered this worker, the last ones."""

    def __init__(self) -> None:
        self._answered: OrderedDict[tuple[str, int], None] = OrderedDict()

    def has_answered(self, target: Target) -> bool:
        return (target.host, target.port) in self._answered

    def note(self, target: Target) -> None:
        self._answered[target.host, target.port] = None
        if len(self._answered) > _MAX_ORIGINS:
            self._answered.popitem(last=False)


class RateLimited:
    """A Fetch: through the gate, then on to `inner`.

    Raises FetchFailed: `fetch_rate_limited` when the turn would come after `sites.wait_seconds`, with
    `details["retry_after"]`; `fetch_site_down` while the site is left alone.
    """

    def __init__(self, inner: Fetch, gate: SiteGate, policies: FixedPolicies) -> None:
        self._inner = inner
        self._gate = gate
        self._policies = policies
        self._waiting: Counter[str] = Counter()
        self._origins = _Origins()

    def __call__(self, context: FetchContext) -> Coroutine[Any, Any, FetchResponse]:
        """One turn, given back whatever happens. A job without a rate of its own has one in the line of jobs before."""
        caller, site = context.caller, context.site
        if caller.job_id and not caller.has_rate and is_public(context.target) and self._policies.job_limits(site):
            return self._after_jobs(context)
        return self._at_site(context) if self._origins.has_answered(context.target) else self._at_origin(context)

    async def _after_jobs(self, context: FetchContext) -> FetchResponse:
        site = context.site
        turn = await self._turn(job_key(site), lambda: self._policies.job_limits(site) or _FREE, context.caller)
        has_answered = self._origins.has_answered(context.target)
        try:
            return await (self._at_site(context) if has_answered else self._at_origin(context))
        finally:
            self._gate.release(turn, _UNKNOWN)

    async def _at_origin(self, context: FetchContext) -> FetchResponse:
        """The origin has a breaker of its own until it answers."""
        target, breaker = context.target, self._policies.limits(context.site)
        alone = SiteLimits(**{name: getattr(breaker, name) for name in _BREAKER})
        turn = await self._gate.acquire(origin_key(target.host, target.port), alone, self._policies.wait_seconds)
        if turn.refused:
            raise _refused(replace(turn, site=f"{target.host}:{target.port}"))
        verdict = UNUSED
        try:
            response = await self._at_site(context)
            verdict = _ANSWERED
        except FetchFailed as failure:
            verdict = verdicts.of_failure(context.request, context.caller.policy, failure)
            verdict = _ANSWERED if verdict.answer == "ok" else replace(verdict, sent=False)
            raise
        finally:
            if verdict is _ANSWERED:
                self._origins.note(target)
            self._gate.release(turn, verdict)
        return response

    async def _at_site(self, context: FetchContext) -> FetchResponse:
        site, policies = context.site, self._policies
        limits = policies.limits(site)
        turn = self._gate.at_once(site, limits) or await self._gate.acquire(site, limits, policies.wait_seconds)
        if turn.refused or turn.wait > _ALMOST:
            turn = await self._wait(turn, lambda: policies.limits(site), context.caller)
        verdict = _UNKNOWN
        try:
            response = await self._inner(context)
            verdict = verdicts.of_response(response)
        except FetchFailed as failure:
            verdict = verdicts.of_failure(context.request, context.caller.policy, failure)
            if failure.site_status is None and not self._origins.has_answered(context.target):
                verdict = verdict if verdict.answer != "failed" else _UNKNOWN
            raise
        finally:
            self._gate.release(turn, verdict)
        return response

    async def _turn(self, key: str, limits: Limits, caller: Caller) -> Ticket:
        """A turn that has come up."""
        turn = await self._gate.acquire(key, limits(), self._policies.wait_seconds)
        return await self._wait(turn, limits, caller) if turn.refused or turn.wait > _ALMOST else turn

    async def _wait(self, turn: Ticket, limits: Limits, caller: Caller) -> Ticket:
        until = time.monotonic() + self._policies.wait_seconds
        self._waiting[turn.site] += 1
        try:
            while not turn.refused and turn.wait > _ALMOST:
                turn = await self._wait_a_while(turn, limits, caller, until)
        finally:
            self._waiting[turn.site] -= 1
            if not self._waiting[turn.site]:
                del self._waiting[turn.site]
        if turn.refused:
            raise _refused(turn)
        return turn

    async def _wait_a_while(self, turn: Ticket, limits: Limits, caller: Caller, until: float) -> Ticket:
        try:
            if caller.on_wait is not None:
                caller.on_wait(_name(turn), turn.wait)
            await caller.pause(self._step(turn))
            turn = replace(turn, limits=limits())
            return await self._gate.recheck(turn, max(0.0, until - time.monotonic()))
        except FetchFailed:
            self._gate.release(turn, UNUSED)
            raise _refused(replace(turn, refused="late", retry_after=turn.wait)) from None
        except BaseException:
            self._gate.release(turn, UNUSED)
            raise

    def _step(self, turn: Ticket) -> float:
        longest = max(_SLEEP_THROUGH, self._waiting[turn.site] / _ASKING_A_SECOND)
        return min(turn.wait, max(_SLEEP_THROUGH, min(turn.wait / 2, longest)))


def _name(turn: Ticket) -> str:
    """The site, also for a turn in the line of jobs."""
    return turn.site.removeprefix(job_key(""))


def _refused(turn: Ticket) -> FetchFailed:
    seconds = max(turn.retry_after, 0.001)
    turn = replace(turn, site=_name(turn))
    if turn.refused == "down":
        return FetchFailed(
            ExitReason.FETCH_SITE_DOWN,
            f"{turn.site} failed so often that it is left alone for another {seconds:.0f} s; come back then, or close "
            f"its breaker with POST /api/sites/{turn.site}/reset",
            site=turn.site,
            retry_after=seconds,
        )
    return FetchFailed(
        ExitReason.FETCH_RATE_LIMITED,
        f"the turn at {turn.site} comes in {seconds:.1f} s, later than the fetch may wait; come back then, or raise "
        f"the site's rate or sites.wait_seconds",
        site=turn.site,
        retry_after=seconds,
    )
