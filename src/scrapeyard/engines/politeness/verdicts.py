"""What an answer, or its absence, says of a site.

A failure is a site that cannot be reached or cannot answer: connect, tls, timeout, protocol, 5xx. A 4xx is an answer.
What is our own doing says nothing: a full budget, a bad URL, a proxy, a name that our resolver does not know, a time
limit that the script made too short for anyone.
"""

import math
import re
import time
from email.utils import parsedate_to_datetime

from scrapeyard.engines.politeness.port import MAX_CLOSED_SECONDS, Verdict
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

FAIR_SECONDS = 5.0
"""A script that allows less and runs out of time has said nothing of the site."""
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
_OUR_OWN = frozenset({"waiting for a free connection", "resolving its name"})
"""What the client was at when time ran out, before the site had any part in it."""


def of_response(response: FetchResponse) -> Verdict:
    """An answer. The time that a solver took says nothing of the site."""
    latency = None if "solver" in response.way else response.elapsed_ms / 1000
    wait = retry_after(_header(response)) if response.status in _THROTTLES else 0.0
    return _of_status(response.status, wait, latency)


def of_failure(request: FetchRequest, failure: FetchFailed) -> Verdict:
    """No answer that could be given to the script."""
    if failure.reason is ExitReason.FETCH_RATE_LIMITED:
        return Verdict(answer="throttled", retry_after=_bounded(failure.details.get("retry_after")))
    if failure.reason is ExitReason.FETCH_STATUS and failure.site_status is not None:
        return _of_status(failure.site_status, _bounded(failure.details.get("retry_after")), None)
    if failure.reason in _ANSWERS:
        return Verdict(answer="ok")
    if failure.reason not in _FAILURES or _was_our_own(request, failure):
        return Verdict(answer="unknown")
    return Verdict(answer="failed")


def retry_after(text: str, now: float | None = None) -> float:
    """Seconds that a Retry-After asks for, as a number or a date; 0 where it says nothing that can be read."""
    if found := _SECONDS.fullmatch(text):
        return _bounded(float(found[1]))
    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return _bounded(when - (time.time() if now is None else now))


def _of_status(status: int, wait: float, latency: float | None) -> Verdict:
    if status == 429:
        return Verdict(answer="throttled", retry_after=wait, latency=latency)
    if status == 503:
        return Verdict(answer="throttled", retry_after=wait, failed=True)
    return Verdict(answer="failed") if status >= 500 else Verdict(answer="ok", latency=latency)


def _was_our_own(request: FetchRequest, failure: FetchFailed) -> bool:
    if failure.reason is not ExitReason.FETCH_TIMEOUT:
        return False
    allowed = request.timeout_seconds
    return (allowed is not None and allowed < FAIR_SECONDS) or failure.details.get("stage") in _OUR_OWN


def _header(response: FetchResponse) -> str:
    return next((value for name, value in response.headers if name.lower() == "retry-after"), "")


def _bounded(seconds: object) -> float:
    if not isinstance(seconds, int | float) or math.isnan(seconds):
        return 0.0
    return min(max(float(seconds), 0.0), MAX_CLOSED_SECONDS)
