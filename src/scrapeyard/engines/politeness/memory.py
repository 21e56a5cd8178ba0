"""The gate of one process."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from msgspec.structs import replace

from scrapeyard.engines.politeness.port import UNUSED, SiteLimits, SiteState, SiteVerdict, Ticket, is_site
from scrapeyard.engines.politeness.state import Standing
from scrapeyard.engines.politeness.verdicts import WINDOW, SiteReport

MAX_SITES = 10_000
_TOGETHER_SECONDS = 0.05


class _OpenSite:
    """A site that is well and has no limits: the ticket that all its requests share, and their good answers since the
    last report."""

    __slots__ = ("at", "began", "count", "latency", "timed", "turn")

    def __init__(self, turn: Ticket) -> None:
        self.turn = turn
        self.count = self.timed = 0
        self.latency = self.began = self.at = 0.0
        """`began` and `at`: when the first and the last of the answers came."""

    def add(self, verdict: SiteVerdict, now: float) -> bool:
        """A good answer. Whether it is time to learn from them."""
        if not self.count:
            self.began = now
        self.count += 1
        if verdict.latency is not None:
            self.latency += verdict.latency
            self.timed += 1
        self.at = now
        return now - self.began >= _TOGETHER_SECONDS

    def take_report(self) -> SiteReport:
        """As if each had been added to it."""
        count, self.count = self.count, 0
        latency, self.latency = self.latency, 0.0
        timed, self.timed = self.timed, 0
        window = "0" * min(count, WINDOW)
        return SiteReport(requests=count, answered=count, good=count, window=window, latency=latency, timed=timed)


def _holds_nothing(turn: Ticket) -> bool:
    """Whether its end is of no use to others: also one that was given before the site had its present ticket."""
    return turn.place is None and not (turn.is_probe or turn.is_leased or turn.limits.concurrency)


class MemoryGate:
    """Limits that hold within this process; the sites asked longest ago are forgotten. For one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sites: OrderedDict[str, Standing] = OrderedDict()
        self._limits: dict[str, SiteLimits] = {}
        self._seen: dict[str, float] = {}
        self._tickets = count()
        self._open: dict[str, _OpenSite] = {}
        """Sites that were well and had no limits at the last look, a moment ago."""

    async def start(self) -> None:
        """Nothing to connect to."""

    async def stop(self) -> None:
        """Nothing to close."""

    def at_once(self, site: str, limits: SiteLimits) -> Ticket | None:
        """All requests of a site that is well and has no limits share one ticket."""
        known = self._open.get(site)
        return known.turn if known is not None and known.turn.limits is limits else None

    async def acquire(self, site: str, limits: SiteLimits, within: float) -> Ticket:
        """Without a wait inside."""
        if (known := self.at_once(site, limits)) is not None:
            return known
        turn = Ticket(site=site, limits=limits, ticket=f"{next(self._tickets)}")
        self._limits[site] = limits
        self._seen[site] = time.time()
        standing = self._standing(site)
        turn = self._place(standing, turn, within)
        if limits.is_open and standing.is_well and not (turn.refused or turn.wait):
            self._open[site] = _OpenSite(turn)
        else:
            self._open.pop(site, None)
        return turn

    async def recheck(self, turn: Ticket, within: float) -> Ticket:
        """As it stands now."""
        standing, now = self._standing(turn.site), self._clock()
        if turn.place is None:
            return self._place(standing, turn, within)
        standing.advance(now)
        if standing.is_down and not turn.is_probe:
            self.release(turn, UNUSED)
            return replace(turn, refused="down", retry_after=max(1.0, standing.down_until - now))
        wait = standing.wait_for(turn.place, now)
        if wait > within:
            self.release(turn, UNUSED)
            return replace(turn, refused="late", retry_after=wait)
        return replace(turn, wait=wait)

    def release(self, turn: Ticket, verdict: SiteVerdict) -> None:
        """In force at once; where the site is well and has no limits, good answers are learnt together, soon."""
        known = self._open.get(turn.site)
        if known is not None and verdict.answer == "ok" and verdict.sent and _holds_nothing(turn):
            if known.add(verdict, self._clock()):
                self._standing(turn.site)
            return
        self.learn(turn.site, SiteReport().add(turn, verdict), turn.limits)

    def learn(self, site: str, report: SiteReport, limits: SiteLimits) -> None:
        """Several verdicts at once. Whether the site is still well, the next request finds out."""
        self._standing(site).learn(report, limits, self._clock())
        self._open.pop(site, None)

    async def states(self, sites: Sequence[str]) -> Mapping[str, SiteState]:
        """Of this process."""
        now = self._clock()
        return {
            site: self._standing(site).describe(site, self._limits.get(site), now, self._seen.get(site, 0.0))
            for site in sites
            if site in self._sites
        }

    async def known(self) -> Sequence[str]:
        """Since the process started."""
        return [site for site in self._sites if is_site(site)]

    async def reset(self, site: str) -> None:
        """In force at once."""
        if site in self._sites:
            self._standing(site).reset(self._clock())

    def _standing(self, site: str) -> Standing:
        """With all that was learnt of it."""
        standing = self._sites.get(site)
        if (known := self._open.get(site)) is not None and standing is not None and known.count:
            self._seen[site] = time.time() - (self._clock() - known.at)
            standing.learn(known.take_report(), known.turn.limits, known.at)
            if not standing.is_well:
                del self._open[site]
        if standing is None:
            now = self._clock()
            standing = self._sites[site] = Standing(born=now, at=now, counted_at=now)
            if len(self._sites) > MAX_SITES:
                gone, _ = self._sites.popitem(last=False)
                self._open.pop(gone, None)
                self._limits.pop(gone, None)
                self._seen.pop(gone, None)
        else:
            self._sites.move_to_end(site)
        return standing

    def _place(self, standing: Standing, turn: Ticket, within: float) -> Ticket:
        limits, now = turn.limits, self._clock()
        standing.obey(limits, within, now)
        away, is_probe = standing.admit(turn.ticket, now)
        if away > 0:
            standing.forget_ticket(turn.ticket)
            return replace(turn, refused="down", retry_after=away)
        line = standing.take_seat(turn.ticket, limits.concurrency) if limits.concurrency else 0.0
        place = None if line else standing.next_place(limits.burst)
        wait = line or standing.wait_for(place, now)
        if wait > within:
            standing.forget_ticket(turn.ticket)
            return replace(turn, refused="late", retry_after=wait, is_probe=is_probe)
        if place is not None:
            standing.take_place()
        if wait == turn.wait and place == turn.place and is_probe == turn.is_probe:
            return turn
        return replace(turn, wait=wait, place=place, is_probe=is_probe)
