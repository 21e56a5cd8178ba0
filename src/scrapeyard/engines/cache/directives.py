"""What a request wants of the cache: how old a page may be, whether to keep the answer, and where."""

from msgspec import Struct

from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.model.fetching import CacheMode
from scrapeyard.settings import CacheSettings

_CONDITIONS = frozenset({"range", "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range"})
"""A script that sends one of these wants the site's own answer to it."""


class Wish(Struct, frozen=True):
    """What one request wants. `max_age` 0: no kept page serves, but the answer is kept for others."""

    mode: CacheMode
    max_age: float
    explicit: bool
    """The call or the scraper asked for kept pages, rather than a setting for all."""


def wish_of(request: FetchRequest, caller: Caller, settings: CacheSettings) -> Wish | None:
    """None: the cache has no part in this request.

    That is so when the mode is off; when neither the request, nor its policy, nor the setting lets a kept page serve
    anybody; for methods but GET and HEAD, except a POST that says max_age itself; for conditional requests; and for a
    page that goes elsewhere piece by piece.
    """
    policy = caller.policy
    mode = policy.cache or settings.mode
    asked = _larger(request.max_age_seconds, policy.max_age_seconds)
    if mode == "off" or request.keep is not None or not (asked > 0 or settings.max_age_seconds > 0):
        return None
    method = request.method.upper()
    if method not in ("GET", "HEAD") and not (method == "POST" and (request.max_age_seconds or 0) > 0):
        return None
    if request.headers and not _CONDITIONS.isdisjoint(name.lower() for name in request.headers):
        return None
    return Wish(mode, _max_age(request, caller, settings), asked > 0)


def _max_age(request: FetchRequest, caller: Caller, settings: CacheSettings) -> float:
    for given in (request.max_age_seconds, caller.policy.max_age_seconds):
        if given is not None:
            return given
    return settings.max_age_seconds


def _larger(one: float | None, other: float | None) -> float:
    return max(one or 0.0, other or 0.0)
