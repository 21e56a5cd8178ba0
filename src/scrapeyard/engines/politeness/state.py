"""One site's line, breaker and pace, as plain arithmetic on times that the caller gives.

The same arithmetic is in `lua/site.lua`, for all workers at once; one contract suite holds both together.

The line has a clock of its own that counts requests: it advances by the rate in force for each second, and a place has
come up when the clock shows it. So a change of rate moves everybody who waits, and closing the site stops the clock.
That is GCRA with the theoretical arrival time counted in requests instead of seconds.
"""

import math
from bisect import bisect_left, insort
from dataclasses import dataclass, field

from scrapeyard.engines.politeness.port import MAX_CLOSED_SECONDS, SiteLimits, SiteState
from scrapeyard.engines.politeness.verdicts import WINDOW, SiteReport

ENOUGH = WINDOW // 2
"""Requests before the breaker's ratio, and latencies before their rise, mean anything."""
_COUNT_SECONDS = 5.0
_SLOW_LATENCY = 1.0
_CRAWL_SECONDS = 10.0
"""How long a delay of robots.txt holds after nobody waits by it any more."""
_MAX_HOLES = 1000


@dataclass(slots=True)
class Standing:
    """What is known of one site. Times are seconds of one clock, which never goes back."""

    born: float
    at: float = 0.0
    clock: float = 0.0
    """What the line's own clock shows at `at`; while `at` lies ahead, the site is closed."""
    arrival: float = 0.0
    """GCRA's theoretical arrival time of the next request, on the line's clock."""
    holes: list[float] = field(default_factory=list)
    """Places that were given back and have not come up, in order. The clock jumps over each when it shows it."""
    rate: float = 0.0
    crawl: float = 0.0
    crawl_until: float = 0.0
    slow: float = 0.0
    """What the site's own answers brought the rate down to; 0: they did not."""
    was: float = 0.0
    """The rate before the first of those, which ends them when it is reached again."""
    step: float = 0.0
    slowed_at: float = -math.inf
    grown_at: float = -math.inf
    row: int = 0
    """Failures in a row."""
    window: str = ""
    is_down: bool = False
    down_until: float = 0.0
    probe: str = ""
    """The ticket of the request that tries a site which is down."""
    latency: float = 0.0
    usual: float = 0.0
    """What the latency is when the site is well."""
    timed: int = 0
    count: float = 0.0
    """Requests, those of long ago counting less and less."""
    counted_at: float = 0.0
    seats: dict[str, None] = field(default_factory=dict)
    """Tickets in the order of asking; the first `concurrency` of them are in flight."""

    @property
    def is_well(self) -> bool:
        """Whether nothing about the site itself can make a request wait."""
        return not (self.is_down or self.slow or self.rate or self.crawl or self.seats)

    def in_force(self) -> float:
        """Requests a second; 0: no limit."""
        if not (self.rate or self.crawl or self.slow):
            return 0.0
        rates = [rate for rate in (self.rate, self.crawl, self.slow) if rate > 0]
        return min(rates, default=0.0)

    def advance(self, now: float) -> None:
        """Let the line's clock run until now."""
        if self.crawl and now >= self.crawl_until:
            self.crawl = 0.0
        if now > self.at:
            self.clock += (now - self.at) * self.in_force()
            self.at = now
        while self.holes and self.holes[0] <= self.clock:
            del self.holes[0]
            self.clock += 1

    def obey(self, limits: SiteLimits, within: float, now: float) -> None:
        """Take the limits on. Places that nobody would wait for any more are free again."""
        self.advance(now)
        self.rate = limits.rate
        if limits.crawl_rate:
            self.crawl = limits.crawl_rate
            self.crawl_until = max(self.crawl_until, now + _CRAWL_SECONDS + min(within, MAX_CLOSED_SECONDS))
        last = self.clock + limits.burst + self.in_force() * within + len(self.holes)
        if self.arrival > last:
            self.arrival = last
            self.holes = [place for place in self.holes if place <= last - limits.burst]

    def closed(self, now: float) -> float:
        """Seconds until the clock runs again."""
        return max(0.0, self.at - now)

    def wait_for(self, place: float | None, now: float) -> float:
        """Seconds until a place comes up."""
        rate = self.in_force()
        if place is None or rate <= 0:
            return self.closed(now)
        return self.closed(now) + max(0.0, place - self.clock - bisect_left(self.holes, place)) / rate

    def next_place(self, burst: int) -> float | None:
        """The place that the next request gets; None where there is no rate."""
        return max(self.arrival, self.clock) - (burst - 1) if self.in_force() > 0 else None

    def take_place(self) -> None:
        """Somebody has it."""
        self.arrival = max(self.arrival, self.clock) + 1

    def give_back(self, place: float, burst: int) -> None:
        """Nobody used it: whoever stands behind it moves up. One that came up long ago is over."""
        if place <= self.clock - burst or len(self.holes) >= _MAX_HOLES:
            return
        insort(self.holes, place)
        while self.holes and self.holes[-1] == self.arrival - 1 - (burst - 1):
            self.holes.pop()
            self.arrival -= 1

    def take_seat(self, ticket: str, concurrency: int) -> float:
        """0: there is one, and it is held. Otherwise the ticket stands in line; about how many seconds that lasts."""
        self.seats.setdefault(ticket)
        before = list(self.seats).index(ticket) - concurrency + 1
        if before <= 0:
            return 0.0
        rate = self.in_force()
        each = max((self.latency or 0.1) / concurrency, 1 / rate if rate else 0.0)
        return max(before * each, 0.01)

    def admit(self, ticket: str, now: float) -> tuple[float, bool]:
        """Seconds that the breaker keeps this request away, and whether it is the one that tries the site."""
        if not self.is_down:
            return 0.0, False
        if now < self.down_until:
            return self.down_until - now, False
        if self.probe not in ("", ticket):
            return 1.0, False
        self.probe = ticket
        return 0.0, True

    def forget_ticket(self, ticket: str) -> None:
        """It is over, before it went anywhere."""
        self.seats.pop(ticket, None)
        if self.probe == ticket:
            self.probe = ""

    def learn(self, report: SiteReport, limits: SiteLimits, now: float) -> None:
        """What happened since the last report."""
        self.advance(now)
        for ticket in report.left:
            self.seats.pop(ticket, None)
        if report.unused:
            for place in sorted(report.unused, reverse=True):
                self.give_back(place, limits.burst)
            self.advance(now)
        self._count(report.requests, now)
        self._time(report)
        if limits.adapt:
            self._adapt(report, limits, now)
        self._break(report, limits, now)

    def reset(self, now: float) -> None:
        """As if the site had always been well."""
        self.advance(now)
        self.at = min(self.at, now)
        self.slow = self.was = self.step = 0.0
        self.latency = self.usual = 0.0
        self.timed = self.row = 0
        self.window = self.probe = ""
        self.is_down = False

    def requests_a_second(self, now: float) -> float:
        """Lately. Of a site that is new, since its first request."""
        age = max(now - self.born, 1.0)
        count = self.count * math.exp(-max(0.0, now - self.counted_at) / _COUNT_SECONDS)
        return count / (_COUNT_SECONDS * (1 - math.exp(-age / _COUNT_SECONDS)))

    def describe(self, site: str, limits: SiteLimits | None, now: float, seen_at: float) -> SiteState:
        """For people."""
        self.advance(now)
        burst, concurrency = (limits.burst, limits.concurrency) if limits else (1, 0)
        waiting = max(0, math.ceil(self.arrival - burst - self.clock - len(self.holes))) if self.in_force() else 0
        recent = len(self.window)
        return SiteState(
            site=site,
            rate=self.in_force() or None,
            slowed=self.slow > 0,
            closed_seconds=self.closed(now),
            waiting=waiting + (max(0, len(self.seats) - concurrency) if concurrency else 0),
            in_flight=min(len(self.seats), concurrency) if concurrency else None,
            breaker=("open" if now < self.down_until else "half_open") if self.is_down else "closed",
            breaker_seconds=max(0.0, self.down_until - now) if self.is_down else 0.0,
            recent=recent,
            success_share=self.window.count("0") / recent if recent else None,
            latency_seconds=self.latency if self.timed else None,
            requests_a_second=self.requests_a_second(now),
            seen_at=seen_at,
        )

    def _count(self, requests: int, now: float) -> None:
        self.count = self.count * math.exp(-max(0.0, now - self.counted_at) / _COUNT_SECONDS) + requests
        self.counted_at = now

    def _time(self, report: SiteReport) -> None:
        if not report.timed:
            return
        mean = report.latency / report.timed
        share = 1 - 0.8 ** min(report.timed, 50)
        self.latency = mean if not self.timed else self.latency + share * (mean - self.latency)
        if self.timed < ENOUGH:
            self.usual = (self.usual * self.timed + report.latency) / (self.timed + report.timed)
        else:
            # it falls with the latency, and rises so slowly that a rise of the latency shows
            self.usual += (0.1 if mean < self.usual else 0.002) * (mean - self.usual)
        self.timed += report.timed

    def _adapt(self, report: SiteReport, limits: SiteLimits, now: float) -> None:
        is_slow = self.timed >= ENOUGH and self.latency > max(_SLOW_LATENCY, 4 * self.usual)
        if report.throttled:
            self._slow_down(limits, now)
            if report.retry_after:
                self.at = max(self.at, now + min(report.retry_after, MAX_CLOSED_SECONDS))
        elif is_slow and report.timed:
            if self._slow_down(limits, now):
                self.usual *= 1.25  # a site that stays so is the usual one in the end
        elif report.good:
            self._speed_up(now)

    def _reaction(self) -> float:
        """Seconds after a change during which answers still tell of the time before it."""
        return max(1.0, 2 * self.latency)

    def _slow_down(self, limits: SiteLimits, now: float) -> bool:
        if now - self.slowed_at < self._reaction():
            return False
        before = self.in_force() or self.requests_a_second(now)
        self.was = self.was or before
        self.step = before / 20
        self.slow = min(before, max(limits.min_rate, before / 2))
        self.arrival = max(self.arrival, self.clock)
        self.slowed_at = self.grown_at = now
        return True

    def _speed_up(self, now: float) -> None:
        if not self.slow or now - self.slowed_at < 2 * self._reaction() or now - self.grown_at < 1 or self.at > now:
            return
        self.slow += max(self.step, self.slow / 8)
        self.grown_at = now
        if self.slow >= (self.rate or self.was):
            self.slow = self.was = 0.0

    def _break(self, report: SiteReport, limits: SiteLimits, now: float) -> None:
        if self.is_down:
            self._judge_probe(report, limits, now)
            return
        self.window = (self.window + report.window)[-WINDOW:]
        self.row = report.trailing + (self.row if report.trailing == report.answered else 0)
        share = self.window.count("1") / max(1, len(self.window))
        if self.row >= limits.breaker_failures or (len(self.window) >= ENOUGH and share >= limits.breaker_ratio):
            self.is_down, self.down_until, self.probe = True, now + limits.breaker_seconds, ""

    def _judge_probe(self, report: SiteReport, limits: SiteLimits, now: float) -> None:
        if not report.probe:
            return
        self.probe = ""
        if report.probe == "failed":
            self.down_until = now + limits.breaker_seconds
        elif report.probe == "ok":
            self.is_down, self.row, self.window = False, 0, ""
