"""The gate's scripts: their arguments and what they answer."""

from bisect import bisect_left
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from scrapeyard.engines.politeness.port import SiteLimits, SiteState, Ticket
from scrapeyard.engines.politeness.verdicts import SiteReport
from scrapeyard.redis.scripts import Script

ENTER, REPORT, LOOK, RESET = (
    Script.load("scrapeyard.engines.politeness", "lua/site.lua", f"lua/{name}.lua")
    for name in ("enter", "report", "look", "reset")
)


class View(Struct, frozen=True, kw_only=True):
    """How a site's line stood when the server was last asked."""

    asked_at: float
    """By this process's own clock."""
    clock: float
    closed: float
    """Seconds until the line moves."""
    rate: float
    """0: no limit."""
    down: float | None
    """Seconds for which the site is left alone, 0 when one request may try it; None: it is well."""
    holes: tuple[float, ...] = ()
    """Places that were given back, in order."""

    @property
    def is_well(self) -> bool:
        """Whether nothing of its own makes a request wait."""
        return not self.rate and not self.closed and self.down is None

    def wait_for(self, place: float, now: float) -> float:
        """Seconds until a place comes up, from `now` by this process's clock."""
        closed = max(0.0, self.asked_at + self.closed - now)
        if not self.rate:
            return closed
        ran = max(0.0, now - self.asked_at - self.closed)
        left = place - self.clock - ran * self.rate - bisect_left(self.holes, place)
        return closed + max(0.0, left) / self.rate


class _Looked(Struct):
    rate: float
    slowed: bool
    closed_seconds: float
    waiting: float
    in_flight: float
    is_down: bool
    breaker_seconds: float
    recent: int
    failures: int
    timed: float
    latency_seconds: float
    requests_a_second: float
    seen_at: float


_NO_HOLES = (b"\x80", b"\x90")
"""What an empty table of Lua may become."""
_holes = msgspec.msgpack.Decoder(tuple[float, ...])
_looked = msgspec.json.Decoder(_Looked)


def enter_arguments(turn: Ticket, within: float) -> tuple[str | int | float, ...]:
    """For enter.lua."""
    limits = turn.limits
    return (turn.site, turn.ticket, within, limits.rate, limits.burst, limits.concurrency, limits.crawl_rate)


def report_arguments(
    site: str, report: SiteReport, limits: SiteLimits, renewed: Sequence[str]
) -> tuple[str | int | float, ...]:
    """For report.lua."""
    unused = sorted(report.unused, reverse=True)
    return (
        site,
        report.requests,
        report.answered,
        report.good,
        report.window,
        report.trailing,
        report.throttled,
        report.retry_after,
        report.latency,
        report.timed,
        report.probe,
        int(limits.adapt),
        limits.min_rate,
        limits.breaker_failures,
        limits.breaker_ratio,
        limits.breaker_seconds,
        limits.burst,
        limits.rate,
        limits.crawl_rate,
        len(report.left),
        len(renewed),
        len(unused),
        *report.left,
        *renewed,
        *unused,
    )


def read_view(reply: Sequence[bytes], now: float) -> View:
    """What the scripts call `view`."""
    clock, closed, rate, down, holes = reply
    return View(
        asked_at=now,
        clock=float(clock),
        closed=float(closed),
        rate=float(rate),
        down=float(down) if down else None,
        holes=() if holes in _NO_HOLES else _holes.decode(holes),
    )


def read_state(site: str, reply: bytes) -> SiteState:
    """What look.lua answers."""
    found = _looked.decode(reply)
    return SiteState(
        site=site,
        rate=found.rate or None,
        slowed=found.slowed,
        closed_seconds=found.closed_seconds,
        waiting=int(found.waiting),
        in_flight=None if found.in_flight < 0 else int(found.in_flight),
        breaker=("open" if found.breaker_seconds else "half_open") if found.is_down else "closed",
        breaker_seconds=found.breaker_seconds,
        recent=found.recent,
        success_share=1 - found.failures / found.recent if found.recent else None,
        latency_seconds=found.latency_seconds if found.timed else None,
        requests_a_second=found.requests_a_second,
        seen_at=found.seen_at,
    )
