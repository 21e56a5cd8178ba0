"""What an answer, or its absence, says of a site; and all that was learnt since the last report."""

import math
import re
import time
from email.utils import parsedate_to_datetime
from typing import Self

from msgspec import Struct, field

from scrapeyard.engines.http.failures import CONNECTING
from scrapeyard.engines.politeness.port import MAX_CLOSED_SECONDS, SiteVerdict, Ticket
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy

FAIR_SECONDS = 5.0
"""A script or policy that allows less and runs out of time has said nothing of the site."""
_SECONDS = re.compile(r"\s*([0-9]{1,10})(?:\.[0-9]*)?\s*", re.ASCII)
_FAILURES = frozenset(
    {ExitReason.FETCH_CONNECT, ExitReason.FETCH_TLS, ExitReason.FETCH_TIMEOUT, ExitReason.FETCH_PROTOCOL}
)
_ANSWERS = frozenset(
    {
        ExitReason.FETCH_BLOCKED,
        ExitReason.FETCH_CAPTCHA,
        ExitReason.FETCH_DECODE,
        ExitReason.FETCH_REDIRECTS,
        ExitReason.FETCH_TOO_LARGE,
    }
)
"""The site lives, though we did not get a page."""
_THROTTLES = frozenset({429, 503})
_OUR_OWN = frozenset({"waiting for a free connection", "waiting for memory", "resolving its name"})
"""What the client was at when time ran out, before the site had any part in it."""


def of_response(response: FetchResponse) -> SiteVerdict:
    """An answer. The time that a solver took says nothing of the site."""
    latency = None if "solver" in response.way else response.elapsed_ms / 1000
    if response.status < 429:
        return SiteVerdict(answer="ok", latency=latency)
    wait = wait_asked_by(response) if response.status in _THROTTLES else 0.0
    return _of_status(response.status, wait, latency)


def of_failure(request: FetchRequest, policy: FetchPolicy, failure: FetchFailed) -> SiteVerdict:
    """No answer that could be given to the script."""
    if failure.reason is ExitReason.FETCH_RATE_LIMITED:
        return SiteVerdict(answer="throttled", retry_after=_bounded(failure.details.get("retry_after")))
    if failure.reason is ExitReason.FETCH_STATUS and failure.site_status is not None:
        return _of_status(failure.site_status, _bounded(failure.details.get("retry_after")), None)
    if failure.reason in _ANSWERS:
        return SiteVerdict(answer="ok")
    if failure.reason not in _FAILURES or _was_our_own(request, policy, failure):
        return SiteVerdict(answer="unknown")
    return SiteVerdict(answer="failed")


def wait_asked_by(response: FetchResponse) -> float:
    """Seconds that an answer's Retry-After asks for; 0 where it has none that can be read."""
    return retry_after(next((value for name, value in response.headers if name.lower() == "retry-after"), ""))


def retry_after(text: str, now: float | None = None) -> float:
    """Seconds that a Retry-After asks for, as a number or a date; 0 where it says nothing that can be read."""
    if found := _SECONDS.fullmatch(text):
        return _bounded(float(found[1]))
    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return _bounded(when - (time.time() if now is None else now))


def _of_status(status: int, wait: float, latency: float | None) -> SiteVerdict:
    if status == 429:
        return SiteVerdict(answer="throttled", retry_after=wait, latency=latency)
    if status == 503:
        return SiteVerdict(answer="throttled", retry_after=wait, failed=True)
    return SiteVerdict(answer="failed") if status >= 500 else SiteVerdict(answer="ok", latency=latency)


def _was_our_own(request: FetchRequest, policy: FetchPolicy, failure: FetchFailed) -> bool:
    if failure.reason is not ExitReason.FETCH_TIMEOUT:
        return False
    stage = failure.details.get("stage")
    total = policy.request_seconds if request.timeout_seconds is None else request.timeout_seconds
    allowed = policy.connect_seconds if stage == CONNECTING and policy.connect_seconds is not None else total
    return (allowed is not None and allowed < FAIR_SECONDS) or stage in _OUR_OWN


def _bounded(seconds: object) -> float:
    if not isinstance(seconds, int | float) or math.isnan(seconds):
        return 0.0
    return min(max(float(seconds), 0.0), MAX_CLOSED_SECONDS)


WINDOW = 40
"""Requests that the breaker's ratio is of."""


class SiteReport(Struct):
    """Adds up verdicts in the order in which they come."""

    requests: int = 0
    answered: int = 0
    """Requests that say something of the site."""
    good: int = 0
    window: str = ""
    """The last ones: `1` failed, `0` did not."""
    trailing: int = 0
    """Failures after the last that was none."""
    throttled: int = 0
    retry_after: float = 0.0
    latency: float = 0.0
    """The sum of `timed` of them."""
    timed: int = 0
    left: list[str] = field(default_factory=list)
    """Tickets that are over."""
    seats: int = 0
    """How many of those had a seat, for which others may wait."""
    unused: list[float] = field(default_factory=list)
    """Places that nobody used."""
    probe: str = ""
    """How the probe went, if it was among them: ok, failed or unknown."""

    def add(self, turn: Ticket, verdict: SiteVerdict) -> Self:
        """One request that is over, or never went."""
        self.requests += verdict.sent
        self._add_answer(verdict)
        if verdict.latency is not None:
            self.latency += verdict.latency
            self.timed += 1
        if turn.limits.concurrency or turn.is_leased:
            self.left.append(turn.ticket)
        self.seats += bool(turn.limits.concurrency)
        if turn.place is not None and not verdict.sent:
            self.unused.append(turn.place)
        if turn.is_probe:
            failed = "failed" if verdict.is_failure else "ok"
            self.probe = "unknown" if verdict.answer == "unknown" else failed
        return self

    @property
    def is_urgent(self) -> bool:
        """Whether others should know at once."""
        return bool(self.seats or self.probe or self.throttled)

    def _add_answer(self, verdict: SiteVerdict) -> None:
        if verdict.answer == "unknown":
            return
        failed = verdict.is_failure
        self.answered += 1
        self.good += verdict.answer == "ok"
        self.window = (self.window + ("1" if failed else "0"))[-WINDOW:]
        self.trailing = self.trailing + 1 if failed else 0
        if verdict.answer == "throttled":
            self.throttled += 1
            self.retry_after = max(self.retry_after, verdict.retry_after)
