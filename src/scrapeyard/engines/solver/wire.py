"""FlareSolverr's protocol, version 1: what is said to it and what it answers, checked and bounded."""

import re
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec
from msgspec import Struct, field

from scrapeyard.engines.port import Proxy
from scrapeyard.engines.solver.clearance import sendable
from scrapeyard.engines.solver.port import MAX_COOKIES, ClearedCookie
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

_NET = re.compile(r"net::(ERR_[A-Z_]+)")
_NET_REASONS = (
    ("ERR_PROXY", ExitReason.FETCH_PROXY),
    ("ERR_TUNNEL", ExitReason.FETCH_PROXY),
    ("ERR_SOCKS", ExitReason.FETCH_PROXY),
    ("ERR_NAME", ExitReason.FETCH_DNS),
    ("ERR_CERT", ExitReason.FETCH_TLS),
    ("ERR_SSL", ExitReason.FETCH_TLS),
    ("ERR_TIMED_OUT", ExitReason.FETCH_TIMEOUT),
    ("ERR_CONNECTION_TIMED_OUT", ExitReason.FETCH_TIMEOUT),
    ("ERR_CONNECTION", ExitReason.FETCH_CONNECT),
    ("ERR_ADDRESS", ExitReason.FETCH_CONNECT),
)


class SolverCookie(Struct, frozen=True, kw_only=True):
    """As its browser driver spells it: `expiry` by Selenium, `expires` by others, -1 or none for the session."""

    name: str
    value: str = ""
    domain: str = ""
    expires: float | None = None
    expiry: float | None = None


class Solution(Struct, frozen=True, kw_only=True):
    """The page it saw. Since version 2 the headers are empty, and since 3 the status is always 200."""

    url: str
    status: int = 200
    headers: dict[str, Any] | list[Any] | None = None
    response: str | None = None
    cookies: list[SolverCookie] = field(default_factory=list)
    user_agent: str = field(default="", name="userAgent")


class SolverAnswer(Struct, frozen=True, kw_only=True):
    """Every answer has this shape, also those with status 500."""

    status: str
    message: str = ""
    solution: Solution | None = None
    session: str | None = None
    sessions: list[str] | None = None
    version: str = ""


_decoder = msgspec.json.Decoder(SolverAnswer, strict=False)


def read_answer(data: bytes) -> SolverAnswer | None:
    """None: that is not FlareSolverr speaking."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def proxy_words(proxy: Proxy) -> dict[str, str]:
    """A proxy as the solver wants it: its credentials beside the URL, the scheme as a browser knows it."""
    parts = urlsplit(proxy.url)
    host = parts.netloc.rpartition("@")[2]
    scheme = "socks5" if parts.scheme == "socks5h" else parts.scheme
    words = {"url": urlunsplit((scheme, host, "", "", ""))}
    if parts.username:
        words |= {"username": unquote(parts.username), "password": unquote(parts.password or "")}
    return words


def cleared_cookies(solution: Solution) -> tuple[ClearedCookie, ...]:
    """Those that can be sent again."""
    return sendable(
        ClearedCookie(name=each.name, value=each.value, domain=each.domain[:253], expires_at=_ends(each))
        for each in solution.cookies[:MAX_COOKIES]
    )


def header_pairs(solution: Solution) -> tuple[tuple[str, str], ...]:
    """Headers as ours are: lower case, text only."""
    if not isinstance(solution.headers, dict):
        return ()
    pairs = ((name.lower(), value) for name, value in solution.headers.items() if isinstance(value, str))
    return tuple((name, value) for name, value in pairs if name not in ("content-encoding", "content-length"))[:100]


def failure(message: str, host: str) -> FetchFailed:
    """What went wrong in the solver, as ours. Its own words are kept in `details`."""
    reason = _reason(message)
    said = {
        ExitReason.FETCH_TIMEOUT: f"the solver did not get past {host} in time; raise escalation.solver_seconds",
        ExitReason.FETCH_BLOCKED: f"{host} blocks the solver's browser too; another proxy may help",
        ExitReason.FETCH_CAPTCHA: f"the solver could not pass the challenge of {host}",
        ExitReason.FETCH_PROXY: f"the solver's browser found the proxy to {host} not working",
    }
    words = said.get(reason, f"the solver's browser could not open {host}")
    return FetchFailed(reason, words, host=host, cause=message[:500])


def _reason(message: str) -> ExitReason:
    if net := _NET.search(message):
        found = (reason for start, reason in _NET_REASONS if net[1].startswith(start))
        return next(found, ExitReason.FETCH_PROTOCOL)
    lower = message.lower()
    if "timeout after" in lower or "timed out" in lower:
        return ExitReason.FETCH_TIMEOUT
    return ExitReason.FETCH_BLOCKED if "has blocked this request" in lower else ExitReason.FETCH_CAPTCHA


def _ends(cookie: SolverCookie) -> float | None:
    ends = cookie.expiry if cookie.expiry is not None else cookie.expires
    return ends if ends is not None and ends > 0 else None
