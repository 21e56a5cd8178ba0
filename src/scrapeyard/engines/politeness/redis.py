"""The gate of all workers, on Redis 7 or Valkey.

A request to a site that has a limit costs one round trip. One to a site without, which is well, costs none: what was
learnt is told in the background every REPORT_SECONDS, and the answer says whether the site is still well. While turns
wait for a site, that keeps this process's view of its line fresh too, so that asking again costs nothing.

While Redis is away each process keeps to the limits by itself: the site sees up to as many times its rate as there are
workers. Nothing waits for Redis longer than `patience_seconds`.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from msgspec.structs import replace
from redis.exceptions import ResponseError

from scrapeyard.background import Background
from scrapeyard.engines.politeness.memory import MemoryGate
from scrapeyard.engines.politeness.port import UNUSED, SiteLimits, SiteState, SiteVerdict, Ticket, is_site
from scrapeyard.engines.politeness.redis_scripts import (
    ENTER,
    LOOK,
    REPORT,
    RESET,
    View,
    enter_arguments,
    read_state,
    read_view,
    report_arguments,
)
from scrapeyard.engines.politeness.verdicts import SiteReport
from scrapeyard.redis.connection import CommandLink, Dialer, LinkLost
from scrapeyard.redis.keys import Keys
from scrapeyard.redis.outage import Outage
from scrapeyard.redis.scripts import Script
from scrapeyard.telemetry.events import get_log

REPORT_SECONDS = 0.2
RENEW_SECONDS = 3.0
FRESH_SECONDS = 1.0
"""A view older than this is not reckoned with."""
MAX_VIEWS = 10_000
_LOOK_BATCH = 500


class RedisGate:
    """A SiteGate. One for each process."""

    def __init__(self, url: str, *, prefix: str = "scrapeyard", patience_seconds: float = 0.5) -> None:
        self._keys = Keys(prefix)
        self._patience = patience_seconds
        self._log = get_log("sites")
        outage = Outage(
            away=lambda error, _: self._log.warning("sites.away", error=error),
            back=lambda seconds: self._log.info("sites.back", away_seconds=seconds),
        )
        self._link = CommandLink(Dialer(url), outage)
        self._local = MemoryGate()
        self._name = f"{os.getpid():x}.{secrets.token_hex(4)}"
        self._tickets = count()
        self._views: dict[str, View] = {}
        self._limits: dict[str, SiteLimits] = {}
        """Of the sites that have turns or reports, as last told."""
        self._reports: dict[str, SiteReport] = {}
        self._held: dict[str, set[str]] = {}
        """Tickets by site that wait, or that the server must keep for us."""
        self._renewed_at = 0.0
        self._work = asyncio.Event()
        self._urgent = asyncio.Event()
        self._background = Background()

    async def start(self) -> None:
        """Begins to connect and waits for it, but no longer than the patience."""
        if not self._background.start(self._keep_telling, name="site-gate"):
            return
        self._link.start()
        with suppress(LinkLost):
            await self._link.ready(asyncio.get_running_loop().time() + self._patience)

    async def stop(self) -> None:
        """Tell what is left. Turns that are still held expire."""
        if await self._background.stop():
            await self._report()
            await self._link.stop()

    def at_once(self, site: str, limits: SiteLimits) -> Ticket | None:
        """From what the server said a moment ago."""
        return self._ticket(site, limits) if limits.is_open and self._is_well(site) else None

    async def acquire(self, site: str, limits: SiteLimits, within: float) -> Ticket:
        """One round trip, unless it is given at once."""
        return self.at_once(site, limits) or await self._enter(self._ticket(site, limits), within)

    def _ticket(self, site: str, limits: SiteLimits) -> Ticket:
        return Ticket(site=site, limits=limits, ticket=f"{self._name}.{next(self._tickets):x}")

    async def recheck(self, turn: Ticket, within: float) -> Ticket:
        """From what is known of the line here, where that is fresh."""
        if turn.is_local:
            return await self._local.recheck(turn, within)
        self._limits[turn.site] = turn.limits
        view = self._views.get(turn.site)
        if turn.place is None:
            return await self._enter(turn, within)
        if view is None or time.monotonic() - view.asked_at > FRESH_SECONDS:
            await self._tell_one(turn.site)
            view = self._views.get(turn.site)
        if view is None:
            self._forget(turn)
            return await self._alone(turn, within)
        return self._judged(turn, view, within)

    def release(self, turn: Ticket, verdict: SiteVerdict) -> None:
        """Told to the server within REPORT_SECONDS; at once where others wait for it."""
        if turn.is_local:
            self._local.release(turn, verdict)
            return
        self._forget(turn)
        self._limits[turn.site] = turn.limits
        report = self._reports.setdefault(turn.site, SiteReport()).add(turn, verdict)
        self._work.set()
        if report.is_urgent:
            self._urgent.set()
        if verdict.answer == "throttled":
            self._views.pop(turn.site, None)

    async def states(self, sites: Sequence[str]) -> Mapping[str, SiteState]:
        """As the server knows them; as this process does while it is away."""
        try:
            replies: list[Any] = []
            for start in range(0, len(sites), _LOOK_BATCH):
                replies += await self._ask_many(LOOK, [(site, (site,)) for site in sites[start : start + _LOOK_BATCH]])
        except LinkLost:
            return await self._local.states(sites)
        found = zip(sites, replies, strict=True)
        return {site: read_state(site, reply) for site, reply in found if isinstance(reply, bytes)}

    async def known(self) -> Sequence[str]:
        """Of the last day."""
        try:
            (reply,) = await self._link.ask(("ZRANGE", self._keys.sites, 0, -1), within=self._patience)
        except LinkLost:
            return await self._local.known()
        return [] if isinstance(reply, ResponseError) else list(filter(is_site, (site.decode() for site in reply)))

    async def reset(self, site: str) -> None:
        """For all workers; they see it within REPORT_SECONDS of their next request."""
        await self._local.reset(site)
        self._views.pop(site, None)
        with suppress(LinkLost):
            await self._ask_many(RESET, [(site, ())])

    def _is_well(self, site: str) -> bool:
        view = self._views.get(site)
        return view is not None and view.is_well and time.monotonic() - view.asked_at < FRESH_SECONDS

    async def _enter(self, turn: Ticket, within: float) -> Ticket:
        self._limits[turn.site] = turn.limits
        asking = asyncio.ensure_future(self._ask_many(ENTER, [(turn.site, enter_arguments(turn, within))]))
        try:
            ((refused, seconds, place, probe, view),) = await asyncio.shield(asking)
        except LinkLost:
            return await self._alone(turn, within)
        except asyncio.CancelledError:
            asking.add_done_callback(lambda done: self._give_up(turn, done))
            raise
        self._note(turn.site, view)
        if refused:
            self._forget(turn)
            return replace(turn, refused=refused.decode(), retry_after=float(seconds))
        turn = _placed(turn, seconds, place, probe)
        if turn.wait or turn.is_probe or turn.limits.concurrency:
            self._held.setdefault(turn.site, set()).add(turn.ticket)
            self._work.set()
        return turn

    def _give_up(self, turn: Ticket, asking: asyncio.Future[list[Any]]) -> None:
        """The one who asked has left meanwhile: what the server gave is given back."""
        if asking.cancelled() or asking.exception() is not None:
            return
        ((refused, seconds, place, probe, _),) = asking.result()
        if not refused:
            self.release(_placed(turn, seconds, place, probe), UNUSED)

    async def _alone(self, turn: Ticket, within: float) -> Ticket:
        return replace(await self._local.acquire(turn.site, turn.limits, within), is_local=True)

    def _judged(self, turn: Ticket, view: View, within: float) -> Ticket:
        now = time.monotonic()
        if view.down is not None and not turn.is_probe:
            self.release(turn, UNUSED)
            return replace(turn, refused="down", retry_after=max(1.0, view.asked_at + view.down - now))
        wait = view.wait_for(turn.place or 0.0, now)
        if wait > within:
            self.release(turn, UNUSED)
            return replace(turn, refused="late", retry_after=wait)
        return replace(turn, wait=wait)

    def _forget(self, turn: Ticket) -> None:
        held = self._held.get(turn.site)
        if held is not None:
            held.discard(turn.ticket)
            if not held:
                del self._held[turn.site]

    def _note(self, site: str, reply: Sequence[bytes]) -> None:
        self._views.pop(site, None)
        self._views[site] = read_view(reply, time.monotonic())
        if len(self._views) > MAX_VIEWS:
            oldest = next(iter(self._views))
            del self._views[oldest]
            self._limits.pop(oldest, None)

    async def _keep_telling(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(REPORT_SECONDS):
                    await self._urgent.wait()
            self._urgent.clear()
            await self._report()
            if self._held:
                self._work.set()

    async def _report(self) -> None:
        """Reports, and the leases and views of what is held."""
        reports, self._reports = self._reports, {}
        now = time.monotonic()
        renew = now - self._renewed_at >= RENEW_SECONDS
        self._renewed_at = now if renew else self._renewed_at
        sites = [*reports, *(site for site in self._held if site not in reports)]
        for start in range(0, len(sites), _LOOK_BATCH):
            await self._tell_of(sites[start : start + _LOOK_BATCH], reports, renew)

    async def _tell_one(self, site: str) -> None:
        report = self._reports.pop(site, None)
        await self._tell_of([site], {} if report is None else {site: report}, renew=False)

    async def _tell_of(self, sites: Sequence[str], reports: Mapping[str, SiteReport], renew: bool) -> None:
        calls = []
        for site in sites:
            held = tuple(self._held.get(site, ())) if renew else ()
            arguments = report_arguments(site, reports.get(site) or SiteReport(), self._limit_of(site), held)
            calls.append((site, arguments))
        try:
            views = await self._ask_many(REPORT, calls)
        except LinkLost:
            for site in sites:
                self._views.pop(site, None)
                if site in reports:
                    self._local.learn(site, reports[site], self._limit_of(site))
            return
        for site, view in zip(sites, views, strict=True):
            self._note(site, view)

    def _limit_of(self, site: str) -> SiteLimits:
        return self._limits.get(site) or SiteLimits()

    async def _ask_many(self, script: Script, calls: Sequence[tuple[str, tuple[str | int | float, ...]]]) -> list[Any]:
        """One round trip for all. Raises LinkLost, also when the server refuses."""
        keyed = [(self._keys.site(site), arguments) for site, arguments in calls]
        replies = await script.run_many(self._link, keyed, within=self._patience)
        for reply in replies:
            if isinstance(reply, ResponseError):
                self._log.warning("sites.refused", error=str(reply)[:200])
                raise LinkLost(str(reply))
        return replies


def _placed(turn: Ticket, seconds: bytes, place: bytes, probe: int) -> Ticket:
    wait, given = float(seconds), float(place) if place else None
    return replace(turn, wait=wait, place=given, is_probe=bool(probe), is_leased=given is not None and wait > 0)
