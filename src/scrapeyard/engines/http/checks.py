"""What may be asked at all: method, headers, limits, hosts; and what is asked next after a redirect."""

import re
from functools import lru_cache

from msgspec import Struct
from wreq.wreq import Method

from scrapeyard.engines.http.guard import HostPatterns
from scrapeyard.engines.http.url import Target, join_target, parse_target
from scrapeyard.engines.port import FetchRequest
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.settings import HttpSettings

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OF_THE_BODY = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})


class Hop(Struct, frozen=True, kw_only=True):
    """One request on the way."""

    target: Target
    url: str
    """The target's, spelled once."""
    method: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def sends_own_cookies(self) -> bool:
        """Whether the script wrote the Cookie header itself; cookies set on the way are then left alone."""
        return any(name.lower() == "cookie" for name in self.headers)


def next_hop(hop: Hop, status: int, location: str | None) -> Hop | None:
    """Where an answer sends us; None when it is the last. Raises FetchFailed when it leads to what is not a URL.

    303 turns everything but HEAD into GET, 301 and 302 turn POST into GET, as browsers do. Credentials stay behind
    when scheme, host or port change.
    """
    if status not in _REDIRECTS or not location:
        return None
    target = join_target(hop.target, location)
    dropped: frozenset[str] = frozenset()
    method, body = hop.method, hop.body
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, body, dropped = "GET", b"", _OF_THE_BODY
    if target.origin != hop.target.origin:
        dropped |= _CREDENTIALS
    headers = {name: value for name, value in hop.headers.items() if name.lower() not in dropped}
    return Hop(target=target, url=target.url, method=method, headers=headers, body=body)


METHODS = {name: getattr(Method, name) for name in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")}
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect"}
)
"""Headers that shape the message or choose the site; a script's own would get round the guard or break the wire."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_MAX_HEADERS = 100
_MAX_HEADER_BYTES = 64 * 1024


def first_hop(request: FetchRequest, target: Target | None = None) -> Hop:
    """The request, checked. `target` is its URL, parsed; None: not parsed yet.

    Raises FetchFailed (fetch_not_allowed, fetch_bad_url).
    """
    method = request.method.upper()
    if method not in METHODS:
        raise _not_allowed(f"the method {request.method[:20]!r} is not sent; use one of {', '.join(METHODS)}")
    if request.headers:
        check_headers(request.headers)
    target = target or parse_target(request.url)
    return Hop(target=target, url=target.url, method=method, headers=request.headers, body=request.body)


def check_headers(headers: dict[str, str]) -> None:
    """Raises FetchFailed (fetch_not_allowed) for headers that are too many, too long or not a script's to set."""
    if not headers:
        return
    if (
        len(headers) > _MAX_HEADERS
        or sum(len(name) + len(value) for name, value in headers.items()) > _MAX_HEADER_BYTES
    ):
        raise _not_allowed(f"more than {_MAX_HEADERS} headers or {_MAX_HEADER_BYTES} bytes of them; send fewer")
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise _not_allowed(f"the header {name[:40]!r} has characters that HTTP does not allow; encode them")
        if not is_settable(name):
            raise _not_allowed(f"the header {name!r} is set by the engine; leave it out")


def is_settable(name: str) -> bool:
    """Whether a request may bring this header: its name is valid, and the engine does not set it itself."""
    lower = name.lower()
    return _NAME.fullmatch(name) is not None and lower not in _OURS and not lower.startswith("proxy-")


def connect_limit(policy: FetchPolicy, settings: HttpSettings) -> float:
    """Seconds to connect: what the policy says, never more than the setting."""
    wished = policy.connect_seconds
    return settings.connect_seconds if wished is None else min(wished, settings.connect_seconds)


def time_limit(request: FetchRequest, policy: FetchPolicy, settings: HttpSettings) -> float | None:
    """Seconds for the whole fetch: what the script asked, else what the policy says, never more than the setting.

    A page that is kept as it comes may take as long as the run does, for it is large: None where nothing was asked.
    """
    asked = request.timeout_seconds
    if asked is not None and not asked > 0:
        raise _not_allowed("timeout_seconds must be above zero")
    if request.keep is not None:
        return asked
    wished = policy.request_seconds if asked is None else asked
    return settings.total_seconds if wished is None else min(wished, settings.total_seconds)


def page_limit(max_bytes: int | None, settings: HttpSettings) -> int:
    """Bytes of one page in memory: what was asked, never more than the setting."""
    ceiling = int(settings.max_body_mb * 1024 * 1024)
    return ceiling if max_bytes is None else max(0, min(max_bytes, ceiling))


def keep_limit(max_bytes: int | None, settings: HttpSettings) -> int:
    """Bytes of one page that is kept as it comes: what was asked, which whoever keeps it has bounded."""
    return page_limit(None, settings) if max_bytes is None else max(0, max_bytes)


@lru_cache(maxsize=256)
def _patterns(allowed_hosts: tuple[str, ...]) -> HostPatterns:
    return HostPatterns(allowed_hosts)


def check_allowed(target: Target, allowed_hosts: tuple[str, ...]) -> None:
    """Raises FetchFailed (fetch_not_allowed) unless a pattern names the host; no patterns allow every host."""
    try:
        if not allowed_hosts or _patterns(allowed_hosts).match(target.host):
            return
    except ValueError as error:
        raise _not_allowed(f"the scraper's allowed_hosts cannot be used: {error}") from None
    raise _not_allowed(f"{target.host} is not among the scraper's allowed_hosts; add it to the manifest")


def check_certificate(request: FetchRequest, settings: HttpSettings) -> None:
    """Raises FetchFailed (fetch_not_allowed) for a client certificate where the operator allows none."""
    if request.certificate and not settings.client_certificates:
        raise _not_allowed("client certificates are off here; an operator allows them with http.client_certificates")


def _not_allowed(message: str) -> FetchFailed:
    return FetchFailed(ExitReason.FETCH_NOT_ALLOWED, message)
