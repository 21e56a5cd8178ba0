"""Asking a site whether a kept page is still what it would answer."""

from msgspec.structs import replace

from scrapeyard.engines.cache.port import KeptPage
from scrapeyard.engines.port import FetchRequest, FetchResponse

_MAX_VALIDATOR = 1024
_OF_THE_ANSWER = frozenset({"content-length", "content-encoding", "content-type", "transfer-encoding", "connection"})
"""Headers that a 304 does not change: they describe a body that it does not have."""


def conditional(request: FetchRequest, page: KeptPage) -> FetchRequest | None:
    """The same request on the condition that the page has changed. None: nothing to compare it by.

    A page that was reached by redirects is asked for anew: its validators are those of another URL.
    """
    if page.redirects or page.status != 200 or request.method.upper() not in ("GET", "HEAD"):
        return None
    conditions = {}
    if tag := _validator(page, "etag"):
        conditions["If-None-Match"] = tag
    if date := _validator(page, "last-modified"):
        conditions["If-Modified-Since"] = date
    return replace(request, headers={**request.headers, **conditions}) if conditions else None


def confirms(response: FetchResponse, page: KeptPage) -> bool:
    """Whether the site says that the page stands. One that has begun to redirect may mean another page."""
    return response.status == 304 and response.url == page.url and not response.redirects


def confirmed(page: KeptPage, response: FetchResponse) -> FetchResponse:
    """The kept page with the headers of the site's confirmation, as if it had been answered whole."""
    new = [(name, value) for name, value in response.headers if name.lower() not in _OF_THE_ANSWER]
    renewed = {name.lower() for name, _ in new}
    old = [(name, value) for name, value in page.headers if name.lower() not in renewed]
    return replace(
        response,
        status=page.status,
        headers=(*old, *new),
        body=page.body,
        encoding=page.encoding,
        way=f"cache, confirmed by {response.way}" if response.way else "cache, confirmed",
    )


def _validator(page: KeptPage, wanted: str) -> str:
    for name, value in page.headers:
        if name.lower() == wanted and len(value) <= _MAX_VALIDATOR and value.isprintable():
            return value
    return ""
