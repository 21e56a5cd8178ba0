"""The gate's scripts: their text, the keys they work on, what they answer, and the log when Redis is away."""

import hashlib
import time
from collections.abc import Sequence
from importlib.resources import files

import msgspec
from msgspec import Struct

from scrapeyard.engines.politeness.port import SiteLimits, SiteState, Ticket
from scrapeyard.engines.politeness.verdicts import Report
from scrapeyard.redis.connection import Command, Outage
from scrapeyard.redis.keys import Keys
from scrapeyard.telemetry.events import Log


class GateOutage(Outage):
    """As the queue's, in the gate's own words: what is lost is another thing."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._gate_log = log
        self._away_since: float | None = None

    def down(self, link: object, error: BaseException, retry_seconds: float) -> None:  # noqa: ARG002  as the queue's
        """The gate has one link."""
        if self._away_since is None:
            self._away_since = time.monotonic()
            self._gate_log.warning("sites.away", error=str(error) or type(error).__name__)

    def up(self, link: object) -> None:  # noqa: ARG002  as the queue's
        """All workers share their limits again."""
        if self._away_since is not None:
            self._gate_log.info("sites.back", away_seconds=round(time.monotonic() - self._away_since, 2))
            self._away_since = None


_FOLDER = files("scrapeyard.engines.politeness").joinpath("lua")
_SHARED = _FOLDER.joinpath("site.lua").read_text("utf-8")


class Script:
    """One of them. The server knows it by its SHA-1 once it has seen the text."""

    def __init__(self, name: str) -> None:
        self.text = f"{_SHARED}\n{_FOLDER.joinpath(name + '.lua').read_text('utf-8')}"
        self._sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def call(self, keys: Sequence[str], *arguments: str | int | float, whole: bool = False) -> Command:
        """The command; `whole` sends the text, for a server that does not know it yet."""
        said = [repr(argument) if isinstance(argument, float) else argument for argument in arguments]
        return ("EVAL" if whole else "EVALSHA", self.text if whole else self._sha, len(keys), *keys, *said)


ENTER, REPORT, LOOK, RESET = Script("enter"), Script("report"), Script("look"), Script("reset")


class SiteKeys:
    """The keys of sites under one prefix, as site.lua lists them."""

    def __init__(self, prefix: str) -> None:
        Keys(prefix)  # raises SettingsInvalid for a prefix that cannot be used
        self._prefix = prefix
        self.sites = f"{prefix}:sites"

    def of(self, site: str) -> tuple[str, str, str, str]:
        """Standing, seats, alive, sites."""
        standing = f"{self._prefix}:site:{site}"
        return standing, f"{standing}:seats", f"{standing}:alive", self.sites


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
        return closed + max(0.0, place - self.clock - ran * self.rate) / self.rate


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


_looked = msgspec.json.Decoder(_Looked)


def enter_arguments(turn: Ticket, within: float) -> tuple[str | int | float, ...]:
    """For enter.lua."""
    limits = turn.limits
    return (turn.site, turn.ticket, within, limits.rate, limits.burst, limits.concurrency, limits.crawl_rate)


def report_arguments(
    site: str, report: Report, limits: SiteLimits, renewed: Sequence[str]
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
    clock, closed, rate, down = reply
    return View(
        asked_at=now, clock=float(clock), closed=float(closed), rate=float(rate), down=float(down) if down else None
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
