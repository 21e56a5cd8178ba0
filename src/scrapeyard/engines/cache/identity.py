"""What makes two requests ask for the same page.

In the key: method, URL, body, every header that the script set, the way it is fetched by (profile, proxy, place,
engine), and whether redirects are followed. A site may answer to a header that it does not name in `Vary`, and scripts
are not trusted, so a page that was asked for with another header is another page. Cookies, credentials, a language, a
certificate or a session make the page private: then also the scraper and all of those.
"""

from collections.abc import Sequence
from hashlib import blake2b
from operator import attrgetter

import msgspec

from scrapeyard.engines.cache.port import PageKey
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.model import FetchPolicy

CALLER = "@caller"
"""Stands among the names of Vary for the scraper on whose behalf a page is fetched."""
PRIVATE_HEADERS = frozenset({"accept-language", "authorization", "cookie"})
_DIGEST_BYTES = 16
_TAKEN_APART = frozenset(
    {
        "url",
        "method",
        "headers",
        "body",
        "session",
        "profile",
        "proxy",
        "certificate",
        "keep",
        "via",
        "timeout_seconds",
        "max_bytes",
        "max_age_seconds",
    }
)
"""Fields of a request that the key treats by themselves, or that change no answer."""
_rest = attrgetter(*(name for name in FetchRequest.__struct_fields__ if name not in _TAKEN_APART))
_encode = msgspec.msgpack.Encoder().encode


def page_key(context: FetchContext) -> PageKey:
    """The first key of the page that a request asks for."""
    request, caller, url = context.request, context.caller, context.target.url
    parts = (
        request.method.upper(),
        url,
        blake2b(request.body, digest_size=_DIGEST_BYTES).digest() if request.body else b"",
        _way(request, caller.policy),
        _rest(request),
        _headers(request),
        _privacy(request, caller),
    )
    return PageKey(id=_digest(_encode(parts)), url=url_digest(url), site=context.site)


def variant(key: PageKey, names: Sequence[str], context: FetchContext) -> PageKey:
    """The second key, where the site's answers vary by these request headers or by the caller."""
    given = {name.lower(): value for name, value in context.request.headers.items()}
    values = [(name, caller_id(context.caller) if name == CALLER else given.get(name)) for name in names]
    return msgspec.structs.replace(key, id=_digest(_encode((key.id, values))))


def flight_key(key: PageKey, context: FetchContext) -> str:
    """Equal for requests of which one answer serves all, whatever it is: nothing that could matter differs."""
    request, caller = context.request, context.caller
    allowed = caller.scraper.allowed_hosts if caller.scraper else ()
    limits = (request.timeout_seconds, request.max_bytes)
    parts = (key.id, caller_id(caller), allowed, caller.policy, limits, sorted(request.headers.items()))
    return _digest(_encode(parts))


def url_digest(url: str) -> str:
    """A URL in its one spelling, as keys name it."""
    return _digest(url.encode())


def caller_id(caller: Caller) -> str:
    """The scraper, all versions alike; empty for the platform's own fetches."""
    return caller.scraper.ref.id if caller.scraper else ""


def _way(request: FetchRequest, policy: FetchPolicy) -> tuple[str, ...]:
    return request.profile or policy.profile, request.proxy or policy.proxy, policy.country, policy.state, policy.city


def _privacy(request: FetchRequest, caller: Caller) -> tuple[object, ...]:
    """Empty: anyone may have it."""
    own = any(name.lower() in PRIVATE_HEADERS for name in request.headers)
    if not own and not request.session and not request.certificate:
        return ()
    return caller_id(caller), request.session, request.certificate


def _headers(request: FetchRequest) -> list[tuple[str, str]]:
    return sorted((name.lower(), value) for name, value in request.headers.items()) if request.headers else []


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
