"""The stage that heeds robots.txt, where policy says so: the call's, else the site's, else the setting.

What the file asks for by Crawl-delay becomes a limit of the site's rate, for everyone who fetches from it. A page that
a redirect leads to is not looked up again.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from scrapeyard.engines.http.guard import is_public
from scrapeyard.engines.http.stage import Fetch, FetchContext
from scrapeyard.engines.http.url import Target
from scrapeyard.engines.politeness.policies import FixedPolicies
from scrapeyard.engines.port import FetchResponse
from scrapeyard.engines.robots.copies import SMALL, Copy, RobotsCopies, RobotsRules
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason


class Robots:
    """A Fetch: on to `inner` if the site's robots.txt allows it.

    Raises FetchFailed: `fetch_robots` with the rule that forbids it; `fetch_site_down`, to be tried again after
    `details["retry_after"]` seconds, while the file cannot be had, which RFC 9309 takes for a no.
    """

    def __init__(self, inner: Fetch, copies: RobotsCopies, policies: FixedPolicies) -> None:
        self._inner = inner
        self._copies = copies
        self._policies = policies

    def __call__(self, context: FetchContext) -> Coroutine[Any, Any, FetchResponse]:
        """Costs a look into memory once the file is known, and nothing where it is not obeyed."""
        caller = context.caller
        if not (caller.policy.robots or caller.job_id or self._policies.may_obey_robots):
            return self._inner(context)
        for_job = bool(caller.job_id) and is_public(context.target)
        if (caller.policy.robots or self._policies.robots(context.site, for_job=for_job)) == "obey":
            return self._obey(context)
        return self._inner(context)

    async def _obey(self, context: FetchContext) -> FetchResponse:
        await self._heed(context)
        return await self._inner(context)

    async def stop(self) -> None:
        """Break off what is under way. May be called twice."""
        await self._copies.stop()

    async def _heed(self, context: FetchContext) -> None:
        target, copy = context.target, await self._copies.of(context)
        if copy.rules is None:
            if copy.problem:
                raise _not_had(target, copy, self._copies.seconds_left(copy))
            return
        self._policies.note_crawl_delay(context.site, copy.rules.rate)
        small = copy.rules.size <= SMALL
        rule = _verdict(copy.rules, target) if small else await asyncio.to_thread(_verdict, copy.rules, target)
        if rule is not None:
            raise _forbidden(target, rule)


def _verdict(rules: RobotsRules, target: Target) -> str | None:
    """The rule that forbids it; None: it is allowed."""
    return None if rules.allows(target.url) else rules.forbidding(target.url)


def _forbidden(target: Target, rule: str) -> FetchFailed:
    said = f" by the rule `{rule[:200]}`" if rule else ""
    return FetchFailed(
        ExitReason.FETCH_ROBOTS,
        f"the robots.txt of {target.host} forbids {target.resource[:200]}{said}; leave it out, or set robots to "
        "ignore for this call or site if you may",
        rule=rule[:1000],
    )


def _not_had(target: Target, copy: Copy, seconds: float) -> FetchFailed:
    return FetchFailed(
        ExitReason.FETCH_SITE_DOWN,
        f"the robots.txt of {target.host} cannot be had ({copy.problem}), which counts as a no until it can; it is "
        f"asked for again in {seconds:.0f} s",
        retry_after=max(seconds, 1.0),
    )
