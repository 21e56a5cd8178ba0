"""The gate of a site: when a request may go, and whether the site is well. Shared by all workers where there is Redis.

A turn is a place in the site's line, not a moment: places come up at the site's rate, and when that changes (an edit, a
slow-down, a `Retry-After`) everybody who waits moves with it. The order is that of asking.

What is kept of a site forgets itself when nobody asks for it for some hours.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

Answer = Literal["ok", "failed", "throttled", "unknown"]
"""`unknown`: nothing was learnt of the site (the fault was ours, the proxy's, or the request never went)."""

MAX_CLOSED_SECONDS = 3600.0
"""A site that asks to be left alone for longer is asked again after this."""


_ORIGIN = "origin/"
_JOBS = "jobs/"


def job_key(site: str) -> str:
    """What the line of all jobs is called, which they pass before that of the site."""
    return f"{_JOBS}{site}"


def origin_key(host: str, port: int) -> str:
    """What an origin is called at the gate, where it has a breaker of its own beside its site's."""
    return f"{_ORIGIN}{host}:{port}"


def is_site(key: str) -> bool:
    """Whether a key of the gate is a site, not an origin or the line of jobs."""
    return not key.startswith((_ORIGIN, _JOBS))


class SiteLimits(Struct, frozen=True, kw_only=True):
    """How one site is treated."""

    rate: float = 0.0
    """Requests a second, of all workers; 0: no limit."""
    burst: int = 1
    """Requests that may come at once after a rest."""
    concurrency: int = 0
    """Requests in flight, of all workers; 0: any number."""
    crawl_rate: float = 0.0
    """What the site's robots.txt asks for; holds beside `rate`. 0: nothing."""
    adapt: bool = True
    """Whether 429, 503 and rising latency slow the site down."""
    min_rate: float = 0.1
    breaker_failures: int = 20
    breaker_ratio: float = 0.5
    breaker_seconds: float = 300.0

    @property
    def is_open(self) -> bool:
        """Whether only a site that is unwell can make a request wait."""
        return not (self.rate or self.concurrency or self.crawl_rate)


class SiteVerdict(Struct, frozen=True, kw_only=True):
    """How a request went, as far as the site is concerned."""

    answer: Answer
    retry_after: float = 0.0
    """Seconds, as the site asked for with `throttled`."""
    latency: float | None = None
    """Seconds; None where it says nothing of the site."""
    failed: bool = False
    """A `throttled` that is a failure as well: 503."""
    sent: bool = True
    """Whether the request went to the site at all."""

    @property
    def is_failure(self) -> bool:
        """Whether it counts towards the breaker."""
        return self.failed or self.answer == "failed"


UNUSED = SiteVerdict(answer="unknown", sent=False)


class Ticket(Struct, frozen=True, kw_only=True):
    """A place in a site's line. One that is not refused must be given to `release`, whatever happens."""

    site: str
    limits: SiteLimits
    ticket: str
    wait: float = 0.0
    """Seconds until it is worth asking `recheck`; 0: go now."""
    refused: Literal["", "down", "late"] = ""
    """`down`: the site is left alone for a while; `late`: the turn would come too late. Nothing is then held."""
    retry_after: float = 0.0
    """Seconds after which a refused request may come back."""
    place: float | None = None
    """None: it needs none, or has none yet."""
    is_probe: bool = False
    is_leased: bool = False
    """Whether the server gives its place back when this process falls silent; it must hear when the turn is over."""
    is_local: bool = False
    """Given by this process alone, because the shared gate was away."""


class SiteState(Struct, frozen=True, kw_only=True):
    """What is known of a site, for people."""

    site: str
    rate: float | None = None
    """In force now, requests a second; None: no limit."""
    slowed: bool = False
    """Whether the site's own answers brought it below what is set."""
    closed_seconds: float = 0.0
    """Left of a `Retry-After`."""
    waiting: int = 0
    """Places taken and not yet come up; those of a worker that died count for some seconds."""
    in_flight: int | None = None
    """None: not counted, since there is no limit on it."""
    breaker: Literal["closed", "open", "half_open"] = "closed"
    breaker_seconds: float = 0.0
    """Until one request may try it."""
    recent: int = 0
    """Requests among the last 40 that say something of the site."""
    success_share: float | None = None
    """Of those; None: none yet."""
    latency_seconds: float | None = None
    requests_a_second: float = 0.0
    """Lately."""
    seen_at: float = 0.0
    """Unix seconds."""


class SiteGate(Protocol):
    """Where all requests to a site line up. No method raises; a gate that lost its server serves this process alone."""

    async def start(self) -> None:
        """Connect. Returns even if the server is away."""

    async def stop(self) -> None:
        """Tell what is left to tell and close. May be called twice."""

    def at_once(self, site: str, limits: SiteLimits) -> Ticket | None:
        """A turn at a site that has no limits and is known to be well: it needs no wait, and nobody else is asked.
        None: `acquire`."""

    async def acquire(self, site: str, limits: SiteLimits, within: float) -> Ticket:
        """Take the next place in the site's line, if it comes up within so many seconds; otherwise the turn is refused
        and no place is taken. Then wait `turn.wait` seconds, and ask `recheck` until that is 0."""

    async def recheck(self, turn: Ticket, within: float) -> Ticket:
        """The same place as it stands now: what is left to wait, or that it is refused after all (and given up)."""

    def release(self, turn: Ticket, verdict: SiteVerdict) -> None:
        """Give the turn back and tell how it went. Never blocks, so that it may stand in a `finally`."""

    async def states(self, sites: Sequence[str]) -> Mapping[str, SiteState]:
        """What is known of these sites; one of which nothing is known is missing."""

    async def known(self) -> Sequence[str]:
        """Sites that were asked lately, at most 10,000. Origins are not among them."""

    async def reset(self, site: str) -> None:
        """Close its breaker and forget slow-downs, latency and `Retry-After`. Its limits stay."""
