"""What a request wants of the cache; which answers are stored, for how long, and for whom."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from scrapeyard.engines.cache.identity import CALLER
from scrapeyard.engines.cache.port import CachedPage
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import SettingsInvalid
from scrapeyard.model.fetching import CacheMode
from scrapeyard.settings import CacheSettings

_CONDITIONS = frozenset({"range", "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range"})
"""A script that sends one of these wants the site's own answer to it."""


class CacheDirective(Struct, frozen=True):
    """What one request wants. `max_age` 0: no kept page serves, but the answer is kept for others."""

    mode: CacheMode
    max_age: float
    explicit: bool
    """The call or the scraper asked for kept pages, rather than a setting for all."""


def directive_for(request: FetchRequest, caller: Caller, settings: CacheSettings) -> CacheDirective | None:
    """None: the cache has no part in this request.

    That is so when the mode is off; when neither the request, nor its policy, nor the setting lets a kept page serve
    anybody; for methods but GET and HEAD, except a POST that says max_age itself; for conditional requests; for a page
    that goes elsewhere piece by piece; and for one in a browser that is driven, or of which a picture is wanted.
    """
    policy = caller.policy
    mode = policy.cache or settings.mode
    asked = _larger(request.max_age_seconds, policy.max_age_seconds)
    if mode == "off" or _is_single(request) or not (asked > 0 or settings.max_age_seconds > 0):
        return None
    method = request.method.upper()
    if method not in ("GET", "HEAD") and not (method == "POST" and (request.max_age_seconds or 0) > 0):
        return None
    if request.headers and not _CONDITIONS.isdisjoint(name.lower() for name in request.headers):
        return None
    return CacheDirective(mode, _max_age(request, caller, settings), asked > 0)


def _is_single(request: FetchRequest) -> bool:
    """Whether its answer is of use to this request alone."""
    return request.keep is not None or request.via is not None or bool(request.browser and request.browser.screenshot)


def _max_age(request: FetchRequest, caller: Caller, settings: CacheSettings) -> float:
    for given in (request.max_age_seconds, caller.policy.max_age_seconds):
        if given is not None:
            return given
    return settings.max_age_seconds


def _larger(one: float | None, other: float | None) -> float:
    return max(one or 0.0, other or 0.0)


KEPT_STATUSES = frozenset({200, 203, 204, 300, 301, 308, 404, 410})
_MISSING_STATUSES = frozenset({404, 410})
MISSING_SECONDS = 60.0
"""A page that is not there may come."""
_ASK_AGAIN = frozenset({"no-store", "no-cache", "max-age=0"})
_MAX_NAMES = 16
_MAX_NAME = 64


_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def is_safe(request: FetchRequest) -> bool:
    """Whether its method changes no page, even if it succeeds (RFC 9111, 4.4)."""
    return request.method.upper() in _SAFE_METHODS


def uses_cache(caller: Caller, settings: CacheSettings) -> bool:
    """Whether a caller's pages are cached without its requests asking for it."""
    return (caller.policy.max_age_seconds or settings.max_age_seconds) > 0


class TtlRules:
    """How long pages are kept at most, by content type. Raises SettingsInvalid naming what cannot be read."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._seconds: dict[str, float] = {}
        for line in lines:
            kind, equals, seconds = line.partition("=")
            kind = kind.strip().lower()
            try:
                self._seconds[kind] = float(seconds)
            except ValueError:
                equals = ""
            if not equals or kind.count("/") != 1 or not 0 <= self._seconds[kind] < float("inf"):
                raise SettingsInvalid(
                    f"cache.ttl_seconds: {line[:100]!r}: write type/subtype=seconds or type/*=seconds"
                )

    def seconds(self, content_type: str) -> float:
        """0: not kept. The whole type counts before `type/*` before `*/*`; a page without a type is `*/*`."""
        kind = content_type.partition(";")[0].strip().lower()
        family = kind.partition("/")[0] + "/*"
        for name in (kind, family, "*/*"):
            if name in self._seconds:
                return self._seconds[name]
        return 0.0


class Storable(Struct, frozen=True):
    """An answer that is kept, and the names that decide who may have it."""

    page: CachedPage
    vary: tuple[str, ...]
    """Empty: everyone who asks by the first key."""


def keepable(
    response: FetchResponse, wish: CacheDirective, terms: TtlRules, now: float, max_bytes: int
) -> Storable | None:
    """None: this answer is not kept."""
    if response.status not in KEPT_STATUSES or len(response.body) > max_bytes:
        return None
    headers = _headers(response)
    control = _tokens(headers.get("cache-control", ""))
    vary = _vary(headers, control)
    if vary is None or ("no-store" in control and not wish.explicit):
        return None
    seconds = terms.seconds(headers.get("content-type", ""))
    if response.status in _MISSING_STATUSES:
        seconds = min(seconds, MISSING_SECONDS)
    fetched_at = now - response.elapsed_ms / 1000
    page = CachedPage(
        url=response.url,
        status=response.status,
        headers=tuple(response.headers),
        body=response.body,
        encoding=response.encoding,
        redirects=response.redirects,
        fetched_at=fetched_at,
        expires_at=fetched_at + seconds,
    )
    return Storable(page, vary) if page.expires_at > now else None


def must_revalidate(page: CachedPage) -> bool:
    """Whether the site says that the page must not be used without asking it again."""
    said = ",".join(value for name, value in page.headers if name.lower() == "cache-control")
    return any(part.strip().lower() in _ASK_AGAIN for part in said.split(","))


def _vary(headers: Mapping[str, str], control: frozenset[str]) -> tuple[str, ...] | None:
    """Names that the answer varies by; None when nobody else's request can be known to be equal.

    What an answer sets a cookie with, or calls private, is the caller's own. Bodies are kept decompressed, so that
    encodings do not matter.
    """
    names = _tokens(headers.get("vary", "")) - {"accept-encoding"}
    if "*" in names or len(names) > _MAX_NAMES or any(len(name) > _MAX_NAME for name in names):
        return None
    own = {CALLER} if "private" in control or "set-cookie" in headers else set()
    return tuple(sorted(names | own))


def _headers(response: FetchResponse) -> dict[str, str]:
    found: dict[str, str] = {}
    for given, value in response.headers:
        name = given.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _tokens(value: str) -> frozenset[str]:
    """Of a list with commas, in lower case, without what follows an equals sign."""
    return frozenset(token for part in value.split(",") if (token := part.partition("=")[0].strip().lower()))
