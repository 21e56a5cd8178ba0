"""A clearance made of what a browser has after it passed a challenge."""

import re
from collections.abc import Iterable

from scrapeyard.engines.http.clients import profile_of
from scrapeyard.engines.port import Proxy
from scrapeyard.engines.solver.port import MAX_COOKIE_BYTES, MAX_COOKIES, Clearance, ClearedCookie
from scrapeyard.model import new_id

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}", re.ASCII)
_VALUE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e ,\"]*", re.ASCII)
_TRUSTED_SECONDS = 1800.0
"""How long cookies without an end are trusted."""


def sendable(cookies: Iterable[ClearedCookie]) -> tuple[ClearedCookie, ...]:
    """Those that can be sent again, at most MAX_COOKIES; what no server could have set is left out."""
    good = [
        each
        for each in cookies
        if _NAME.fullmatch(each.name) and _VALUE.fullmatch(each.value) and len(each.value) <= MAX_COOKIE_BYTES
    ]
    return tuple(good[:MAX_COOKIES])


def clearance_of(
    cookies: tuple[ClearedCookie, ...],
    agent: str,
    *,
    host: str,
    proxy: Proxy | None,
    now: float,
    most_seconds: float,
    hints: tuple[tuple[str, str], ...] = (),
) -> Clearance | None:
    """None: there is nothing that plain HTTP could use. It is trusted for `most_seconds` at most."""
    agent = agent[:512]
    if not cookies or not agent or not agent.isprintable() or not agent.isascii():
        return None
    ends = max((each.expires_at for each in cookies if each.expires_at), default=now + _TRUSTED_SECONDS)
    return Clearance(
        id=new_id("clear"),
        host=host,
        cookies=cookies,
        user_agent=agent,
        hints=hints,
        profile=profile_of(agent),
        proxy=proxy,
        got_at=now,
        expires_at=min(ends, now + most_seconds),
    )
