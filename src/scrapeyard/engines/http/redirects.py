"""The rules of redirects: what is asked next, with which method, headers and body. Pure."""

from msgspec import Struct

from scrapeyard.engines.http.url import Target, join_target

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OF_THE_BODY = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})


class Hop(Struct, frozen=True, kw_only=True):
    """One request on the way."""

    target: Target
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
    return Hop(target=target, method=method, headers=headers, body=body)
